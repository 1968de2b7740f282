"""Coordinate sections by the compiled kernels; what they cannot take goes down to the reference."""

import torch
from torch import Tensor

import thinwire._native as _native
from thinwire.errors import WireError, WireReason
from thinwire.kernels.native.base import INDICES, OK, OnMachine, check, fits
from thinwire.kernels.reference.coordinates import CoordinateKernels
from thinwire.types import index_dtype


class NativeCoordinates(OnMachine, CoordinateKernels):
    """Coordinate sections of float32 and float64 tensors in main memory."""

    def rice_write(self, indices: Tensor, units: int) -> Tensor:
        """Write increasing indices as Rice-coded gaps: parameter byte, low bits, unary quotients.

        Raises:
            ValueError: The indices are not a strictly increasing list below ``units``.
        """
        indices = indices.cpu()
        if not fits(indices, INDICES):
            return super().rice_write(indices, units)
        status, bits, size = _native.rice_plan(self.machine, indices, units)
        out = torch.empty(size, dtype=torch.uint8)
        if status == OK and size:
            status = _native.rice_write(self.machine, indices, bits, out)
        if status != OK:
            raise ValueError(f"the indices to be written are not a strictly increasing list below {units}")
        return out

    def rice_read(self, data: Tensor, count: int, units: int) -> Tensor:
        """Read what `rice_write` wrote, trusting nothing.

        Raises:
            WireError: COORDINATES, PADDING or RANGE.
        """
        if count == 0 or not fits(data, (torch.uint8,)):
            return super().rice_read(data, count, units)
        # Every index takes at least one bit: refuse an absurd count before there is memory for it.
        if not 0 < count <= 8 * data.numel():
            raise WireError(WireReason.COORDINATES, f"{count} indices in {data.numel()} bytes")
        out = torch.empty(count, dtype=index_dtype(units))
        check(_native.rice_read(self.machine, data, units, out), f"{count} Rice-coded indices below {units}")
        return out

    def bitmap_write(self, indices: Tensor, units: int) -> Tensor:
        """One bit for each unit, lowest bit first.

        Raises:
            IndexError: An index is not below ``units``.
        """
        indices = indices.cpu()
        if not fits(indices, INDICES):
            return super().bitmap_write(indices, units)
        out = torch.empty(-(-units // 8), dtype=torch.uint8)
        if _native.bitmap_write(self.machine, indices, units, out) != OK:
            raise IndexError(f"an index to be written is not below {units}")
        return out

    def bitmap_read(self, data: Tensor, count: int, units: int) -> Tensor:
        """Read what `bitmap_write` wrote.

        Raises:
            WireError: COORDINATES or PADDING.
        """
        if not 0 <= count <= units or not fits(data, (torch.uint8,)):
            return super().bitmap_read(data, count, units)
        # A bitmap of another size is refused before there is memory for its indices.
        if data.numel() != -(-units // 8):
            raise WireError(WireReason.COORDINATES, f"a bitmap of {data.numel()} bytes for {units} units")
        out = torch.empty(count, dtype=index_dtype(units))
        check(_native.bitmap_read(self.machine, data, units, out), f"a bitmap of {count} indices below {units}")
        return out

    def bitmap_of_members_write(self, indices: Tensor, members: Tensor) -> Tensor:
        """One bit for each member of a list that both sides know: the hash bitmap of Zen.

        Raises:
            IndexError: An index is no member.
        """
        if not fits(members, INDICES) or not fits(indices, (members.dtype,)):
            return super().bitmap_of_members_write(indices, members)
        out = torch.empty(-(-members.numel() // 8), dtype=torch.uint8)
        if _native.members_write(self.machine, indices, members, out) != OK:
            raise IndexError(f"an index to be written is none of the {members.numel()} members")
        return out

    def bitmap_of_members_read(self, data: Tensor, count: int, members: Tensor) -> Tensor:
        """Read what `bitmap_of_members_write` wrote.

        Raises:
            WireError: COORDINATES or PADDING.
        """
        known = members.numel()
        if not 0 <= count <= known or not fits(data, (torch.uint8,)) or not fits(members, INDICES):
            return super().bitmap_of_members_read(data, count, members)
        out = torch.empty(count, dtype=members.dtype)
        check(_native.members_read(self.machine, data, members, out), f"a bitmap of {count} of {known} members")
        return out
