"""Movements on a GPU; what its programs cannot take goes on to the next layer."""

from torch import Tensor

from thinwire.kernels.triton.base import FLOATS, INDICES, OnGpu, programs, start


class TritonMovement(OnGpu):
    """Movements of float32 and float64 tensors on a GPU."""

    def scatter_add_(self, out: Tensor, indices: Tensor, values: Tensor) -> None:
        """Add each value at its index; the indices are unique.

        Raises:
            IndexError: An index lies outside ``out``. Nothing was added.
        """
        fits = out.dtype in FLOATS and values.dtype == out.dtype and indices.dtype in INDICES
        if not fits or indices.numel() != values.numel() or not self.takes(out, indices, values):
            super().scatter_add_(out, indices, values)
            return
        if bool(((indices < 0) | (indices >= out.numel())).any()):
            raise IndexError(f"an index is outside the {out.numel()} elements to be added to; nothing was added")
        start(programs("movement").drop, indices.numel(), out, indices, values, indices.numel())
