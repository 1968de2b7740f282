"""Statistics by the compiled kernels; what they cannot take goes down to the reference."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import thinwire._native as _native
from thinwire.kernels.native.base import FLOATS, OnMachine, fits
from thinwire.kernels.reference.statistics import (
    Moments,
    Spectrum,
    StatisticsKernels,
    check_epsilon,
    check_segments,
    moments_of,
    ranks_of,
    spectrum_of,
)
from thinwire.types import index_dtype


class NativeStatistics(OnMachine, StatisticsKernels):
    """Statistics of float32 and float64 tensors in main memory."""

    def energy(self, values: Tensor) -> float:
        """The sum of squares; not a finite number exactly if some element is not."""
        return _native.energy(self.machine, values) if fits(values, FLOATS) else super().energy(values)

    def moments(self, values: Tensor) -> Moments:
        """Means, variance and the largest magnitude in one pass."""
        if not fits(values, FLOATS):
            return super().moments(values)
        total, magnitudes, squares, largest = _native.moments(self.machine, values)
        return moments_of(values.numel(), (total, magnitudes, squares), largest)

    def count_at_least(self, values: Tensor, threshold: float) -> int:
        """How many magnitudes are not below ``threshold``."""
        if not fits(values, FLOATS):
            return super().count_at_least(values, threshold)
        return _native.count_at_least(self.machine, values, threshold)

    def at_least(self, values: Tensor, threshold: float) -> Tensor:
        """The indices of all magnitudes that are not below ``threshold``, increasing."""
        if not fits(values, FLOATS):
            return super().at_least(values, threshold)
        out = _Indices(values.numel())
        _native.at_least(self.machine, values, threshold, out.allocate)
        return out.tensor

    def spectrum(self, values: Tensor, counts: Sequence[int]) -> Spectrum:
        """Thresholds and energies of the k largest magnitudes for many k at once, exactly.

        Raises:
            ValueError: The candidates decrease.
        """
        if not fits(values, FLOATS):
            return super().spectrum(values, counts)
        ranks = torch.tensor(ranks_of(counts, values.numel()), dtype=torch.int64)
        thresholds = torch.empty(ranks.numel(), dtype=values.dtype)
        energies = torch.empty(ranks.numel(), dtype=torch.float64)
        total = _native.spectrum(self.machine, values, ranks, thresholds, energies)
        return spectrum_of(len(counts), thresholds.tolist(), energies.tolist(), total)

    def importance(self, values: Tensor, weights: Tensor, epsilon: float, k: int) -> Tensor:
        """The indices of the ``k`` largest ``|value| / (|weight| + epsilon)``; equal ones lowest index first.

        Raises:
            ValueError: The epsilon is not positive.
        """
        if not 0 < k < values.numel() or not _fit_together(values, weights):
            return super().importance(values, weights, epsilon, k)
        check_epsilon(epsilon, values.dtype)
        out = torch.empty(k, dtype=index_dtype(values.numel()))
        _native.importance(self.machine, values, weights, epsilon, out)
        return out

    def importance_at_least(self, values: Tensor, weights: Tensor, epsilon: float, threshold: float) -> Tensor:
        """The indices of all ``|value| / (|weight| + epsilon)`` that are not below ``threshold``, increasing.

        Raises:
            ValueError: The epsilon is not positive.
        """
        if not _fit_together(values, weights):
            return super().importance_at_least(values, weights, epsilon, threshold)
        check_epsilon(epsilon, values.dtype)
        out = _Indices(values.numel())
        _native.importance_at_least(self.machine, values, weights, epsilon, threshold, out.allocate)
        return out.tensor

    def strength(self, values: Tensor, width: int) -> Tensor:
        """The Euclidean norm of each unit of ``width`` elements, in float64; the last unit may be short."""
        if not fits(values, FLOATS):
            return super().strength(values, width)
        out = torch.empty(-(-values.numel() // width), dtype=torch.float64)
        _native.strength(self.machine, values, width, out)
        return out

    def top_k_segments(self, values: Tensor, bounds: Sequence[int], counts: Sequence[int]) -> Tensor:
        """The `top_k` of each of several segments, one list behind the other.

        Raises:
            ValueError: The bounds decrease, lie outside the vector or are not one more than the counts.
        """
        if not fits(values, FLOATS):
            return super().top_k_segments(values, bounds, counts)
        check_segments(values.numel(), bounds, counts)
        edges, wanted = torch.tensor([*bounds], dtype=torch.int64), torch.tensor([*counts], dtype=torch.int64)
        wanted = torch.minimum(wanted, edges.diff()).clamp_(min=0)
        out = torch.empty(int(wanted.sum()), dtype=index_dtype(values.numel()))
        _native.top_k_segments(self.machine, values, edges, wanted, out)
        return out

    def _sample(self, values: Tensor, stride: int, seed: int) -> NDArray[np.floating]:
        """The magnitudes of one element in every stride, increasing."""
        if not fits(values, FLOATS) or stride >> 32:
            return super()._sample(values, stride, seed)
        out = torch.empty(-(-values.numel() // stride), dtype=values.dtype)
        found: NDArray[np.floating] = out[: _native.sample(self.machine, values, stride, seed % 2**64, out)].numpy()
        np.abs(found, out=found)
        found.sort()
        return found


class _Indices:
    """Makes room for indices when their number is known."""

    tensor: Tensor

    def __init__(self, n: int) -> None:
        self.dtype = index_dtype(n)

    def allocate(self, count: int) -> Tensor:
        self.tensor = torch.empty(count, dtype=self.dtype)
        return self.tensor


def _fit_together(values: Tensor, weights: Tensor) -> bool:
    """Whether the compiled code can take both."""
    return fits(values, FLOATS) and fits(weights, (values.dtype,)) and values.numel() == weights.numel()
