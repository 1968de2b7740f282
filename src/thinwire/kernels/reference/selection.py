"""Which elements are worth sending: selection kernels in plain torch and numpy."""

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from thinwire.kernels.reference.sums import sum_of_squares
from thinwire.types import index_dtype


class Taken(NamedTuple):
    """What was taken out of a debt."""

    indices: Tensor
    values: Tensor
    energy: float
    """The sum of squares of what was owed, in about four digits; no finite number exactly if some element was none."""


class SelectionKernels:
    """Selections.

    They take a contiguous one-dimensional float tensor of finite numbers on any device, and return strictly
    increasing indices in the narrowest type that fits (`thinwire.types.index_dtype`).
    """

    def top_k(self, values: Tensor, k: int) -> Tensor:
        """The indices of the ``k`` largest magnitudes, increasing; equal magnitudes go to the lowest index first."""
        n = values.numel()
        if k <= 0:
            return torch.empty(0, dtype=index_dtype(n), device=values.device)
        if k >= n:
            return torch.arange(n, dtype=index_dtype(n), device=values.device)
        magnitudes = values.abs()
        floor = _kth_largest(magnitudes, k)
        above = magnitudes > floor
        ties = torch.nonzero(magnitudes == floor).squeeze(1)
        above[ties[: k - int(above.sum())]] = True
        return torch.nonzero(above).squeeze(1).to(index_dtype(n))

    def energy(self, values: Tensor) -> float:
        """The sum of squares; not a finite number exactly if some element is not.

        Squares are taken and summed in float64, in the order of `thinwire.kernels.reference.sums`, so those of float32
        neither overflow nor vanish. A sum that overflows nevertheless is the largest finite number.
        """
        return sum_of_squares(values)

    def take_top_k(self, owed: Tensor, gradient: Tensor, out: Tensor, k: int) -> Taken:
        """Error feedback and top-k in one: add the gradient to what is owed, and take the largest out of the sum.

        Args:
            owed: What was owed before.
            gradient: What is new, of the same type and length.
            out: Where the sum is written; it may be ``owed`` itself. It ends up as zero where an element was taken.
            k: How many to take, as `top_k` selects them.

        Returns:
            What was taken. Where some sum is not a finite number nothing is taken.
        """
        torch.add(owed, gradient, out=out)
        energy = self.energy(out)
        indices = self.top_k(out, k if math.isfinite(energy) else 0)
        values = out.index_select(0, indices)
        out.index_fill_(0, indices.long(), 0.0)
        return Taken(indices, values, energy)

    def at_least(self, values: Tensor, threshold: float) -> Tensor:
        """The indices of all magnitudes that are not below ``threshold``, increasing."""
        return torch.nonzero(values.abs() >= threshold).squeeze(1).to(index_dtype(values.numel()))


def _kth_largest(magnitudes: Tensor, k: int) -> Tensor:
    """The k-th largest magnitude. numpy's partition is ten times faster than torch's topk on a CPU."""
    if magnitudes.device.type == "cpu":
        array = magnitudes.numpy()
        return torch.tensor(np.partition(array, array.size - k)[array.size - k], dtype=magnitudes.dtype)
    return magnitudes.topk(k, sorted=True).values[-1]
