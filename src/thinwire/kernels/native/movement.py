"""Movements by the compiled kernels; what they cannot take goes down to the reference."""

from torch import Tensor

import thinwire._native as _native
from thinwire.kernels.native.base import FLOATS, INDICES, OK, OnMachine, fits
from thinwire.kernels.reference.movement import MovementKernels


class NativeMovement(OnMachine, MovementKernels):
    """Movements of float32 and float64 tensors in main memory."""

    def scatter_add_(self, out: Tensor, indices: Tensor, values: Tensor) -> None:
        """Add each value at its index, in the order of the list.

        Raises:
            IndexError: An index lies outside ``out``. Nothing was added.
        """
        can = fits(out, FLOATS) and fits(indices, INDICES) and fits(values, (out.dtype,))
        if not can or indices.numel() != values.numel():
            super().scatter_add_(out, indices, values)
            return
        if _native.scatter_add(self.machine, out, indices, values) != OK:
            raise IndexError(f"an index is outside the {out.numel()} elements to be added to; nothing was added")
