"""Seeded: all ranks draw the same lots, so coordinates cost nothing on the wire."""

from dataclasses import dataclass
from typing import ClassVar

from thinwire.agreements.lots import seed_of
from thinwire.debt import Debt
from thinwire.options import check_seed
from thinwire.protocols import Agreement, Selector
from thinwire.types import Selection, Turn


@dataclass(frozen=True, kw_only=True)
class Seeded(Agreement):
    """The same seed, hence the same coordinates, on every rank. Needs a selector that does not look at the data.

    Args:
        seed: The run's seed, the same on every rank.
    """

    shared: ClassVar[bool] = True
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the options."""
        check_seed(self, self.seed)

    def propose(self, selector: Selector, debt: Debt, turn: Turn) -> Selection:
        """What the common lots say, with this rank's values."""
        return selector.select_from(debt, seed=seed_of(turn, self.seed))
