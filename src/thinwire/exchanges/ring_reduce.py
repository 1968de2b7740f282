"""Ring reduce: sums go round a ring until every rank has one part complete, then the complete parts go round.

Rounds: 2 (world - 1), each of them one delay: the backend's own ring waits for an answer in each. Bytes sent by each
rank: 2 (world - 1) / world of the values, all of them to one neighbour, so that no rank hears from several at once.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch

from thinwire.exchanges.all_reduce import ring_chunks
from thinwire.exchanges.raw_values import letter_of, values_of
from thinwire.protocols import Exchange, Outgoing, Wire
from thinwire.types import Delivery, Traffic


@dataclass(frozen=True, kw_only=True)
class RingReduce(Exchange):
    """Sum the values of coordinates that all ranks share, round a ring of letters.

    Each part is added up along one way, in the order of the ranks from its first on, and its last rank's bytes are
    everybody's: so the bits are the same on every rank. Values are divided before they are summed, as by `AllReduce`.
    """

    needs_shared: ClassVar[bool] = True

    def deliver(self, outgoing: Outgoing, wire: Wire) -> Delivery:
        """The mean of everybody's values, at the common coordinates."""
        mine, rank, world = outgoing.selection, wire.rank, wire.world
        mean = torch.mul(mine.values, 1.0 / world)
        chunks = torch.split(mean, ring_chunks(mean.numel(), world))
        right, left = (rank + 1) % world, (rank - 1) % world
        for turn in range(2 * (world - 1)):
            # What came last goes on; after one way round, that is a complete part.
            gone, come = chunks[(rank - turn) % world], chunks[(left - turn) % world]
            wire.post({right: letter_of(gone)} if gone.numel() else {})
            for letter in wire.collect([left] if come.numel() else []).values():
                theirs = values_of(letter, come)
                come.copy_(theirs) if turn >= world - 1 else come.add_(theirs)
        return Delivery([mine.with_values(mean)])

    def calls(self, world: int) -> int:
        """One for each step of both ways."""
        return 2 * (world - 1)

    def traffic(self, world: int, payload: int, itemsize: int = 4) -> Traffic:
        """The cost of summing ``payload`` bytes of values of ``itemsize`` bytes each, every round at its busiest."""
        rounds = 2 * (world - 1) if payload else 0
        return Traffic(bytes_sent=rounds * max(ring_chunks(payload // itemsize, world)) * itemsize, rounds=rounds)
