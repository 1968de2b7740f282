"""Own: every rank sends what it finds worth sending. The choice of most papers on top-k."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from thinwire.agreements.lots import seed_of
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

    def propose(self, selector: Selector, owed: Tensor, turn: Turn) -> Selection:
        """This rank's own selection."""
        return selector.select(owed, seed=seed_of(turn, self.seed, turn.rank))
