"""Values as bytes by the compiled kernels; what they cannot take goes down to the reference."""

import torch
from torch import Tensor

import thinwire._native as _native
from thinwire.errors import WireError, WireReason
from thinwire.kernels.native.base import FLOATS, OnMachine, fits
from thinwire.kernels.reference.values import ValueKernels, bounds
from thinwire.types import ValueFormat

_BYTES = (torch.uint8,)
_WIDE_MACHINES = ("avx2", "avx512")


class NativeValues(OnMachine, ValueKernels):
    """Values of float32 and float64 tensors in main memory."""

    def pack_values(self, values: Tensor, format: ValueFormat, scale: float = 1.0, *, out: Tensor) -> None:
        """Write the nearest values that a format has, ties to even; what is beyond its range becomes the end of it."""
        plain = format in (ValueFormat.F32, ValueFormat.F64)
        if plain or not self._converts(format) or not fits(values, FLOATS) or not fits(out, _BYTES):
            super().pack_values(values, format, scale, out=out)
            return
        _native.pack_values(self.machine, values, int(format), scale, out)

    def unpack_values(self, data: Tensor, format: ValueFormat, scale: float, dtype: torch.dtype) -> Tensor:
        """Read what `pack_values` wrote, from any address.

        Raises:
            WireError: VALUE if some value is not a finite number.
        """
        if not self._converts(format) or not fits(data, _BYTES):
            return super().unpack_values(data, format, scale, dtype)
        out = torch.empty(data.numel() // format.dtype.itemsize, dtype=dtype)
        if not _native.unpack_values(self.machine, data, int(format), scale, out):
            raise WireError(WireReason.VALUE)
        return out

    def pack_levels(self, values: Tensor, levels: Tensor, *, out: Tensor) -> None:
        """Write each value as its sign and the number of the nearest level, the lower one of equally near."""
        if not fits(values, (levels.dtype,)) or not fits(levels, FLOATS) or not fits(out, _BYTES):
            super().pack_levels(values, levels, out=out)
            return
        _native.pack_levels(self.machine, values, bounds(levels), out)

    def unpack_levels(self, data: Tensor, count: int, levels: Tensor) -> Tensor:
        """Read what `pack_levels` wrote.

        Raises:
            WireError: PADDING if unused bits are not zero.
        """
        if not fits(data, _BYTES) or not fits(levels, FLOATS):
            return super().unpack_levels(data, count, levels)
        spare = -count * levels.numel().bit_length() % 8
        if spare and int(data[-1]) >> (8 - spare):
            raise WireError(WireReason.PADDING, "behind the last value")
        out = torch.empty(count, dtype=levels.dtype)
        _native.unpack_levels(self.machine, data, levels, out)
        return out

    def crc32(self, data: Tensor, before: int = 0) -> int:
        """The CRC-32 of zlib, by multiplication without carries where the processor has it."""
        if self.machine.isa not in _WIDE_MACHINES or not fits(data, _BYTES):
            return super().crc32(data, before)
        return _native.crc32(self.machine, data, before)

    def _converts(self, format: ValueFormat) -> bool:
        """Half precision takes instructions that a plain processor need not have."""
        return format is not ValueFormat.F16 or self.machine.isa in _WIDE_MACHINES
