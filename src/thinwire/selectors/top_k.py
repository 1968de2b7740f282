"""Top-k: the k strongest units, exactly."""

from dataclasses import dataclass

from torch import Tensor

from thinwire import kernels
from thinwire.debt import Debt
from thinwire.options import check_density, check_width, units_of_density
from thinwire.protocols import Selector
from thinwire.selectors.strength import strength
from thinwire.types import Selection


@dataclass(frozen=True, kw_only=True)
class TopK(Selector):
    """Select exactly the k largest magnitudes, equal ones by the lowest index first.

    Args:
        density: k as a fraction of the units, rounded up; larger sends more.
        width: Elements of one unit; wider units cost fewer index bytes and choose less finely.
    """

    density: float
    width: int = 1

    def __post_init__(self) -> None:
        """Check the options."""
        check_density(self, self.density)
        check_width(self, self.width)

    def budget(self, units: int) -> int:
        """The density as a number of units."""
        return units_of_density(self.density, units)

    def choose(self, gradient: Tensor, k: int, seed: int) -> Tensor | None:
        """The ``k`` strongest units."""
        return kernels.top_k(strength(gradient, self.width), k)

    def select_from(self, debt: Debt, *, seed: int = 0) -> Selection:
        """The strongest elements, found while debts and gradient are added up."""
        if self.width > 1:
            return super().select_from(debt, seed=seed)
        return debt.take_top_k(self.budget(debt.numel))
