"""Selections by the compiled kernels; what they cannot take goes down to the reference."""

import torch
from torch import Tensor

import thinwire._native as _native
from thinwire.kernels.native.base import FLOATS, OnMachine, fits
from thinwire.kernels.reference.selection import SelectionKernels, Taken
from thinwire.types import index_dtype


class NativeSelection(OnMachine, SelectionKernels):
    """Selections of float32 and float64 tensors in main memory."""

    def top_k(self, values: Tensor, k: int) -> Tensor:
        """The indices of the ``k`` largest magnitudes, increasing; equal magnitudes go to the lowest index first."""
        if not 0 < k < values.numel() or not fits(values, FLOATS):
            return super().top_k(values, k)
        out = torch.empty(k, dtype=index_dtype(values.numel()))
        _native.top_k(self.machine, values, out)
        return out

    def take_top_k(self, owed: Tensor, gradient: Tensor, out: Tensor, k: int) -> Taken:
        """Error feedback and top-k in one pass; see the reference."""
        n = out.numel()
        same = owed.numel() == gradient.numel() == n and fits(out, FLOATS)
        if not same or not fits(owed, (out.dtype,)) or not fits(gradient, (out.dtype,)):
            return super().take_top_k(owed, gradient, out, k)
        count = min(max(k, 0), n)
        indices, values = torch.empty(count, dtype=index_dtype(n)), torch.empty(count, dtype=out.dtype)
        energy, taken = _native.take_top_k(self.machine, owed, gradient, out, indices, values)
        return Taken(indices[:taken], values[:taken], energy)
