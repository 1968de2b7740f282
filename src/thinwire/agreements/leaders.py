"""Leaders: a few ranks, drawn anew for each step, say what matters to them; all ranks send all of that.

Bandwidth Reduction using Importance Weighted Pruning on Ring AllReduce (Cheng and Xu, 2019). Its leaders are random;
here they follow from a hash, so nobody has to be told who leads. One leader's coordinates are good for all only if the
ranks agree much; each leader more adds what matters to it, at the price of its coordinates and of as many more values.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from thinwire.agreements.lots import seed_of
from thinwire.debt import Debt
from thinwire.errors import PlanError
from thinwire.options import check_seed
from thinwire.protocols import Agreement, Selector
from thinwire.types import Selection, Traffic, Turn, index_dtype


@dataclass(frozen=True, kw_only=True)
class Leaders(Agreement):
    """Some ranks lead, drawn by lot for each step and group: the units of any of them are sent by all.

    Args:
        count: How many ranks lead; all of them, where there are fewer.
        seed: Of the draw, and for selectors that draw lots.
        sweep: Every unit is sent at least once in so many steps, whether a leader wants it or not, at no cost in
            coordinates; 0 for never. What no leader ever finds important would become stale, and stale gradients harm.
    """

    shared: ClassVar[bool] = True
    tells: ClassVar[bool] = True
    count: int = 2
    seed: int = 0
    sweep: int = 0

    def __post_init__(self) -> None:
        """Check the options."""
        check_seed(self, self.seed)
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

    def calls(self, world: int) -> int:
        """A broadcast for each leader."""
        return min(self.count, world)

    def traffic(self, world: int, letter: int) -> Traffic:
        """Broadcasts by binomial trees, one after the other: a leader sends its letter ceil(log2 world) times."""
        rounds = (world - 1).bit_length()
        return Traffic(bytes_sent=rounds * letter, rounds=rounds * self.calls(world))


def _lot(seed: int) -> bytes:
    """Apart from what is drawn from the seed itself."""
    return hashlib.blake2b(f"leader/{seed}".encode(), digest_size=8).digest()
