"""Selections on a GPU; what its programs cannot take goes on to the next layer."""

import math
import sys

import numpy as np
import torch
from torch import Tensor

from thinwire.kernels.reference.selection import Taken
from thinwire.kernels.triton.base import FLOATS, OnGpu, blocks_of, programs, start, sums_before
from thinwire.types import index_dtype

_HEAD = 2
_WIDEST = 8
DIGITS = {4: (7, 6, 6, 6, 6), 8: (8, 8, 8, 8, 8, 8, 8, 7)}
"""By bytes of a value, the widths of the digits of its magnitude, which has one bit less than the value.

Narrow ones take more passes; but the compiler makes a histogram by asking each bin, element by element, what is in it.
"""


class TritonSelection(OnGpu):
    """Selections of float32 and float64 tensors on a GPU."""

    def top_k(self, values: Tensor, k: int) -> Tensor:
        """The indices of the ``k`` largest magnitudes, increasing; equal magnitudes go to the lowest index first."""
        if values.dtype not in FLOATS or not 0 < k < values.numel() or not self.takes(values):
            return super().top_k(values, k)
        state = _state_of_kth(values, k)
        before, _ = _sums_of_blocks(values, state)
        return _picked(values, state, before, k)

    def at_least(self, values: Tensor, threshold: float) -> Tensor:
        """The indices of all magnitudes that are not below ``threshold``, increasing."""
        if values.dtype not in FLOATS or not values.numel() or not self.takes(values) or math.isnan(threshold):
            return super().at_least(values, threshold)
        # What is not below a number is above the number that is one less.
        state = torch.tensor([_as_whole_number(threshold, values.dtype) - 1, 0], device=values.device)
        before, totals = _sums_of_blocks(values, state)
        return _picked(values, state, before, int(totals[0]))

    def energy(self, values: Tensor) -> float:
        """The sum of squares; not a finite number exactly if some element is not."""
        if values.dtype not in FLOATS or not self.takes(values):
            return super().energy(values)
        energies = _room_for_energies(values)
        start(programs("selection").square, values.numel(), values, values.numel(), energies)
        return self._sum(energies, values)

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
        alike = {(t.dtype, t.numel()) for t in (owed, gradient, out)}
        if out.dtype not in FLOATS or len(alike) > 1 or not self.takes(owed, gradient, out):
            return super().take_top_k(owed, gradient, out, k)
        energies = _room_for_energies(out)
        start(programs("selection").owe, out.numel(), owed, gradient, out, energies, out.numel())
        energy = self._sum(energies, out)
        indices = self.top_k(out, k if math.isfinite(energy) else 0)
        values = torch.empty(indices.numel(), dtype=out.dtype, device=out.device)
        start(programs("movement").lift, indices.numel(), out, indices, values, indices.numel())
        return Taken(indices, values, energy)

    def _sum(self, energies: Tensor, values: Tensor) -> float:
        """The sum of squares; where it is near the end of the numbers or beyond, the reference has the last word."""
        total = float(energies.sum())
        return total if total <= sys.float_info.max / 4 else super().energy(values)


def _state_of_kth(values: Tensor, k: int) -> Tensor:
    """The state that has found the k-th largest magnitude, and how many of its equals are among the k largest."""
    widths = DIGITS[values.itemsize]
    states = torch.zeros(len(widths) + 1, _HEAD + (1 << _WIDEST), dtype=torch.int64, device=values.device)
    states[0, 1] = k
    shift, n = sum(widths), values.numel()
    for state, following, width in zip(states, states[1:], widths, strict=False):
        shift -= width
        digits = {"SHIFT": shift, "BINS": 1 << width}
        start(programs("selection").tally, n, values, n, state, **digits)
        start(programs("selection").descend, 1, state, following, **digits)
    return states[-1]


def _sums_of_blocks(values: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """How many elements above the state's number, and how many that equal it, lie before each block and in all."""
    n = values.numel()
    counts = torch.empty(2, blocks_of(n), dtype=torch.int32, device=values.device)
    start(programs("selection").count, n, values, n, state, counts)
    return sums_before(counts)


def _picked(values: Tensor, state: Tensor, before: Tensor, k: int) -> Tensor:
    """The ``k`` indices that a state selects."""
    n = values.numel()
    out = torch.empty(k, dtype=index_dtype(n), device=values.device)
    if k:
        start(programs("selection").pick, n, values, n, state, before, out)
    return out


def _as_whole_number(threshold: float, dtype: torch.dtype) -> int:
    """The bits of a threshold in the precision of the values; whatever is not above zero is zero."""
    if threshold <= 0.0:
        return 0
    wide = np.float64(threshold)
    with np.errstate(over="ignore"):
        return int(wide.view(np.int64)) if dtype == torch.float64 else int(np.float32(wide).view(np.int32))


def _room_for_energies(values: Tensor) -> Tensor:
    """One number for each block."""
    return torch.empty(blocks_of(values.numel()), dtype=torch.float64, device=values.device)
