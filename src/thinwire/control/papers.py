"""The closed forms of the papers, for comparison with prices that follow from what parts declare.

Flexible Communication (Tyagi and Swany, 2023), Table I and equations 4 and 5: N ranks, M bytes of gradient, a part c of
it kept, 4-byte indices, latency a, 1/b the bandwidth, logarithms of base 2. A broadcast is a binomial tree, and an
all-gather recursive doubling. Gloo's rings pay far more rounds, so these are not used to choose anything.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Case:
    """What the formulas are about.

    Args:
        ranks: N.
        size: M, bytes of the whole gradient.
        kept: c, the part that is kept.
        latency: Seconds.
        per_byte: Seconds.
    """

    ranks: int
    size: float
    kept: float
    latency: float
    per_byte: float

    @property
    def doublings(self) -> float:
        """The logarithm of the number of ranks."""
        return math.log2(self.ranks)

    @property
    def moved(self) -> float:
        """Seconds in which the kept values cross a link."""
        return self.size * self.kept * self.per_byte


def ring(case: Case) -> float:
    """Dense all-reduce by a ring."""
    n = case.ranks
    return 2 * (n - 1) * case.latency + 2 * (n - 1) / n * case.size * case.per_byte


def tree(case: Case) -> float:
    """Dense all-reduce by a tree."""
    return 2 * case.doublings * (case.latency + case.size * case.per_byte)


def all_gather(case: Case) -> float:
    """Top-k by all-gather of values and indices."""
    return case.latency * case.doublings + 2 * (case.ranks - 1) * case.moved


def art_ring(case: Case) -> float:
    """AR-Topk by a ring, equation 4a."""
    n, doublings = case.ranks, case.doublings
    return case.latency * (2 * (n - 1) + doublings) + case.moved * (2 * (n - 1) / n + doublings)


def art_tree(case: Case) -> float:
    """AR-Topk by a tree, equation 4b."""
    return 3 * case.doublings * (case.latency + case.moved)


MODELS: dict[str, Callable[[Case], float]] = {
    "ring": ring,
    "tree": tree,
    "all-gather": all_gather,
    "art-ring": art_ring,
    "art-tree": art_tree,
}
"""All of them by name."""
COMPRESSED = ("all-gather", "art-ring", "art-tree")
"""Those between which the paper chooses."""


def cheapest(case: Case) -> str:
    """The exchange that equation 5 chooses: the smallest of the three."""
    return min(COMPRESSED, key=lambda name: MODELS[name](case))
