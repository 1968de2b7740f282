"""Index+value: each index as a whole number. Simple, and three quarters of it wasted: see delta."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from thinwire.errors import WireError, WireReason
from thinwire.protocols import Codec
from thinwire.types import Selection, index_dtype


@dataclass(frozen=True, kw_only=True)
class IndexValue(Codec):
    """Indices as little-endian int32, or int64 where there are more than 2**31 - 1 units."""

    number: ClassVar[int] = 1

    def write(self, selection: Selection) -> Tensor:
        """The indices, one after the other."""
        indices = selection.indices.cpu().to(index_dtype(selection.units)).contiguous()
        # A single element may have any stride, and only one of 1 can be viewed as bytes.
        return indices.as_strided((indices.numel(),), (1,)).view(torch.uint8)

    def read(self, section: Tensor, count: int, units: int) -> Tensor:
        """The indices, if they are in range and strictly increasing."""
        dtype = index_dtype(units)
        if section.numel() != count * dtype.itemsize:
            raise WireError(WireReason.COORDINATES, f"{section.numel()} bytes for {count} indices of {dtype}")
        # A copy: the section may begin at an address that the index type must not have.
        indices = section.clone().view(dtype)
        if count and (int(indices[0]) < 0 or int(indices.max()) >= units):
            raise WireError(WireReason.RANGE, f"beyond {units} units")
        if bool((indices[1:] <= indices[:-1]).any()):
            raise WireError(WireReason.ORDER)
        return indices

    def size(self, count: int, units: int) -> float:
        """Four or eight bytes an index."""
        return float(count * index_dtype(units).itemsize)
