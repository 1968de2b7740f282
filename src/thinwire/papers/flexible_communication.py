"""The closed forms of Flexible Communication (Tyagi and Swany, 2023): Table I, equations 4 and 5.

N ranks, M bytes of gradient of which a fraction c is kept, latency a in seconds, bandwidth 1 / b in bytes a second,
logarithms of base 2, 4 bytes for an index and for a value. A broadcast is a binomial tree, and an
all-gather recursive doubling. Real backends do otherwise (Gloo's rings pay a round trip for each step), and so does
this package: its exchanges declare their own costs, and these formulas choose nothing in it.
"""

import math
from dataclasses import dataclass

GATHER, RING, TREE = "all-gather", "ring", "tree"


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What the formulas are about.

    Args:
        ranks: N, at least 2.
        size: M, bytes of the whole gradient.
        density: c, the fraction that is kept.
        latency: a, seconds.
        bandwidth: 1 / b, bytes a second.
    """

    ranks: int
    size: float
    density: float
    latency: float
    bandwidth: float

    @property
    def kept(self) -> float:
        """Bytes of the kept values."""
        return self.size * self.density

    @property
    def product(self) -> float:
        """The bandwidth-delay product in bytes; over the bytes kept, it is the one number that decides."""
        return self.latency * self.bandwidth


def dense_ring(setting: Setting) -> float:
    """Seconds of a dense all-reduce by a ring."""
    steps = 2 * (setting.ranks - 1)
    return steps * setting.latency + steps / setting.ranks * setting.size / setting.bandwidth


def dense_tree(setting: Setting) -> float:
    """Seconds of a dense all-reduce by a tree."""
    return 2 * math.log2(setting.ranks) * (setting.latency + setting.size / setting.bandwidth)


def all_gather(setting: Setting) -> float:
    """Seconds of top-k by all-gather, values and indices."""
    rounds, copies = math.log2(setting.ranks), 2 * (setting.ranks - 1)
    return rounds * setting.latency + copies * setting.kept / setting.bandwidth


def ring(setting: Setting) -> float:
    """Seconds of AR-Topk by a ring, equation 4a: the indices are broadcast, the values go round."""
    rounds, steps = math.log2(setting.ranks), 2 * (setting.ranks - 1)
    return (steps + rounds) * setting.latency + (steps / setting.ranks + rounds) * setting.kept / setting.bandwidth


def tree(setting: Setting) -> float:
    """Seconds of AR-Topk by a tree, equation 4b."""
    return 3 * math.log2(setting.ranks) * (setting.latency + setting.kept / setting.bandwidth)


COSTS = {GATHER: all_gather, RING: ring, TREE: tree}
"""Those between which the paper chooses; the dense ones are not among them."""


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """Below which bandwidth-delay product, over the bytes kept, one way beats another.

    Args:
        ring_tree: The ring beats the tree, equation 5a.
        ring_gather: The ring beats the all-gather, equation 5b.
        tree_gather: The tree beats the all-gather, equation 5c.
    """

    ring_tree: float
    ring_gather: float
    tree_gather: float


def thresholds(ranks: int) -> Thresholds:
    """The thresholds of equation 5; between two ranks, a ring is a tree with one step less."""
    rounds, steps = math.log2(ranks), ranks - 1
    spared = steps - rounds
    return Thresholds(
        ring_tree=(rounds - steps / ranks) / spared if spared else math.inf,
        ring_gather=1 - 1 / ranks - rounds / (2 * steps),
        tree_gather=steps / rounds - 1.5,
    )


def chosen(setting: Setting) -> str:
    """What the paper's rule chooses: ``"ring"``, ``"tree"`` or ``"all-gather"``, always the cheapest of `COSTS`."""
    limits = thresholds(setting.ranks)
    if setting.product < min(limits.ring_tree, limits.ring_gather) * setting.kept:
        return RING
    return TREE if setting.product < limits.tree_gather * setting.kept else GATHER
