"""What a sample says about the whole, with a probability of error that is stated.

One element is looked at in every stride of a vector, at a place drawn by lot. So the elements of any fixed set that are
looked at are a sum of independent lots, each of probability 1 / stride at the most, whatever the data: their number is
bounded by Chernoff's inequality, and so is any sum over them of values between 0 and a bound.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

RISK = 1e-6
"""The probability that some statement about one candidate is wrong."""
_BOUNDS = 5  # inequalities that one candidate relies on


class SampledSpectrum(NamedTuple):
    """Estimates for several k at once.

    Except with a probability of 1e-6 for each candidate, over the seeds and for any data, all of this holds: the
    threshold for k lies between the magnitudes of rank ``fewest`` and of rank ``most``; the energy of all but the
    ``fewest`` largest is not below the lower one of ``rest_bounds``, and the energy of all but the ``most`` largest is
    not above the upper one.
    """

    thresholds: tuple[float, ...]
    fewest: tuple[int, ...]
    """A rank of k at the most; 0, where nothing can be said."""
    most: tuple[int, ...]
    """A rank of k at the least; more than there are elements, where nothing can be said."""
    rests: tuple[float, ...]
    """The energy of all but the k largest. A sample says nothing sure about the energy of the k largest themselves,
    as one element may hold nearly all of it; that is the energy of all, where it is known, less the rest."""
    rest_bounds: tuple[tuple[float, float], ...]

    def gains(self, energy: float) -> tuple[float, ...]:
        """The share of the energy that is in the k largest, where the energy of all elements is known."""
        return tuple(min(max(1.0 - rest / energy, 0.0), 1.0) if energy > 0.0 else 1.0 for rest in self.rests)


def lots(seed: int, count: int, stride: int) -> NDArray[np.int64]:
    """A place in each of ``count`` strides: splitmix64 of a counter, so that every machine draws the same ones."""
    bits = np.uint64(seed % 2**64) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits ^= bits >> np.uint64(31)
    within = ((bits >> np.uint64(32)) * np.uint64(stride)) >> np.uint64(32)
    return np.arange(count, dtype=np.int64) * stride + within.astype(np.int64)


def estimate(descending: NDArray[np.floating], stride: int, counts: Sequence[int]) -> SampledSpectrum:
    """What a sample of magnitudes, the largest first, one of each stride, says about the ``counts`` largest of all."""
    squares = descending.astype(np.float64) ** 2
    tails = np.append(np.cumsum(squares[::-1])[::-1], 0.0)
    found = [_estimate_one(descending, tails, stride, count) for count in counts]
    columns = zip(*found, strict=True) if found else ((),) * len(SampledSpectrum._fields)
    return SampledSpectrum(*map(tuple, columns))


def _estimate_one(
    descending: NDArray[np.floating], tails: NDArray[np.float64], stride: int, count: int
) -> tuple[float, int, int, float, tuple[float, float]]:
    """Threshold, ranks around it, rest and its bounds, for one candidate."""
    if count <= 0 or descending.size == 0:
        return math.inf, 0, 0, float(tails[0]) * stride, (0.0, math.inf)
    rank = min(max(1, round(count / stride)), descending.size)
    threshold, rest = float(descending[rank - 1]), float(tails[rank])
    # If no more than `fewest` elements were above the threshold, hardly `rank` of them would be in the sample.
    above, below = _least_mean(rank), _largest_mean(rank - 1)
    fewest, most = max(math.ceil(above * stride) - 1, 0), math.ceil(below * stride)
    surely = _surely_reached(above)
    if surely == 0:
        return threshold, fewest, most, rest * stride, (0.0, math.inf)
    # No element of the rest, whose first has the rank behind `fewest`, is larger than this.
    unit = float(descending[surely - 1]) ** 2
    if unit == 0.0:
        return threshold, fewest, most, 0.0, (0.0, 0.0)
    low, high = _least_mean(rest / unit) * unit, _largest_mean(rest / unit) * unit
    return threshold, fewest, most, rest * stride, (low * stride, high * stride)


def _exponent(seen: float, mean: float) -> float:
    """Chernoff's bound, as the negative logarithm of a probability, for a sum that is as far off its mean as seen."""
    if mean <= 0.0:
        return math.inf if seen > 0.0 else 0.0
    return mean - seen + (seen * math.log(seen / mean) if seen > 0.0 else 0.0)


_ENOUGH = math.log(_BOUNDS / RISK)


def _least_mean(seen: float) -> float:
    """The largest mean below what was seen that would hardly have let so much be seen."""
    return _boundary(lambda mean: _exponent(seen, mean) >= _ENOUGH, 0.0, seen)


def _largest_mean(seen: float) -> float:
    """The smallest mean above what was seen that would hardly have let so little be seen."""
    far = 2 * seen + 4 * _ENOUGH
    return far - _boundary(lambda below: _exponent(seen, far - below) >= _ENOUGH, 0.0, far - seen)


def _surely_reached(mean: float) -> int:
    """The largest number that a sum with this mean hardly stays below; 0 if there is none."""
    limit = _boundary(lambda seen: _exponent(seen, mean) >= _ENOUGH, 0.0, mean)
    return math.floor(limit) + 1 if mean >= _ENOUGH else 0


def _boundary(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The last point, between one where something holds and one where it does not, at which it holds."""
    for _ in range(60):
        middle = (low + high) / 2
        if holds(middle):
            low = middle
        else:
            high = middle
    return low
