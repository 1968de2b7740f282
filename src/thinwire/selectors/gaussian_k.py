"""Gaussian-k: about k units by a threshold instead of exactly k by a selection.

Understanding Top-k Sparsification in Distributed Deep Learning (Shi, Chu, Cheung and See, 2019), in three variants that
are told apart on purpose: comparisons in later work rest on yet others.

- ``"published"`` follows the paper as it is summarised: mean and standard deviation of the whole vector, the quantile
  of 1 - k/n in one tail, three looks, and a threshold halved or raised by half between them.
- ``"released"`` is the authors' code: the same with k/n in both tails. What it adjusts behind the third look is never
  used there, nor is it here.
- ``"corrected"`` is ours. It starts from a sample of the vector itself, which knows its tail, and corrects along the
  logarithm of the counts, in which tails are nearly straight. What is still off by more than a tenth is
  selected exactly, so it never is off by more.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from thinwire import kernels
from thinwire.errors import PlanError
from thinwire.options import check_density, check_width, units_of_density
from thinwire.protocols import Selector
from thinwire.registry import unknown
from thinwire.selectors.near import at_most, reaching, sampled_start
from thinwire.selectors.strength import strength

LOOKS = 3
"""How often the paper's loop compares the whole vector with a threshold."""
MOST_LOOKS = 5
"""How often ours does."""


@dataclass(frozen=True, kw_only=True)
class GaussianK(Selector):
    """Select about k units, by comparing all of them with a threshold a few times.

    Args:
        density: k as a fraction of the units, rounded up; larger sends more.
        variant: ``"corrected"`` is within a tenth of k; ``"published"`` and ``"released"`` are what their authors say
            and do, and may select many times k, or nothing.
        width: Elements of one unit.
    """

    density: float
    variant: str = "corrected"
    width: int = 1

    def __post_init__(self) -> None:
        """Check the options."""
        check_density(self, self.density)
        check_width(self, self.width)
        if self.variant not in VARIANTS:
            raise PlanError(unknown("variant of GaussianK", str(self.variant), VARIANTS))

    def budget(self, units: int) -> int:
        """A tenth more than k; everything, for the variants that know no bound."""
        k = units_of_density(self.density, units)
        return min(units, math.floor(1.1 * k)) if self.variant == "corrected" else units

    def choose(self, gradient: Tensor, k: int, seed: int) -> Tensor | None:
        """The units that reach the threshold; the strongest ``k`` where there are more."""
        strengths = strength(gradient, self.width)
        wanted = min(units_of_density(self.density, strengths.numel()), k)
        if wanted == strengths.numel():
            return None
        return at_most(strengths, VARIANTS[self.variant](strengths, wanted, seed), k)


def published(strengths: Tensor, k: int, seed: int) -> Tensor:
    """The quantile of one tail, and the paper's loop."""
    return _coarse(strengths, k, kernels.gaussian_threshold(strengths, k, one_sided=True))


def released(strengths: Tensor, k: int, seed: int) -> Tensor:
    """The quantile of both tails, and the paper's loop."""
    return _coarse(strengths, k, kernels.gaussian_threshold(strengths, k))


def _coarse(strengths: Tensor, k: int, threshold: float) -> Tensor:
    """Halve the threshold where less than two thirds of k reach it, raise it by half where more than four thirds do."""
    found = reaching(strengths, threshold)
    for _ in range(LOOKS - 1):
        if 2 * k <= 3 * found.numel() <= 4 * k:
            break
        threshold *= 0.5 if 3 * found.numel() < 2 * k else 1.5
        found = reaching(strengths, threshold)
    return found


def corrected(strengths: Tensor, k: int, seed: int) -> Tensor:
    """Within a tenth of k, in one look at most vectors, and in five at the most before it selects exactly.

    Tails are roughly exponential, so the logarithm of the count is taken as linear in the threshold. (As
    `kernels.corrected_threshold` does it; but here every look brings the units along, so none is made twice.)
    """
    here = sampled_start(strengths, k, seed)
    before: tuple[float, float] | None = None
    for _ in range(MOST_LOOKS):
        found = reaching(strengths, here)
        if _near(found.numel(), k):
            return found
        gap = math.log(max(found.numel(), 0.5) / max(k, 1))
        if before is not None and (gap - before[1]) * (here - before[0]) < 0.0:
            step = gap * (here - before[0]) / (before[1] - gap)
        else:
            step = math.copysign(0.1 * here, gap)
        before, here = (here, gap), min(max(here + step, here / 4), 4 * here)
    return kernels.top_k(strengths, k)


def _near(count: int, k: int) -> bool:
    return k <= 1.1 * count and count <= 1.1 * k


VARIANTS: dict[str, Callable[[Tensor, int, int], Tensor]] = {
    "published": published,
    "released": released,
    "corrected": corrected,
}
