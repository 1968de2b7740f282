"""Leaders: a few ranks, drawn anew for each step, say what matters to them; all ranks send all of that.

Bandwidth Reduction using Importance Weighted Pruning on Ring AllReduce (Cheng and Xu, 2019). Its leaders are random;
here they follow from a hash, so nobody has to be told who leads. One leader's coordinates are good for all only if the
ranks agree much; each leader more adds what matters to it, at the price of its coordinates and of as many more values.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from thinwire.agreements import telling
from thinwire.agreements.leader import Leader
from thinwire.agreements.lots import seed_of
from thinwire.debt import Debt
from thinwire.errors import PlanError
from thinwire.protocols import Selector
from thinwire.types import Selection, Traffic, Turn, index_dtype


@dataclass(frozen=True, kw_only=True)
class Leaders(Leader):
    """Some ranks lead, drawn by lot for each step and group: the units of any of them are sent by all.

    Args:
        count: How many ranks lead; all of them, where there are fewer.
        seed: Of the draw, and for selectors that draw lots.
        share_from: As for one `Leader`.
        sweep: Every unit is sent at least once in so many steps, whether a leader wants it or not, at no cost in
            coordinates; 0 for never. What no leader ever finds important would become stale, and stale gradients harm.
    """

    count: int = 2
    sweep: int = 0

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        if not isinstance(self.count, int) or isinstance(self.count, bool) or self.count < 1:
            raise PlanError(f"Leaders(count={self.count!r}): a number of ranks, at least 1; write count=2")
        if not isinstance(self.sweep, int) or isinstance(self.sweep, bool) or self.sweep < 0:
            raise PlanError(f"Leaders(sweep={self.sweep!r}): a number of steps, such as sweep=1000; 0 for no sweep")

    def speakers(self, turn: Turn, weights: Sequence[float] = ()) -> tuple[int, ...]:
        """The ranks with the smallest hashes, in their order.

        (The generators of libraries may draw other lots in other versions.)
        """
        lots = {rank: _lot(seed_of(turn, self.seed, rank)) for rank in range(turn.world)}
        return tuple(sorted(sorted(lots, key=lots.__getitem__)[: self.count]))

    def propose(self, selector: Selector, debt: Debt, turn: Turn) -> Selection | None:
        """A leader's selection; the others wait for it."""
        if turn.rank not in self.speakers(turn):
            return None
        return selector.select_from(debt, seed=seed_of(turn, self.seed, turn.rank))

    def settle(self, told: Sequence[Selection], turn: Turn) -> Selection:
        """The units of any leader, and those whose turn it is."""
        first = told[0]
        if any(each.is_full for each in told) or (len(told) == 1 and not self.sweep):
            return next((each for each in told if each.is_full), first)
        parts = [each.indices.cpu() for each in told]
        if self.sweep:
            start = min(turn.step % self.sweep, first.units)
            parts.append(torch.arange(start, first.units, self.sweep, dtype=index_dtype(first.units)))
        return Selection(torch.unique(torch.cat(parts)), first.values[:0], first.numel, first.width)

    def traffic(self, world: int, letter: int) -> Traffic:
        """As for one leader; but of long letters, the others hand on parts of several."""
        if self.goes_along(letter):
            return super().traffic(world, letter)
        return telling.traffic(world, letter, senders=min(self.count, world))


def _lot(seed: int) -> bytes:
    """Apart from what is drawn from the seed itself."""
    return hashlib.blake2b(f"leader/{seed}".encode(), digest_size=8).digest()
