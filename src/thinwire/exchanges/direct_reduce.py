"""Direct reduce: each rank owns a part of the values, adds it up for all, and sends everybody the mean.

Rounds: 2, whatever the number of ranks; 1 between two, who both add up everything. Bytes sent by each rank: about
2 (world - 1) / world of the values, which is as little as a ring needs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from thinwire.exchanges.all_reduce import ring_chunks
from thinwire.exchanges.raw_values import letter_of, values_of
from thinwire.protocols import Exchange, Outgoing, Wire
from thinwire.types import Delivery, Traffic
from thinwire.units import accumulation_dtype


@dataclass(frozen=True, kw_only=True)
class DirectReduce(Exchange):
    """Sum the values of coordinates that all ranks share, each part of them on its owner.

    The owner adds up in rank order in float32 (float64 for float64) and divides, and everybody takes the bytes it
    sends: so the bits are the same on every rank, and they are those that gathering all values would give.
    """

    needs_shared: ClassVar[bool] = True

    def deliver(self, outgoing: Outgoing, wire: Wire) -> Delivery:
        """The mean of everybody's values, at the common coordinates."""
        mine = outgoing.selection
        if wire.world == 2:
            return Delivery([mine.with_values(_of_two(mine.values, wire))])
        others = [rank for rank in range(wire.world) if rank != wire.rank]
        parts = torch.split(mine.values, ring_chunks(mine.values.numel(), wire.world))
        owners = [rank for rank in others if parts[rank].numel()]
        own = parts[wire.rank]
        # Empty parts have no letters.
        givers = others if own.numel() else []
        wire.post({owner: letter_of(parts[owner]) for owner in owners})
        given = {rank: values_of(letter, own) for rank, letter in wire.collect(givers).items()} | {wire.rank: own}
        mean = _mean(given, own)
        wire.post(dict.fromkeys(givers, letter_of(mean)))
        means = {owner: values_of(letter, parts[owner]) for owner, letter in wire.collect(owners).items()}
        means[wire.rank] = mean
        return Delivery([mine.with_values(torch.cat([means.get(rank, own[:0]) for rank in range(wire.world)]))])

    def calls(self, world: int) -> int:
        """One to the owners, one from them."""
        return 1 if world == 2 else 2

    def traffic(self, world: int, payload: int, itemsize: int = 4) -> Traffic:
        """The cost of summing ``payload`` bytes of values of ``itemsize`` bytes each, both rounds at their busiest."""
        if world == 1 or payload == 0:
            return Traffic()
        if world == 2:
            return Traffic(bytes_sent=payload, rounds=1)
        chunks = ring_chunks(payload // itemsize, world)
        busiest = sum(chunks) - min(chunks) + (world - 1) * max(chunks)
        return Traffic(bytes_sent=busiest * itemsize, rounds=2)


def _of_two(values: Tensor, wire: Wire) -> Tensor:
    """The mean where each rank owns everything."""
    other = [1 - wire.rank] if values.numel() else []
    wire.post(dict.fromkeys(other, letter_of(values)))
    theirs = {rank: values_of(letter, values) for rank, letter in wire.collect(other).items()}
    return _mean(theirs | {wire.rank: values}, values)


def _mean(given: Mapping[int, Tensor], like: Tensor) -> Tensor:
    """Added up in the order of the ranks, beginning at zero as every sum here does, and rounded once."""
    total = torch.zeros(like.numel(), dtype=accumulation_dtype(like.dtype), device=like.device)
    for rank in sorted(given):
        total.add_(given[rank])
    return total.div_(len(given)).to(like.dtype)
