"""Recursive doubling: pairs of ranks swap their sums, then pairs of pairs, until everybody has everything.

Hierarchical centralisation of Zen (SparCML's SSAR), for any number of ranks: those beyond the largest power of two
first give what they have to a rank below, and hear the result at the end. Both of a pair add the same two messages,
and a sum of two does not depend on their order, so all ranks end with the same bits.

Rounds: log2 of the largest power of two, and 2 more unless that is all ranks. With g(k) the densification over k ranks
and e bytes for a sent unit, each rank sends the sum of g(1), g(2), g(4), ... times d * units * e bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from thinwire.exchanges.letters import Letters, added, in_main_memory
from thinwire.protocols import Codec, Exchange, Outgoing, Wire
from thinwire.types import Delivery, Selection, Traffic, Turn

Round = tuple[tuple[int, int], ...]
"""Who sends to whom."""


@dataclass(frozen=True, kw_only=True)
class RecursiveDoubling(Exchange):
    """Swap sums with a partner twice as far away in each round."""

    needs_shared: ClassVar[bool] = False
    takes_letters: ClassVar[bool] = False
    depends_on_data: ClassVar[bool] = True

    def deliver(self, outgoing: Outgoing, wire: Wire) -> Delivery:
        """The sum, as one selection."""
        total = in_main_memory(outgoing.selection)
        letters = Letters(codec=outgoing.codec, turn=outgoing.turn, shared=outgoing.shared, dtype=total.values.dtype)
        for pairs in schedule(wire.world):
            targets = [target for source, target in pairs if source == wire.rank]
            sources = [source for source, target in pairs if target == wire.rank]
            wire.post(dict.fromkeys(targets, letters.write(total)) if targets else {})
            for letter in wire.collect(sources).values():
                total = _next(total, letters.read(letter, total), wire)
        return Delivery([total], wire.world)

    def calls(self, world: int) -> int:
        """One for each round."""
        return len(schedule(world))

    def traffic(self, world: int, payload: int, itemsize: int = 1) -> Traffic:
        """What is to be expected at the most for whole messages of ``payload`` bytes: where no unit is sent twice."""
        return Traffic(bytes_sent=sum(held(world)) * payload, rounds=len(schedule(world)))

    def forecast(self, brought: Sequence[Selection], codec: Codec, *, shared: bool = False) -> Traffic:
        """The busiest rank of each round, from what all ranks bring."""
        world = len(brought)
        totals = [in_main_memory(selection) for selection in brought]
        turn = Turn(step=0, group=0, rank=0, world=world)
        letters = Letters(codec=codec, turn=turn, shared=shared, dtype=totals[0].values.dtype)
        most = 0
        for pairs in schedule(world):
            sent = {source: letters.write(totals[source]) for source, _ in pairs}
            most += max(letter.numel() for letter in sent.values())
            before = list(totals)
            for source, target in pairs:
                seat = Turn(step=0, group=0, rank=target, world=world)
                totals[target] = _next(before[target], letters.read(sent[source], before[target]), seat)
        return Traffic(bytes_sent=most, rounds=len(schedule(world)))


def core(world: int) -> int:
    """The largest power of two that is not more than all ranks."""
    return 1 << (world.bit_length() - 1)


def schedule(world: int) -> list[Round]:
    """Who sends to whom, round by round."""
    inner = core(world)
    before = [tuple((rank, rank - inner) for rank in range(inner, world))] if inner < world else []
    behind = [tuple((rank - inner, rank) for rank in range(inner, world))] if inner < world else []
    doubling = [tuple((rank, rank ^ (1 << bit)) for rank in range(inner)) for bit in range(inner.bit_length() - 1)]
    return [*before, *doubling, *behind]


def held(world: int) -> list[int]:
    """Of how many ranks there is something in what the busiest rank sends, round by round."""
    inner = core(world)
    outer = world - inner
    doubling = [(1 << bit) + min(outer, 1 << bit) for bit in range(inner.bit_length() - 1)]
    return [1, *doubling, world] if outer else doubling


def _next(mine: Selection, theirs: Selection, seat: Wire | Turn) -> Selection:
    """What a rank has after a letter: the sum; those outside the core hear the result."""
    return theirs if seat.rank >= core(seat.world) else added([mine, theirs])
