"""Increasing lists of indices as bytes, and back, in plain numpy.

The coordinate sections (Rice, bitmap) are specified in ``docs/wire-format.md``; they live on the CPU.
"""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from thinwire.errors import WireError, WireReason
from thinwire.types import index_dtype

MAX_RICE_BITS = 40


class CoordinateKernels:
    """Coordinate sections. What reads bytes trusts nothing."""

    def rice_write(self, indices: Tensor, units: int) -> Tensor:
        """Write increasing indices as Rice-coded gaps: parameter byte, low bits, unary quotients.

        The parameter is the one that gives the fewest bits (the smallest of equals), so one list has one form.
        """
        positions = indices.cpu().numpy().astype(np.int64)
        if positions.size == 0:
            return torch.empty(0, dtype=torch.uint8)
        gaps = np.diff(positions, prepend=-1) - 1
        bits = best_rice_bits(gaps)
        low = (gaps[:, None] >> np.arange(bits)) & 1
        ends = np.cumsum((gaps >> bits) + 1) - 1
        unary = np.zeros(int(ends[-1]) + 1, dtype=np.uint8)
        unary[ends] = 1
        parts = [
            np.array([bits], dtype=np.uint8),
            np.packbits(low.astype(np.uint8).reshape(-1), bitorder="little"),
            np.packbits(unary, bitorder="little"),
        ]
        return torch.from_numpy(np.concatenate(parts))

    def rice_read(self, data: Tensor, count: int, units: int) -> Tensor:
        """Read what `rice_write` wrote, trusting nothing.

        Raises:
            WireError: COORDINATES, PADDING or RANGE.
        """
        raw = data.numpy()
        if count == 0:
            if raw.size:
                raise WireError(WireReason.COORDINATES, "bytes for no indices")
            return torch.empty(0, dtype=index_dtype(units))
        if count > 8 * raw.size:
            raise WireError(WireReason.COORDINATES, f"{raw.size} bytes for {count} indices")
        bits = int(raw[0])
        low_bytes = math.ceil(count * bits / 8)
        if bits > MAX_RICE_BITS or raw.size < 1 + low_bytes:
            raise WireError(WireReason.COORDINATES, "Rice parameter or length")
        low_bits = np.unpackbits(raw[1 : 1 + low_bytes], bitorder="little")
        if low_bits[count * bits :].any():
            raise WireError(WireReason.PADDING, "behind the low bits")
        low = low_bits[: count * bits].reshape(count, bits).astype(np.int64) @ (1 << np.arange(bits, dtype=np.int64))
        quotients = _read_unary(raw[1 + low_bytes :], count)
        # Compare as floats first: a sum of hostile gaps could wrap around in 64 bits and look harmless.
        if (quotients.astype(np.float64) * 2.0**bits + low).sum() + count > units + 0.5:
            raise WireError(WireReason.RANGE, f"beyond {units} units")
        positions = np.cumsum((quotients << bits) + low + 1) - 1
        return torch.from_numpy(positions).to(index_dtype(units))

    def bitmap_write(self, indices: Tensor, units: int) -> Tensor:
        """One bit for each unit, lowest bit first."""
        flags = np.zeros(units, dtype=np.uint8)
        flags[indices.cpu().numpy()] = 1
        return torch.from_numpy(np.packbits(flags, bitorder="little"))

    def bitmap_read(self, data: Tensor, count: int, units: int) -> Tensor:
        """Read what `bitmap_write` wrote.

        Raises:
            WireError: COORDINATES or PADDING.
        """
        raw = data.numpy()
        if raw.size != -(-units // 8):
            raise WireError(WireReason.COORDINATES, f"a bitmap of {raw.size} bytes for {units} units")
        flags = np.unpackbits(raw, bitorder="little")
        if flags[units:].any():
            raise WireError(WireReason.PADDING, "behind the last unit")
        positions = np.flatnonzero(flags[:units])
        if positions.size != count:
            raise WireError(WireReason.COORDINATES, f"{positions.size} bits set for {count} indices")
        return torch.from_numpy(positions).to(index_dtype(units))

    def bitmap_of_members_write(self, indices: Tensor, members: Tensor) -> Tensor:
        """One bit for each member of a list that both sides know: the hash bitmap of Zen.

        Args:
            indices: Increasing, each one a member.
            members: Increasing; for Zen, the units that one owner has.

        Returns:
            The bits, that of the first member lowest.

        Raises:
            IndexError: An index is no member.
        """
        indices, members = indices.cpu(), members.cpu()
        places = torch.searchsorted(members, indices)
        inside = bool((places < members.numel()).all())
        if not inside or not torch.equal(members[places], indices.to(members.dtype)):
            raise IndexError(f"an index to be written is none of the {members.numel()} members")
        return self.bitmap_write(places, members.numel())

    def bitmap_of_members_read(self, data: Tensor, count: int, members: Tensor) -> Tensor:
        """Read what `bitmap_of_members_write` wrote.

        Raises:
            WireError: COORDINATES or PADDING.
        """
        return members.cpu()[self.bitmap_read(data, count, members.numel()).long()]


def best_rice_bits(gaps: NDArray[np.int64]) -> int:
    """The Rice parameter with the fewest total bits; the cost is convex in it, so the first rise ends the search."""

    def cost(bits: int) -> int:
        return gaps.size * (bits + 1) + int((gaps >> bits).sum())

    best, price = 0, cost(0)
    for bits in range(1, MAX_RICE_BITS + 1):
        candidate = cost(bits)
        if candidate >= price:
            break
        best, price = bits, candidate
    return best


def _read_unary(raw: NDArray[np.uint8], count: int) -> NDArray[np.int64]:
    """The ``count`` unary numbers: so many zeros, then a one. Nothing may follow the last one but padding."""
    flags = np.unpackbits(raw, bitorder="little")
    ends = np.flatnonzero(flags)
    if ends.size != count:
        raise WireError(WireReason.COORDINATES, f"{ends.size} unary numbers for {count} indices")
    if flags.size - int(ends[-1]) > 8:
        raise WireError(WireReason.PADDING, "whole unused bytes")
    return np.diff(ends, prepend=-1) - 1
