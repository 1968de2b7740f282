"""Leader: one rank's top-k dictates the coordinates, and the values can be summed position by position (AR-Topk).

Flexible Communication (Tyagi and Swany, 2023), Algorithm 1, the rotating variant STAR. The paper selects on
every rank and uses the leader's; here only the leader selects. And it broadcasts the indices along a tree, which takes
log2 of the ranks rounds and as many copies; see `thinwire.agreements.telling` for what is done here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from thinwire.agreements import telling
from thinwire.agreements.lots import seed_of
from thinwire.debt import Debt
from thinwire.errors import PlanError
from thinwire.options import check_seed
from thinwire.protocols import SHORT, Agreement, Selector, Wire
from thinwire.types import Selection, Traffic, Turn


@dataclass(frozen=True, kw_only=True)
class Leader(Agreement):
    """The ranks lead in turn: rank ``step mod world`` decides the coordinates for all.

    Args:
        seed: For selectors that draw lots.
        share_from: Coordinates of so many bytes and more are not sent to everybody along with the roll call, but
            handed on in parts by the others, which takes two rounds, and the leader sends each byte once. About what
            the wire carries in one delay.
    """

    shared: ClassVar[bool] = True
    tells: ClassVar[bool] = True
    seed: int = 0
    share_from: int = SHORT

    def __post_init__(self) -> None:
        """Check the options."""
        check_seed(self, self.seed)
        if not isinstance(self.share_from, int) or isinstance(self.share_from, bool) or self.share_from < 0:
            raise PlanError(
                f"{type(self).__name__}(share_from={self.share_from!r}): a number of bytes, such as share_from=65536; "
                f"0 has the others always help"
            )

    def speakers(self, turn: Turn, weights: Sequence[float] = ()) -> tuple[int, ...]:
        """The rank whose turn it is."""
        return (turn.step % turn.world,)

    def propose(self, selector: Selector, debt: Debt, turn: Turn) -> Selection | None:
        """The leader's selection; the others wait for it."""
        if turn.rank not in self.speakers(turn):
            return None
        return selector.select_from(debt, seed=seed_of(turn, self.seed))

    def goes_along(self, letter: int) -> bool:
        """Whether it is a short one."""
        return letter < self.share_from

    def tell(self, letter: Tensor, sizes: Mapping[int, int], wire: Wire) -> Mapping[int, Tensor]:
        """With everybody's help."""
        return telling.tell(letter, sizes, wire)

    def calls(self, world: int) -> int:
        """One to hand out the parts, one to hand them on."""
        return telling.calls(world)

    def traffic(self, world: int, letter: int) -> Traffic:
        """A short letter to all at once, along with the roll call; of a long one, nearly two of it in all."""
        if self.goes_along(letter):
            return Traffic(bytes_sent=(world - 1) * letter)
        return telling.traffic(world, letter)
