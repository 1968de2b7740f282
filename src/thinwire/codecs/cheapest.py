"""Cheapest: whichever of the other codecs needs the fewest bytes for this very list, and one byte that says which.

A rule of thumb from the density alone is wrong for clustered indices, so the sizes are the real ones. Where a message
is about the units of one owner only (`thinwire.exchanges.OwnerReduce`), the bitmap is the hash bitmap of Zen: one bit
for each of the owner's units.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from thinwire.codecs.bitmap import Bitmap
from thinwire.codecs.delta import Delta
from thinwire.codecs.dense import Dense
from thinwire.codecs.index_value import IndexValue
from thinwire.errors import WireError, WireReason
from thinwire.protocols import Codec
from thinwire.types import Selection

_CHOICES: dict[int, Codec] = {part.number: part for part in (Dense(), IndexValue(), Bitmap(), Delta())}


@dataclass(frozen=True, kw_only=True)
class Cheapest(Codec):
    """The shortest of dense, delta, bitmap and index+value, of equals the first in this order."""

    number: ClassVar[int] = 4

    def write(self, selection: Selection) -> Tensor:
        """The number of the codec that was taken, and its section."""
        codec, section = _shortest(selection)
        whole = torch.empty(1 + section.numel(), dtype=torch.uint8)
        whole[0] = codec.number
        whole[1:] = section
        return whole

    def read(self, section: Tensor, count: int, units: int) -> Tensor | None:
        """The indices, read by the codec that the first byte names."""
        if not section.numel():
            raise WireError(WireReason.COORDINATES, "nothing says which codec was taken")
        codec = _CHOICES.get(int(section[0]))
        if codec is None:
            raise WireError(WireReason.CODEC, f"codec {int(section[0])} inside of another")
        return codec.read(section[1:], count, units)

    def size(self, count: int, units: int) -> float:
        """A byte more than the shortest, for uniformly spread indices."""
        return 1.0 + (0.0 if count == units else min(part.size(count, units) for part in (Delta(), Bitmap(), _PLAIN)))


_PLAIN = IndexValue()


def _shortest(selection: Selection) -> tuple[Codec, Tensor]:
    """The codec, and its section; only the gaps must be written to know how long they are."""
    if selection.is_full:
        return Dense(), Dense().write(selection)
    count, units = selection.count, selection.units
    gaps = Delta().write(selection)
    rivals: tuple[Codec, ...] = (Bitmap(), _PLAIN)
    shortest = min(rivals, key=lambda codec: codec.size(count, units))
    if gaps.numel() <= shortest.size(count, units):
        return Delta(), gaps
    return shortest, shortest.write(selection)
