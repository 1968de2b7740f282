"""Own: every rank sends what it finds worth sending. The choice of most papers on top-k."""

from dataclasses import dataclass
from typing import ClassVar

from thinwire.agreements.lots import seed_of
from thinwire.debt import Debt
from thinwire.options import check_seed
from thinwire.protocols import Agreement, Selector
from thinwire.types import Selection, Turn


@dataclass(frozen=True, kw_only=True)
class Own(Agreement):
    """Each rank keeps its own coordinates and sends them along.

    Args:
        seed: For selectors that draw lots: each rank draws its own.
    """

    shared: ClassVar[bool] = False
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the options."""
        check_seed(self, self.seed)

    def propose(self, selector: Selector, debt: Debt, turn: Turn) -> Selection:
        """This rank's own selection."""
        return selector.select_from(debt, seed=seed_of(turn, self.seed, turn.rank))
