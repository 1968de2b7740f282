"""What ranks tell each other beside the training: small, rare, and through the store where they met.

A store needs nobody's presence, so nothing here can meet with the collectives of a step.
"""

import torch.distributed as dist

from thinwire.torch_names import Store

_STOP = "stop"


class Meeting:
    """A corner of the store for one job.

    Args:
        rank: This one.
        world: How many there are.
    """

    _jobs = 0

    def __init__(self, rank: int, world: int) -> None:
        Meeting._jobs += 1
        self._rank = rank
        self._world = world
        self._prefix = f"thinwire/tasks/{Meeting._jobs}"
        self._store: Store = dist.distributed_c10d._get_default_store()

    def all_say(self, topic: str, mine: str) -> list[str]:
        """Everybody's word on a topic, in rank order. Waits for all; each topic is for one use.

        Args:
            topic: The same on every rank.
            mine: This rank's word.
        """
        self._store.set(f"{self._prefix}/{topic}/{self._rank}", mine)
        return [self._store.get(f"{self._prefix}/{topic}/{rank}").decode() for rank in range(self._world)]

    def stop_after(self, step: int) -> None:
        """Have every rank stop after the same step. For one rank, before it begins that step.

        Nobody can have finished a step that this rank has not begun: its gradients are missing. So everybody hears of
        it in time, without waiting.

        Args:
            step: The last one.
        """
        self._store.set(f"{self._prefix}/{_STOP}", str(step))

    def stops_after(self, step: int) -> bool:
        """Whether a step that was just finished is the last one.

        Args:
            step: That step.
        """
        key = f"{self._prefix}/{_STOP}"
        return bool(self._store.check([key])) and step >= int(self._store.get(key))
