"""Which candidate is best? Each answer is a score with a meaning; the controller takes the highest.

Efficiency, the progress of a step beside that of a dense one, is taken to be the square root of the gain: the length of
what is sent over the length of what is owed. Error feedback delivers the rest later, so it is never lost altogether.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from thinwire.control.front import Floats, front
from thinwire.errors import PlanError

NEVER = 0.0
"""The score of what is not to be chosen."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Offers:
    """All candidates with what they cost and bring.

    Args:
        steps: Predicted seconds of a step.
        exchanges: Predicted seconds of its exchanges alone.
        gains: Share of the energy that goes through, between 0 and 1.
        densities: Of each.
        floor: Least gain that the guard allows now.
    """

    steps: Floats
    exchanges: Floats
    gains: Floats
    densities: Floats
    floor: float = 0.0

    @property
    def progress(self) -> Floats:
        """Dense steps' worth for each second."""
        rates: Floats = np.sqrt(self.gains) / self.steps
        return rates

    def above(self, floor: float) -> Floats:
        """1 for those with enough gain, 0 for the others; where there are none, for the one with the most."""
        needed = min(max(floor, self.floor), float(self.gains.max()))
        allowed: Floats = (self.gains >= needed).astype(np.float64)
        return allowed


class Policy(ABC):
    """A way to choose: a frozen dataclass of options."""

    @abstractmethod
    def scores(self, offers: Offers) -> Floats:
        """How good each candidate is: positive numbers, of which a larger by 10 % is better by 10 %."""


def _check_share(owner: object, name: str, value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
        raise PlanError(f"{type(owner).__name__}({name}={value!r}): a share of the energy, between 0 and 1")


@dataclass(frozen=True, kw_only=True)
class MostProgress(Policy):
    """The most progress per second.

    Args:
        floor: The least gain, whatever it costs. The default is what 5 % of a gradient's elements hold whose magnitudes
            fall off exponentially: in trials with adaptive optimizers less than that ended behind a dense run.
    """

    floor: float = 0.4

    def __post_init__(self) -> None:
        """Check the options."""
        _check_share(self, "floor", self.floor)

    def scores(self, offers: Offers) -> Floats:
        """Dense steps' worth for each second."""
        return offers.progress * offers.above(self.floor)


@dataclass(frozen=True, kw_only=True)
class Fastest(Policy):
    """The fastest step within a gain floor.

    Args:
        floor: The least gain.
    """

    floor: float = 0.5

    def __post_init__(self) -> None:
        """Check the options."""
        _check_share(self, "floor", self.floor)

    def scores(self, offers: Offers) -> Floats:
        """Steps for each second."""
        rates: Floats = offers.above(self.floor) / offers.steps
        return rates


@dataclass(frozen=True, kw_only=True)
class BestWithin(Policy):
    """The most gain within a time for each step; the fastest, where none is fast enough.

    Args:
        seconds: For a whole step.
    """

    seconds: float

    def __post_init__(self) -> None:
        """Check the options."""
        known = isinstance(self.seconds, int | float) and not isinstance(self.seconds, bool)
        if not known or not 0.0 < self.seconds < math.inf:
            raise PlanError(f"BestWithin(seconds={self.seconds!r}): the time for a whole step, above 0")

    def scores(self, offers: Offers) -> Floats:
        """The gain; where it takes too long, nearly nothing, and the less the longer."""
        allowed = offers.above(0.0)
        within = np.where(offers.steps <= self.seconds, offers.gains, 1e-6 * offers.gains.min() / offers.steps)
        scores: Floats = within * allowed
        return scores


@dataclass(frozen=True, kw_only=True)
class Knee(Policy):
    """Where the Pareto front bends most: farthest above the line between its ends, over the logarithm of time.

    Args:
        floor: The least gain.
    """

    floor: float = 0.0

    def __post_init__(self) -> None:
        """Check the options."""
        _check_share(self, "floor", self.floor)

    def scores(self, offers: Offers) -> Floats:
        """The height above the line, for those on the front; nothing for the others."""
        allowed = np.flatnonzero(offers.above(self.floor))
        places = allowed[front(offers.steps[allowed], offers.gains[allowed])]
        times, gains = np.log(offers.steps[places]), offers.gains[places]
        across = (times - times[0]) / (times[-1] - times[0]) if times[-1] > times[0] else np.zeros(times.size)
        up = (gains - gains[0]) / (gains[-1] - gains[0]) if gains[-1] > gains[0] else np.ones(gains.size)
        scores = np.full(offers.steps.size, NEVER)
        scores[places] = 1.0 + up - across
        return scores


@dataclass(frozen=True, kw_only=True)
class Paper(Policy):
    """What Flexible Communication (Tyagi and Swany, 2023) does, for comparison: see docs/control.md before using it.

    The front of communication time and 1 / gain over densities from 0.1 % to 10 %, both normalised to what lies
    between their smallest and largest, and of it the smallest of the larger of the two, weighted 0.6 and 0.4. The
    paper samples the front with NSGA-II; with one variable every density is on it, so a sweep is the same, exactly.

    Args:
        time: The weight of communication time.
        quality: The weight of 1 / gain.
        least: The smallest density.
        most: The largest.
    """

    time: float = 0.6
    quality: float = 0.4
    least: float = 0.001
    most: float = 0.1

    def __post_init__(self) -> None:
        """Check the options."""
        for name in ("time", "quality", "least", "most"):
            _check_share(self, name, getattr(self, name))
        if self.least > self.most:
            raise PlanError(f"Paper(least={self.least}, most={self.most}): the least density is above the most")

    def scores(self, offers: Offers) -> Floats:
        """The inverse of what the paper minimises."""
        inside = (offers.densities >= self.least) & (offers.densities <= self.most)
        considered = np.flatnonzero(inside if inside.any() else np.ones(inside.size, dtype=bool))
        times, costs = offers.exchanges[considered], 1.0 / np.sqrt(np.maximum(offers.gains[considered], 1e-12))
        places = front(times, -costs)
        worse = np.maximum(self.time * _normalised(times[places]), self.quality * _normalised(costs[places]))
        scores = np.full(offers.steps.size, NEVER)
        scores[considered[places]] = 1.0 / (1e-3 + worse)
        return scores


def _normalised(values: Floats) -> Floats:
    """0 for the smallest, 1 for the largest."""
    width = values.max() - values.min()
    scaled: Floats = (values - values.min()) / width if width > 0.0 else np.zeros(values.size)
    return scaled


POLICIES: dict[str, type[Policy]] = {
    "most-progress": MostProgress,
    "fastest": Fastest,
    "best-within": BestWithin,
    "knee": Knee,
    "paper": Paper,
}
"""All policies by name."""
