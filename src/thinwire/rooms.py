"""Memory that is used again in every step: fresh pages of a large tensor cost more than the work done in them."""

import torch
from torch import Tensor

from thinwire.layout import Layout


class Rooms:
    """Buffers by purpose and group, each in use from one step to the next."""

    def __init__(self) -> None:
        """Start with none."""
        self._rooms: dict[tuple[str, bytes, torch.dtype, torch.device], Tensor] = {}
        self._used: set[tuple[str, bytes, torch.dtype, torch.device]] = set()

    def get(self, purpose: str, layout: Layout, like: Tensor) -> Tensor:
        """A flat buffer for one group, holding anything; the same one in every step.

        Args:
            purpose: What for; buffers of different purposes are different.
            layout: The group.
            like: A tensor of the type and on the device wanted.
        """
        key = (purpose, layout.fingerprint, like.dtype, like.device)
        if key not in self._rooms:
            self._rooms[key] = torch.empty(layout.numel, dtype=like.dtype, device=like.device)
        self._used.add(key)
        return self._rooms[key]

    def sweep(self) -> None:
        """A new step begins: what the last one did not use is given back (after a rebuild, or a switch)."""
        for key in self._rooms.keys() - self._used:
            del self._rooms[key]
        self._used.clear()

    def clear(self) -> None:
        """Never use these buffers again: an abandoned operation may still write into them."""
        self._rooms.clear()
        self._used.clear()
