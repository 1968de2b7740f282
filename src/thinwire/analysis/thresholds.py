"""How many elements each rule for a threshold selects, and how often it looks at the vector for that."""

from typing import NamedTuple

from thinwire.analysis.looks import Counting
from thinwire.debt import Debt
from thinwire.options import units_of_density
from thinwire.protocols import Selector
from thinwire.selectors import Controlled, GaussianK, SampledK


class Hit(NamedTuple):
    """One rule on one vector."""

    rule: str
    ratio: float
    """Selected / k."""
    passes: int
    """Comparisons of all elements with one threshold."""
    exact: int
    """Exact selections: of the whole vector, or of those that passed."""


def rules(density: float) -> dict[str, Selector]:
    """All rules by name."""
    return {
        "published": GaussianK(density=density, variant="published"),
        "released": GaussianK(density=density, variant="released"),
        "corrected": GaussianK(density=density, variant="corrected"),
        "sampled": SampledK(density=density),
        "controlled": Controlled(density=density),
    }


def hits(debt: Debt, density: float, seed: int) -> list[Hit]:
    """Try all rules on one debt; nothing is taken out of it.

    Args:
        debt: What is owed.
        density: k as a fraction of the elements.
        seed: For samples.

    Returns:
        What each rule selects.
    """
    k = units_of_density(density, debt.numel)
    found = []
    for name, selector in rules(density).items():
        with Counting() as looks:
            count = selector.select_from(debt, seed=seed).count
        found.append(Hit(name, count / k, looks.passes, looks.selections))
    return found
