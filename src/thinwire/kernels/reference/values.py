"""Values as bytes, and back, and the checksum of bytes, in plain torch and numpy.

The value formats are specified in ``docs/wire-format.md``. Bytes live on the CPU.
"""

import math
import zlib

import numpy as np
import torch
from torch import Tensor

from thinwire.errors import WireError, WireReason
from thinwire.types import ValueFormat

STEPS = 127


class ValueKernels:
    """Values as bytes. What is packed is finite; what reads bytes trusts nothing."""

    def pack_values(self, values: Tensor, format: ValueFormat, scale: float = 1.0, *, out: Tensor) -> None:
        """Write the nearest values that a format has, ties to even; what is beyond its range becomes the end of it.

        Args:
            values: Finite numbers, flat.
            format: Any format but those of levels.
            scale: For INT8, the value of one step.
            out: Bytes of exactly the size they take.
        """
        values = values.cpu()
        if format is ValueFormat.INT8:
            values = torch.round(values / scale).clamp(-STEPS, STEPS)
        elif (limit := torch.finfo(format.dtype).max) < torch.finfo(values.dtype).max:
            values = values.clamp(-limit, limit)
        written = values.to(format.dtype).contiguous()
        # A single element may have any stride, and only one of 1 can be viewed as bytes.
        out.copy_(written.as_strided((written.numel(),), (1,)).view(torch.uint8))

    def unpack_values(self, data: Tensor, format: ValueFormat, scale: float, dtype: torch.dtype) -> Tensor:
        """Read what `pack_values` wrote.

        Args:
            data: Whole values.
            format: Any format but those of levels; F64 for float64 only.
            scale: For INT8, the value of one step.
            dtype: What they become, float32 or float64.

        Returns:
            The values, in memory of their own.

        Raises:
            WireError: VALUE if some value is not a finite number.
        """
        # A copy: the section may begin at an address that the value type must not have.
        values = data.clone().view(format.dtype).to(dtype)
        if format is ValueFormat.INT8:
            values = values * scale
        # The norm is a pass at the speed of memory; only where it overflows the slow way has to tell.
        if not math.isfinite(float(torch.linalg.vector_norm(values))) and not bool(torch.isfinite(values).all()):
            raise WireError(WireReason.VALUE)
        return values

    def pack_levels(self, values: Tensor, levels: Tensor, *, out: Tensor) -> None:
        """Write each value as its sign and the number of the nearest level, the lower one of equally near.

        Exactly: as many levels are passed as there are `bounds` below the magnitude.

        Args:
            values: Finite numbers, flat.
            levels: 2 or 8 magnitudes of the type of the values, none smaller than the one before it.
            out: Bytes of exactly the size the codes take.
        """
        values = values.cpu()
        numbers = torch.bucketize(values.abs(), bounds(levels)).to(torch.uint8)
        codes = (numbers | torch.signbit(values).to(torch.uint8) * levels.numel()).numpy()
        each = _in_a_byte(levels)
        rows = np.zeros((out.numel(), each), dtype=np.uint8)
        rows.reshape(-1)[: codes.size] = codes
        shifts = np.arange(each, dtype=np.uint8) * (8 // each)
        out.copy_(torch.from_numpy(np.bitwise_or.reduce(rows << shifts, axis=1, dtype=np.uint8)))

    def unpack_levels(self, data: Tensor, count: int, levels: Tensor) -> Tensor:
        """Read what `pack_levels` wrote.

        Args:
            data: The codes.
            count: How many there are.
            levels: As they were written.

        Returns:
            The values, of the type of the levels.

        Raises:
            WireError: PADDING if unused bits are not zero.
        """
        each = _in_a_byte(levels)
        shifts = np.arange(each, dtype=np.uint8) * (8 // each)
        codes = (data.numpy()[:, None] >> shifts).reshape(-1) & (2 * levels.numel() - 1)
        if codes[count:].any():
            raise WireError(WireReason.PADDING, "behind the last value")
        return torch.cat([levels, -levels])[torch.from_numpy(codes[:count]).long()]

    def crc32(self, data: Tensor, before: int = 0) -> int:
        """The CRC-32 of zlib.

        Args:
            data: Bytes.
            before: The CRC-32 of the bytes in front of them.

        Returns:
            The CRC-32 of both.
        """
        return zlib.crc32(data.numpy().data, before)


def bounds(levels: Tensor) -> Tensor:
    """The magnitudes half-way between the levels. Halved before they are added, which cannot overflow."""
    return levels[1:] / 2 + levels[:-1] / 2


def _in_a_byte(levels: Tensor) -> int:
    """Codes in a byte: a sign and a level take two bits or four."""
    return 4 if levels.numel() == 2 else 2
