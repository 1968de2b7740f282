"""Controlled: last step's threshold, a little higher where it lets too many through, a little lower where too few.

The multiplicative control of MiCRO and ExDyna (2023, 2024), without a variable that would have to be saved and moved
with its parameters: after a step that sent everything above a threshold, the largest thing still owed lies just
below that threshold. So the ledger has kept it, and a resumed run goes on with the same one, to the bit.

Their fixed steps of half a percent need hundreds of training steps to find a threshold. Here the step is a power of how
far the count was off: none where it was right, large where it was far off.
"""

from dataclasses import dataclass

from torch import Tensor

from thinwire import kernels
from thinwire.debt import Debt, none_of
from thinwire.errors import PlanError
from thinwire.options import check_density, units_of_density
from thinwire.protocols import Selector
from thinwire.selectors.near import at_most, reaching, sampled_start
from thinwire.types import Selection

FAR = 4
"""A threshold that is off by this factor is no threshold of last step's: the plan or the leader was another then."""
MOST = 2
"""How many times k may be selected."""


@dataclass(frozen=True, kw_only=True)
class Controlled(Selector):
    """Select about k elements by a threshold that follows the gradient from step to step.

    Args:
        density: k as a fraction of the elements, rounded up; larger sends more.
        gain: The power of (count / k) by which the threshold is multiplied. The inverse of the steepness of the tail
            would be exact (about 1/10 near one in a thousand of normal numbers); larger overshoots, smaller is slow.
    """

    density: float
    gain: float = 0.1

    def __post_init__(self) -> None:
        """Check the options."""
        check_density(self, self.density)
        if not isinstance(self.gain, int | float) or not 0.0 < self.gain <= 1.0:
            raise PlanError(f"Controlled(gain={self.gain!r}): a power from above 0 to 1; write gain=0.1")

    def budget(self, units: int) -> int:
        """Twice the density: control is never exact."""
        return min(units, MOST * units_of_density(self.density, units))

    def choose(self, gradient: Tensor, k: int, seed: int) -> Tensor | None:
        """Without a memory: what reaches the threshold of a sample; the strongest ``k`` where there are more."""
        wanted = min(units_of_density(self.density, gradient.numel()), k)
        return at_most(gradient, reaching(gradient, sampled_start(gradient, wanted, seed)), k)

    def select_from(self, debt: Debt, *, seed: int = 0) -> Selection:
        """What reaches last step's threshold, adjusted; without one, as `choose`."""
        if not debt.is_finite:
            return none_of(debt, 1)
        k = units_of_density(self.density, debt.numel)
        last = kernels.moments(debt.before).largest
        count = kernels.count_at_least(debt.total, last) if last else 0
        if k == 0 or not k <= FAR * count <= FAR * FAR * k:
            return self.select(debt.total, seed=seed)
        found = reaching(debt.total, last * (count / k) ** self.gain)
        return self.at(debt.total, at_most(debt.total, found, self.budget(debt.numel)))
