"""Doubling reduce: in each round two halves of ever larger groups add up what they have.

Rounds: log2 of the ranks; two more where their number is no power of two. Bytes sent by each rank: all of the values
in every round. That is for few values and long delays: the tree of Flexible Communication (Tyagi and Swany, 2023),
without the way back, which a tree pays as well.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from thinwire.exchanges.raw_values import letter_of, values_of
from thinwire.protocols import Exchange, Outgoing, Wire
from thinwire.types import Delivery, Traffic


@dataclass(frozen=True, kw_only=True)
class DoublingReduce(Exchange):
    """Sum the values of coordinates that all ranks share, by recursive doubling.

    Two partners add the same two sums, and a + b has the bits of b + a: so after each round all ranks of a group have
    the same bits. Ranks beyond a power of two give their values to one of the others first, and take the result from
    it. Values are divided before they are summed, as by `AllReduce`.
    """

    needs_shared: ClassVar[bool] = True

    def deliver(self, outgoing: Outgoing, wire: Wire) -> Delivery:
        """The mean of everybody's values, at the common coordinates."""
        mine, rank = outgoing.selection, wire.rank
        mean = torch.mul(mine.values, 1.0 / wire.world)
        inner = _power_of_two(wire.world)
        host, guest = rank - inner, rank + inner
        is_guest, has_guest = host >= 0, guest < wire.world
        if inner < wire.world:
            _swap(wire, mean, to=[host] * is_guest, of=[guest] * has_guest, add=True)
        for bit in range(inner.bit_length() - 1):
            partner = [] if is_guest else [rank ^ 1 << bit]
            _swap(wire, mean, to=partner, of=partner, add=True)
        if inner < wire.world:
            _swap(wire, mean, to=[guest] * has_guest, of=[host] * is_guest, add=False)
        return Delivery([mine.with_values(mean)])

    def calls(self, world: int) -> int:
        """One for each round."""
        inner = _power_of_two(world)
        return inner.bit_length() - 1 + 2 * (inner < world)

    def traffic(self, world: int, payload: int, itemsize: int = 4) -> Traffic:
        """The cost of summing ``payload`` bytes of values, every round at its busiest."""
        rounds = self.calls(world) if payload else 0
        return Traffic(bytes_sent=rounds * payload, rounds=rounds)


def _power_of_two(world: int) -> int:
    """The largest one that is not above the number of ranks."""
    return 1 << (world.bit_length() - 1)


def _swap(wire: Wire, values: Tensor, *, to: list[int], of: list[int], add: bool) -> None:
    """One round: send the values to a rank, or none, and add or take those of a rank, or none."""
    some = values.numel() > 0
    wire.post(dict.fromkeys(to, letter_of(values)) if some else {})
    for letter in wire.collect(of if some else []).values():
        theirs = values_of(letter, values)
        values.add_(theirs) if add else values.copy_(theirs)
