"""Bitmap: one bit for each unit. The best plain form above about one unit in three."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from thinwire import kernels
from thinwire.protocols import Codec
from thinwire.types import Selection


@dataclass(frozen=True, kw_only=True)
class Bitmap(Codec):
    """One bit for each unit, lowest bit first."""

    number: ClassVar[int] = 2

    def write(self, selection: Selection) -> Tensor:
        """The bits."""
        return kernels.bitmap_write(selection.indices, selection.units)

    def read(self, section: Tensor, count: int, units: int) -> Tensor:
        """The units whose bits are set."""
        return kernels.bitmap_read(section, count, units)

    def size(self, count: int, units: int) -> float:
        """An eighth of a byte for each unit."""
        return float(-(-units // 8))
