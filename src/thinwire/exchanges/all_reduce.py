"""All-reduce: values are added up position by position while they travel.

Rounds: 2 (world - 1) (ring). Bytes sent by each rank: about 2 (world - 1) / world of the values.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch

from thinwire.protocols import Exchange, Outgoing, Wire
from thinwire.types import Delivery, Traffic


@dataclass(frozen=True, kw_only=True)
class AllReduce(Exchange):
    """Sum the values of coordinates that all ranks share, with the backend's own all-reduce.

    Values are divided by the number of ranks before they are summed, as DistributedDataParallel does it, so that
    the dense plan gives its very bits.
    """

    needs_shared: ClassVar[bool] = True

    def deliver(self, outgoing: Outgoing, wire: Wire) -> Delivery:
        """The mean of everybody's values, at the common coordinates."""
        mine = outgoing.selection
        # Only a whole gradient is summed in the room: of a part, the mean is still to be made there.
        fits = mine.is_full and mine.values.numel() == outgoing.room.numel()
        work = outgoing.room if fits else torch.empty_like(mine.values)
        mean = wire.all_reduce(torch.mul(mine.values, 1.0 / wire.world, out=work))
        return Delivery([mine.with_values(mean)])

    def traffic(self, world: int, payload: int, itemsize: int = 4) -> Traffic:
        """The cost of summing ``payload`` bytes of values of ``itemsize`` bytes each."""
        chunks = ring_chunks(payload // itemsize, world)
        if world == 1 or payload == 0:
            return Traffic()
        # A rank sends every chunk but one on the way round, and every chunk but one on the way back.
        spared = min(chunks[rank] + chunks[(rank + 1) % world] for rank in range(world))
        return Traffic(bytes_sent=(2 * sum(chunks) - spared) * itemsize, rounds=2 * (world - 1))


def ring_chunks(count: int, world: int) -> list[int]:
    """How a ring splits ``count`` values among ``world`` ranks: equal chunks, the last ones short or empty."""
    size = -(-count // world)
    return [max(0, min(size, count - rank * size)) for rank in range(world)]
