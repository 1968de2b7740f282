"""Norm leader: the rank that has most to say dictates the coordinates (AR-Topk).

Flexible Communication (Tyagi and Swany, 2023), Algorithm 1, the variant VAR: every rank selects, and the one with the
largest squared norm of the selected values of its error-fed gradient leads. The paper gathers the norms in an exchange
of its own; here they are in the roll call, which takes place anyway. (The released code takes smoothed norms of raw
gradients instead.)
"""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from thinwire.agreements.leader import Leader
from thinwire.agreements.lots import seed_of
from thinwire.debt import Debt
from thinwire.protocols import Selector
from thinwire.types import Selection, Turn
from thinwire.units import energy, flatten


@dataclass(frozen=True, kw_only=True)
class NormLeader(Leader):
    """The rank whose selected values have the most energy decides for all; of equal ones, the lowest rank.

    A rank whose gradients are always small never leads, and what matters to it alone then waits for long: with the
    same data distribution on all ranks, `Leader` is the better choice.
    """

    def weigh(self, proposal: Selection) -> float:
        """The energy of what this rank would send, as far as a number can say it."""
        weight = energy(flatten(proposal.values))
        return weight if math.isfinite(weight) else sys.float_info.max

    def speakers(self, turn: Turn, weights: Sequence[float] = ()) -> tuple[int, ...]:
        """The rank of the largest weight; before that is known, anybody."""
        return (list(weights).index(max(weights)),) if weights else tuple(range(turn.world))

    def propose(self, selector: Selector, debt: Debt, turn: Turn) -> Selection:
        """What this rank would send if it led."""
        return selector.select_from(debt, seed=seed_of(turn, self.seed))
