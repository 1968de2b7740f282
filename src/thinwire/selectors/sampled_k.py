"""Sampled-k: a threshold from a small sample, and a second selection among what passed.

Deep Gradient Compression (Lin et al., 2018). A published re-implementation takes the k of the whole from the sample, so
that a hundred times too many pass; here the sample's k is in proportion.
"""

from dataclasses import dataclass

from torch import Tensor

from thinwire import kernels
from thinwire.errors import PlanError
from thinwire.options import check_density, check_width, units_of_density
from thinwire.protocols import Selector
from thinwire.selectors.near import at_most, reaching
from thinwire.selectors.strength import strength


@dataclass(frozen=True, kw_only=True)
class SampledK(Selector):
    """Select up to k units, by a threshold that a sample suggests.

    Args:
        density: k as a fraction of the units, rounded up; larger sends more.
        share: How much of the vector to look at for the threshold; larger is slower and hits k better.
        width: Elements of one unit.
    """

    density: float
    share: float = 0.01
    width: int = 1

    def __post_init__(self) -> None:
        """Check the options."""
        check_density(self, self.density)
        check_width(self, self.width)
        if not isinstance(self.share, int | float) or not 0.0 < self.share <= 1.0:
            raise PlanError(f"SampledK(share={self.share!r}): a share of the vector, for one percent write share=0.01")

    def budget(self, units: int) -> int:
        """The density as a number of units."""
        return units_of_density(self.density, units)

    def choose(self, gradient: Tensor, k: int, seed: int) -> Tensor | None:
        """The units that reach the sample's threshold; the strongest ``k`` where there are more."""
        strengths = strength(gradient, self.width)
        return at_most(strengths, reaching(strengths, kernels.sampled_threshold(strengths, k, seed, self.share)), k)
