"""How much each way of bringing sparse gradients together sends: the closed forms of Zen (OSDI 2025), as functions.

Everything here is a fraction of the dense gradient that the busiest rank sends (or receives, which is as much). The
paper writes indices and values with equally many bytes, hence its factors of 2, has a power of two ranks, and no
latency. What our own messages cost, latency included, is estimated by `thinwire.exchanges.chooser`.

Symbols of the paper: d is `density`, n is `world`, gamma of k ranks is `grown` (densification: the density of a sum
over k ranks, divided by that of one), s is `skewness`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from thinwire.errors import PlanError
from thinwire.exchanges.recursive_doubling import held

_HALVINGS = 200


@dataclass(frozen=True, kw_only=True)
class Profile:
    """What was seen of sparse gradients in some steps.

    Args:
        density: Units of one rank's gradient that it sends, over all units.
        overlap: Units that two ranks have in common, over the units of one.

    Raises:
        PlanError: A number that cannot be.
    """

    density: float
    overlap: float

    def __post_init__(self) -> None:
        """Check the numbers."""
        if not 0.0 < self.density <= 1.0 or not 0.0 <= self.overlap <= 1.0:
            raise PlanError(f"{self!r}: density is above 0 and at most 1, overlap is from 0 to 1")

    @staticmethod
    def of(density: float, densification: float, world: int) -> "Profile":
        """The profile whose gradients become denser in a sum over all ranks as was measured."""
        return Profile(density=density, overlap=overlap_of(densification, world))

    def grown(self, ranks: int) -> float:
        """Densification over so many ranks; a sum has no more units than there are."""
        return min(grown(self.overlap, ranks), 1.0 / self.density)


def grown(overlap: float, ranks: int) -> float:
    """Densification over some ranks that each draw from a common stock so large that two of them overlap that much."""
    return float(ranks) if overlap == 0.0 else -math.expm1(ranks * _log_of_rest(overlap)) / overlap


def _log_of_rest(overlap: float) -> float:
    return math.log1p(-overlap) if overlap < 1.0 else -math.inf


def overlap_of(densification: float, ranks: int) -> float:
    """The inverse of `grown`: what overlap makes a sum over so many ranks so much denser."""
    if ranks < 2 or densification >= ranks:
        return 0.0
    return _zero(lambda overlap: densification - grown(overlap, ranks), 0.0, 1.0)


def all_reduce(world: int) -> float:
    """Dense gradients, on a ring."""
    return 2.0 * (world - 1) / world


def all_gather(profile: Profile, world: int) -> float:
    """Everybody's indices and values to everybody."""
    return 2.0 * (world - 1) * profile.density


def recursive_doubling(profile: Profile, world: int) -> float:
    """Hierarchical centralisation, equation 2; for other numbers of ranks than the paper's, the two extra rounds."""
    return sum(map(profile.grown, held(world))) * 2.0 * profile.density


def owner_reduce(profile: Profile, world: int) -> float:
    """Balanced parallelism with indices both ways, equation 1."""
    return (world - 1) / world * (1.0 + profile.grown(world)) * 2.0 * profile.density


def owner_reduce_with_bitmap(profile: Profile, world: int) -> float:
    """Zen as it was built for float32: indices when pushing, a hash bitmap when pulling."""
    pushed, pulled = 2.0 * profile.density, profile.grown(world) * profile.density + 1.0 / 32.0
    return (world - 1) / world * (pushed + pulled)


def owner_reduce_without_indices(profile: Profile, world: int) -> float:
    """What no format can go below that sends float32 values."""
    return owner_reduce(profile, world) / 2.0


def parameter_servers(profile: Profile, world: int, skewness: float) -> float:
    """Owners of even cuts: the busiest one has ``skewness`` times its share, when pushing and when pulling."""
    return skewness * owner_reduce(profile, world)


def least_overlap(world: int) -> float | None:
    """From which overlap on owner-reduce sends less than recursive doubling; None if it never does."""

    def lead(overlap: float) -> float:
        profile = Profile(density=1e-9, overlap=overlap)
        return owner_reduce(profile, world) - recursive_doubling(profile, world)

    if lead(0.0) < 0.0:
        return 0.0
    return None if lead(1.0) >= 0.0 else _zero(lambda overlap: -lead(overlap), 0.0, 1.0)


def _zero(rising: Callable[[float], float], low: float, high: float) -> float:
    """Where a function that rises becomes positive."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (low, middle) if rising(middle) > 0.0 else (middle, high)
    return high
