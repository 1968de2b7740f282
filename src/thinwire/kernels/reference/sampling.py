"""What a sample says about the whole, with a probability of error that is stated.

One element is looked at in every stride of a vector, at a place drawn by lot. So the elements of any fixed set that are
looked at are a sum of independent lots, each of probability 1 / stride at the most, whatever the data: their number is
bounded by Chernoff's inequality, and so is any sum over them of values between 0 and a bound.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

RISK = 1e-6
"""The probability that some statement about one candidate is wrong."""
_BOUNDS = 5  # inequalities that one candidate relies on


Floats = NDArray[np.floating]


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


def estimate(descending: Floats, stride: int, counts: Sequence[int]) -> SampledSpectrum:
    """What a sample of magnitudes, the largest first, one of each stride, says about the ``counts`` largest of all."""
    squares = descending.astype(np.float64) ** 2
    tails = np.append(np.cumsum(squares[::-1])[::-1], 0.0)
    wanted = np.array(counts, dtype=np.float64)
    ranks = np.clip(np.rint(wanted / stride), 1, max(descending.size, 1)).astype(np.int64)
    ranks[(wanted <= 0) | (descending.size == 0)] = 0
    # If no more than `fewest` elements were above the threshold, hardly `rank` of them would be in the sample.
    above, below = _least_means(ranks.astype(np.float64)), _largest_means(np.maximum(ranks - 1.0, 0.0))
    fewest, most = np.maximum(np.ceil(above * stride) - 1, 0), np.where(ranks > 0, np.ceil(below * stride), 0)
    # No element of the rest, whose first has the rank behind `fewest`, is larger than what this rank in the sample has.
    surely = _surely_reached(above)
    magnitudes = np.concatenate([[math.inf], descending]).astype(np.float64)
    units, rests = magnitudes[surely] ** 2, tails[ranks]
    with np.errstate(invalid="ignore", divide="ignore"):
        relative = np.where(units > 0.0, rests / units, 0.0)
        low = np.where(surely > 0, _least_means(relative) * units, 0.0)
        high = np.where(surely > 0, _largest_means(relative) * units, math.inf)
    return SampledSpectrum(
        tuple(magnitudes[ranks].tolist()),
        tuple(map(int, fewest.tolist())),
        tuple(map(int, most.tolist())),
        tuple((rests * stride).tolist()),
        tuple(zip((low * stride).tolist(), (high * stride).tolist(), strict=True)),
    )


_ENOUGH = math.log(_BOUNDS / RISK)
_STEPS = 8  # of Newton's method; it comes from the safe side, so that fewer would widen the bounds and nothing else
_TINY = 1e-300


def _excess(seen: Floats, mean: Floats) -> Floats:
    """Chernoff's bound for a sum that is as far from its mean as seen: how much less than the risk, as a logarithm."""
    excess: Floats = mean - seen + seen * np.log(np.maximum(seen, _TINY) / mean) - _ENOUGH
    return excess


def _least_means(seen: Floats) -> Floats:
    """The largest means below what was seen that would hardly have let so much be seen."""
    there = np.maximum(seen, _TINY)
    means = np.maximum(there - np.sqrt(2 * there * _ENOUGH), there * np.exp(-1.0 - np.minimum(_ENOUGH / there, 600.0)))
    with np.errstate(invalid="ignore", divide="ignore"):  # where next to nothing was seen, which is left out below
        for _ in range(_STEPS):
            means = means + _excess(there, means) / (there / means - 1.0)
    return np.where(seen > _ENOUGH / 600.0, means, 0.0)


def _largest_means(seen: Floats) -> Floats:
    """The smallest means above what was seen that would hardly have let so little be seen."""
    means = seen + _ENOUGH + np.sqrt(_ENOUGH * (_ENOUGH + 2 * seen))
    for _ in range(_STEPS):
        means = means - _excess(seen, means) / (1.0 - seen / means)
    found: Floats = means
    return found


def _surely_reached(means: Floats) -> NDArray[np.int64]:
    """The largest numbers that sums with these means hardly stay below; 0 where there are none."""
    there = np.maximum(means, _ENOUGH)
    seen = np.maximum(there - np.sqrt(2 * there * _ENOUGH), 1e-9 * there)
    for _ in range(_STEPS):
        seen = np.maximum(seen + _excess(seen, there) / np.log(there / seen), 1e-9 * there)
    # A hair less than where it converges: rounding must not decide.
    return np.where(means > _ENOUGH, np.floor(seen * (1 - 1e-9)) + 1, 0).astype(np.int64)
