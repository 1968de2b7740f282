"""Coordinate sections of indices on a GPU; what its programs cannot take goes on to the next layer.

A section is made where its indices are and then copied: it is shorter than they are. A section that lies on a GPU, as a
collective of the GPU may leave it, is read there.
"""

import torch
from torch import Tensor

from thinwire.errors import WireError, WireReason
from thinwire.kernels.reference.coordinates import MAX_RICE_BITS
from thinwire.kernels.triton.base import BYTES, INDICES, OnGpu, blocks_of, programs, start, sums_before
from thinwire.types import index_dtype

_SHIFTS = 64


class TritonCoordinates(OnGpu):
    """Coordinate sections of indices, and of bytes, on a GPU."""

    def rice_write(self, indices: Tensor, units: int) -> Tensor:
        """Write increasing indices as Rice-coded gaps: parameter byte, low bits, unary quotients.

        Raises:
            ValueError: The indices are not a strictly increasing list below ``units``.
        """
        count = indices.numel()
        if indices.dtype not in INDICES or not count or not self.takes(indices):
            return super().rice_write(indices, units)
        sums = torch.zeros(_SHIFTS, dtype=torch.int64, device=indices.device)
        start(programs("coordinates").shift_gaps, count, indices, count, sums)
        shifted = sums.tolist()
        if shifted[-1] or shifted[0] + count > units:
            raise ValueError(f"the indices to be written are not a strictly increasing list below {units}")
        bits = min(range(MAX_RICE_BITS + 1), key=lambda bits: count * (bits + 1) + shifted[bits])
        low = torch.zeros(-(-count * bits // 64), dtype=torch.int64, device=indices.device)
        lengths = torch.empty(count, dtype=torch.int64, device=indices.device)
        start(programs("coordinates").split_gaps, count, indices, count, bits, low, lengths)
        unary = _marked(lengths.cumsum(0) - 1, count + shifted[bits])
        parameter = torch.tensor([bits], dtype=torch.uint8, device=indices.device)
        return torch.cat([parameter, low.view(torch.uint8)[: -(-count * bits // 8)], unary]).cpu()

    def rice_read(self, data: Tensor, count: int, units: int) -> Tensor:
        """Read what `rice_write` wrote, trusting nothing. The indices come out where the bytes are.

        Raises:
            WireError: COORDINATES, PADDING or RANGE.
        """
        if data.dtype not in BYTES or not self.takes(data):
            return super().rice_read(data, count, units)
        size = data.numel()
        if not 0 < count <= 8 * size:
            return _of_nothing(data, count, units)
        bits = int(data[0])
        low_bytes = -(-count * bits // 8)
        if bits > MAX_RICE_BITS or size < 1 + low_bytes:
            raise WireError(WireReason.COORDINATES, "Rice parameter or length")
        low, unary = data[1:], data[1 + low_bytes :]
        if count * bits % 8 and int(low[low_bytes - 1]) >> count * bits % 8:
            raise WireError(WireReason.PADDING, "behind the low bits")
        ends = _ones(unary, count, 8 * unary.numel(), torch.int64)
        if 8 * unary.numel() - int(ends[-1]) > 8:
            raise WireError(WireReason.PADDING, "whole unused bytes")
        steps = torch.empty_like(ends)
        start(programs("coordinates").join_gaps, count, low, count, bits, ends, steps)
        positions = steps.cumsum(0) - 1
        if int(positions.max()) >= units:
            raise WireError(WireReason.RANGE, f"beyond {units} units")
        return positions.to(index_dtype(units))

    def bitmap_write(self, indices: Tensor, units: int) -> Tensor:
        """One bit for each unit, lowest bit first.

        Raises:
            IndexError: An index is not below ``units``.
        """
        if indices.dtype not in INDICES or not self.takes(indices):
            return super().bitmap_write(indices, units)
        if bool(((indices < 0) | (indices >= units)).any()):
            raise IndexError(f"an index to be written is not below {units}")
        return _marked(indices, units).cpu()

    def bitmap_read(self, data: Tensor, count: int, units: int) -> Tensor:
        """Read what `bitmap_write` wrote. The indices come out where the bytes are.

        Raises:
            WireError: COORDINATES or PADDING.
        """
        if data.dtype not in BYTES or not self.takes(data):
            return super().bitmap_read(data, count, units)
        if data.numel() != -(-units // 8):
            raise WireError(WireReason.COORDINATES, f"a bitmap of {data.numel()} bytes for {units} units")
        if units % 8 and int(data[-1]) >> units % 8:
            raise WireError(WireReason.PADDING, "behind the last unit")
        return _ones(data, count, units, index_dtype(units))


def _marked(positions: Tensor, bits: int) -> Tensor:
    """So many bits as bytes, those at the positions set."""
    words = torch.zeros(-(-bits // 32), dtype=torch.int32, device=positions.device)
    start(programs("coordinates").mark, positions.numel(), positions, positions.numel(), words)
    return words.view(torch.uint8)[: -(-bits // 8)]


def _ones(data: Tensor, count: int, bits: int, dtype: torch.dtype) -> Tensor:
    """The places of the ``count`` bits that are set among the first ``bits``."""
    counts = torch.zeros(max(1, blocks_of(bits)), dtype=torch.int32, device=data.device)
    start(programs("coordinates").count_ones, bits, data, bits, counts)
    before, total = sums_before(counts)
    # Before there is memory for so many indices.
    if int(total) != count:
        raise WireError(WireReason.COORDINATES, f"{int(total)} bits set for {count} indices")
    positions = torch.empty(count, dtype=dtype, device=data.device)
    if count:
        start(programs("coordinates").find_ones, bits, data, bits, before, positions)
    return positions


def _of_nothing(data: Tensor, count: int, units: int) -> Tensor:
    """No indices out of no bytes; any other count is wrong."""
    if count or data.numel():
        raise WireError(WireReason.COORDINATES, f"{data.numel()} bytes for {count} indices")
    return torch.empty(0, dtype=index_dtype(units), device=data.device)
