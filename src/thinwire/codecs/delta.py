"""Delta: the gaps between indices as Rice codes, within two percent of the entropy of uniform indices.

At a density of 1 % an int32 index costs 32 bits, a bitmap 100, a Rice-coded gap 8.11; the entropy is 8.08.
Rice's parameter is chosen exactly for each message, so clustered indices cost less.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from thinwire import kernels
from thinwire.protocols import Codec
from thinwire.types import Selection


@dataclass(frozen=True, kw_only=True)
class Delta(Codec):
    """Rice-coded gaps between the indices."""

    number: ClassVar[int] = 3

    def write(self, selection: Selection) -> Tensor:
        """The gaps."""
        return kernels.rice_write(selection.indices, selection.units)

    def read(self, section: Tensor, count: int, units: int) -> Tensor:
        """The indices whose gaps these are."""
        return kernels.rice_read(section, count, units)

    def size(self, count: int, units: int) -> float:
        """Bytes expected for uniformly spread indices, whose gaps are geometric."""
        if count == 0:
            return 0.0
        stay = 1.0 - count / units
        bits: float = min(
            b + 1.0 / (1.0 - stay ** (2.0**b)) for b in range(max(1, math.ceil(math.log2(units / count)) + 2))
        )
        return 1.0 + count * bits / 8.0
