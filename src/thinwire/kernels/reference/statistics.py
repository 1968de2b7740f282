"""What a vector's magnitudes are like, and selections that follow from that, in plain torch and numpy."""

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from thinwire.kernels.reference.sampling import SampledSpectrum, estimate, lots
from thinwire.kernels.reference.selection import SelectionKernels
from thinwire.kernels.reference.sums import exact_energies, sum_of_tiles, tiles
from thinwire.types import index_dtype

SAMPLE = 1 << 16


class Spectrum(NamedTuple):
    """For each candidate k, from the smallest: what the k largest magnitudes are like."""

    thresholds: tuple[float, ...]
    """The k-th largest magnitude; infinite for k = 0."""
    energies: tuple[float, ...]
    """The sum of squares of the k largest, exact but for one rounding at its end."""
    total: float
    """The energy of all elements."""


class Moments(NamedTuple):
    """A vector in four numbers. They are zero for an empty one."""

    mean: float
    mean_magnitude: float
    variance: float
    """Of the elements themselves (divided by their number)."""
    largest: float
    """The largest magnitude."""


class StatisticsKernels(SelectionKernels):
    """Statistics. They take a contiguous one-dimensional float tensor of finite numbers on any device."""

    def moments(self, values: Tensor) -> Moments:
        """Means, variance and the largest magnitude in one pass, summed in the order of the energy.

        The variance is the mean square less the square of the mean, in float64: where the mean is a million times the
        standard deviation, about four digits of it are left.
        """
        parts = tiles(values).double()
        sums = (sum_of_tiles(parts), sum_of_tiles(parts.abs()), sum_of_tiles(parts.square()))
        return moments_of(values.numel(), sums, float(values.abs().max()) if values.numel() else 0.0)

    def count_at_least(self, values: Tensor, threshold: float) -> int:
        """How many magnitudes are not below ``threshold``."""
        return int((values.abs() >= threshold).sum())

    def spectrum(self, values: Tensor, counts: Sequence[int]) -> Spectrum:
        """Thresholds and energies of the k largest magnitudes for many k at once, exactly.

        What would be kept at each density follows, without trying any: ``energies[j] / total``.

        Args:
            values: Float32 or float64; narrower types are widened to float32.
            counts: The candidates, not decreasing; more than there are elements means all of them.

        Raises:
            ValueError: The candidates decrease.
        """
        ranks = ranks_of(counts, values.numel())
        flat = values.detach().cpu()
        flat = flat if flat.dtype == torch.float64 else flat.float()
        descending = np.sort(flat.abs().numpy())[::-1]
        thresholds = [float(descending[rank - 1]) for rank in ranks]
        energies = exact_energies(descending, ranks) if ranks else []
        return spectrum_of(len(counts), thresholds, energies, self.energy(values))

    def sampled_spectrum(
        self, values: Tensor, counts: Sequence[int], seed: int, sample: int = SAMPLE
    ) -> SampledSpectrum:
        """Thresholds, and the energy of what is not among the k largest, estimated from a small sample.

        Args:
            values: The vector.
            counts: The candidates.
            seed: Chooses where to look; the same seed looks at the same places everywhere.
            sample: About how many elements to look at. The bounds narrow with the square root of how many of them are
                among the k largest.
        """
        stride = stride_of(values.numel(), sample)
        return estimate(self._sample(values, stride, seed)[::-1], stride, counts)

    def gaussian_threshold(self, values: Tensor, k: int, one_sided: bool = False) -> float:
        """The threshold that about k of the magnitudes reach if the elements are normally distributed.

        Args:
            values: The vector.
            k: How many are wanted.
            one_sided: As the paper is summarised: the quantile for k / n in the upper tail alone, though the threshold
                is then compared with magnitudes, so twice as many reach it. The released code has half of them in
                each tail, which is the default.

        Returns:
            Mean plus quantile times standard deviation; infinite for no k, 0 for every element.
        """
        n = values.numel()
        if not 0 < k < n:
            return math.inf if k <= 0 else 0.0
        found = self.moments(values)
        share = k / n if one_sided else k / (2 * n)
        return max(found.mean - NormalDist().inv_cdf(share) * math.sqrt(found.variance), 0.0)

    def sampled_threshold(self, values: Tensor, k: int, seed: int, share: float = 0.01) -> float:
        """The threshold that about k of the magnitudes reach, from a sample (Deep Gradient Compression).

        Args:
            values: The vector.
            k: How many are wanted.
            seed: Chooses where to look.
            share: How much of the vector to look at.

        Returns:
            The magnitude of the rank in the sample that k has in the whole; infinite for no k.
        """
        if k <= 0 or values.numel() == 0:
            return math.inf
        stride = stride_of(values.numel(), math.ceil(share * values.numel()))
        sample = self._sample(values, stride, seed)
        return float(sample[-min(math.ceil(k / stride), sample.size)])

    def corrected_threshold(self, values: Tensor, threshold: float, k: int, passes: int = 4) -> float:
        """A threshold that lets about k through, found from one that may be far off by counting a few times.

        Tails are roughly exponential, so the logarithm of the count is taken as linear in the threshold.

        Args:
            values: The vector.
            threshold: Where to begin.
            k: How many are wanted, at least 1.
            passes: How often to count at the most.

        Returns:
            The best threshold that was counted: within a tenth of k where that was found.
        """
        best, error, here = threshold, math.inf, threshold
        previous: tuple[float, float] | None = None
        for _ in range(passes if math.isfinite(threshold) else 0):
            gap = math.log(max(self.count_at_least(values, here), 0.5) / max(k, 1))
            if abs(gap) < error:
                best, error = here, abs(gap)
            if error <= math.log(1.1):
                break
            falls = previous is not None and (gap - previous[1]) * (here - previous[0]) < 0.0
            if previous is not None and falls:
                step = gap * (here - previous[0]) / (previous[1] - gap)
            else:
                step = math.copysign(0.1 * here, gap)
            previous, here = (here, gap), min(max(here + step, here / 4), 4 * here)
        return best

    def importance(self, values: Tensor, weights: Tensor, epsilon: float, k: int) -> Tensor:
        """The indices of the ``k`` largest ``|value| / (|weight| + epsilon)``; equal ones lowest index first.

        Args:
            values: The vector.
            weights: As long, and of the same type.
            epsilon: Positive in that type: without it, weights near zero would decide everything.
            k: How many.

        Raises:
            ValueError: The epsilon is not positive.
        """
        return self.top_k(ratios(values, weights, epsilon), k)

    def importance_at_least(self, values: Tensor, weights: Tensor, epsilon: float, threshold: float) -> Tensor:
        """The indices of all ``|value| / (|weight| + epsilon)`` that are not below ``threshold``, increasing.

        Raises:
            ValueError: The epsilon is not positive.
        """
        return self.at_least(ratios(values, weights, epsilon), threshold)

    def strength(self, values: Tensor, width: int) -> Tensor:
        """The Euclidean norm of each unit of ``width`` elements, in float64; the last unit may be short.

        The squares are added by halves: those from the largest power of two below the width on to the first ones, then
        what is left is halved again.
        """
        units = -(-values.numel() // width)
        padding = values.new_zeros(units * width - values.numel())
        sums = torch.cat([values, padding]).view(units, width).double().square()
        while width > 1:
            half = 1 << ((width - 1).bit_length() - 1)
            upper, sums = sums[:, half:width], sums[:, :half].clone()
            sums[:, : width - half] += upper
            width = half
        # The square root of numpy is correctly rounded; that of torch, on a CPU, not always.
        return torch.from_numpy(np.sqrt(sums[:, 0].numpy())) if sums.device.type == "cpu" else sums[:, 0].sqrt()

    def top_k_segments(self, values: Tensor, bounds: Sequence[int], counts: Sequence[int]) -> Tensor:
        """The `top_k` of each of several segments, one list behind the other.

        Args:
            values: The vector.
            bounds: Where segments begin, and where the last one ends: one more than there are segments.
            counts: How many to select in each segment; more than there are means all of them.

        Raises:
            ValueError: The bounds decrease, lie outside the vector or are not one more than the counts.
        """
        check_segments(values.numel(), bounds, counts)
        dtype = index_dtype(values.numel())
        found = [torch.empty(0, dtype=dtype, device=values.device)]
        for begin, end, count in zip(bounds[:-1], bounds[1:], counts, strict=True):
            found.append(self.top_k(values[begin:end], count).to(dtype) + begin)
        return torch.cat(found)

    def _sample(self, values: Tensor, stride: int, seed: int) -> NDArray[np.floating]:
        """The magnitudes of one element in every stride, increasing."""
        places = lots(seed, -(-values.numel() // stride), stride)
        inside = torch.from_numpy(places[places < values.numel()]).to(values.device)
        found = values.index_select(0, inside).abs()
        return np.sort((found if found.dtype == torch.float64 else found.float()).cpu().numpy())


def moments_of(count: int, sums: tuple[float, float, float], largest: float) -> Moments:
    """Moments from the sums of the elements, of their magnitudes and of their squares."""
    if count == 0:
        return Moments(0.0, 0.0, 0.0, 0.0)
    mean, magnitude, square = (one / count for one in sums)
    return Moments(mean, magnitude, max(square - mean * mean, 0.0), largest)


def ranks_of(counts: Sequence[int], n: int) -> list[int]:
    """The candidates that have a rank, from 1 to n.

    Raises:
        ValueError: The candidates decrease.
    """
    if any(a > b for a, b in pairwise(counts)):
        raise ValueError(f"the candidates {list(counts)} decrease; give them from the smallest")
    return [min(count, n) for count in counts if count > 0 and n > 0]


def spectrum_of(candidates: int, thresholds: list[float], energies: list[float], total: float) -> Spectrum:
    """A spectrum, where candidates of nothing go before those that have a rank."""
    nothing = candidates - len(thresholds)
    return Spectrum((math.inf,) * nothing + tuple(thresholds), (0.0,) * nothing + tuple(energies), total)


def stride_of(n: int, sample: int) -> int:
    """The stride with which about ``sample`` of n elements are looked at."""
    return max(1, -(-n // max(sample, 1)))


def ratios(values: Tensor, weights: Tensor, epsilon: float) -> Tensor:
    """Magnitudes relative to weights.

    Raises:
        ValueError: The epsilon is not positive.
    """
    check_epsilon(epsilon, values.dtype)
    return values.abs() / (weights.abs() + epsilon)


def check_epsilon(epsilon: float, dtype: torch.dtype) -> None:
    """An epsilon is positive, and still is in the type of the values.

    Raises:
        ValueError: It is not.
    """
    if not float(torch.tensor(epsilon, dtype=dtype)) > 0.0:
        raise ValueError(f"epsilon={epsilon!r} is not positive in {dtype}; write a share of the weights' size, as 1e-3")


def check_segments(n: int, bounds: Sequence[int], counts: Sequence[int]) -> None:
    """Segments lie one behind the other.

    Raises:
        ValueError: They do not.
    """
    if len(bounds) != len(counts) + 1:
        raise ValueError(f"{len(bounds)} bounds for {len(counts)} segments; there is one more bound than segments")
    edges = [0, *bounds, n]
    if any(a > b for a, b in pairwise(edges)):
        raise ValueError(f"the bounds {list(bounds)} do not increase from 0 to {n}")
