"""The group of ranks of one synchroniser: private, so that nobody else's collectives come in between."""

from datetime import timedelta

import torch.distributed as dist

from thinwire.pace import Pace
from thinwire.wire import GroupWire


class Membership:
    """A process group of our own over the ranks of another one."""

    def __init__(self, group: dist.ProcessGroup, patience: float, generation: int) -> None:
        """Form the group. Every rank of ``group`` must do so.

        Args:
            group: Whose ranks.
            patience: Seconds to wait for a slow rank.
            generation: How often this synchroniser has formed a group, this time included.
        """
        ranks = dist.get_process_group_ranks(group)
        # A group of all ranks gets a name from a counter, never used twice. The name of a smaller one is a hash of its
        # ranks, used again once the group is destroyed; the new group then finds the old one's addresses in the
        # store, and hangs. So smaller groups are never destroyed.
        everybody = len(ranks) == dist.get_world_size()
        # The backend's own time-out must not strike before ours, which knows more.
        timeout = timedelta(seconds=patience + 30)
        private = dist.new_group(
            ranks,
            timeout=timeout,
            backend=dist.get_backend(group),
            use_local_synchronization=not everybody,
        )
        self.wire = GroupWire(private, Pace(patience=patience), life=str(generation), private=everybody)

    def close(self) -> None:
        """Give the group back."""
        self.wire.leave()
