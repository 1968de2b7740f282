"""Leader: one rank's top-k dictates the coordinates, and the values can be all-reduced (AR-Topk).

Flexible Communication (Tyagi and Swany, 2023), Algorithm 1, the rotating variant STAR. The paper selects on
every rank and uses the leader's; here only the leader selects.
"""

from dataclasses import dataclass
from typing import ClassVar

from thinwire.agreements.lots import seed_of
from thinwire.debt import Debt
from thinwire.options import check_seed
from thinwire.protocols import Agreement, Selector
from thinwire.types import Selection, Traffic, Turn


@dataclass(frozen=True, kw_only=True)
class Leader(Agreement):
    """The ranks lead in turn: rank ``step mod world`` decides the coordinates for all.

    Args:
        seed: For selectors that draw lots.
    """

    shared: ClassVar[bool] = True
    tells: ClassVar[bool] = True
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the options."""
        check_seed(self, self.seed)

    def speaker(self, turn: Turn) -> int:
        """The rank whose turn it is."""
        return turn.step % turn.world

    def propose(self, selector: Selector, debt: Debt, turn: Turn) -> Selection | None:
        """The leader's selection; the others wait for it."""
        if turn.rank != self.speaker(turn):
            return None
        return selector.select_from(debt, seed=seed_of(turn, self.seed))

    def traffic(self, world: int, letter: int) -> Traffic:
        """A short letter to all at once; a long one by binomial tree: ceil(log2 world) times from the root."""
        if self.goes_along(letter):
            return Traffic(bytes_sent=(world - 1) * letter)
        rounds = (world - 1).bit_length()
        return Traffic(bytes_sent=rounds * letter, rounds=rounds)
