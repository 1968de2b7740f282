"""Rounded reduce: direct reduce, narrow both ways. Ranks send rounded values, and owners tell rounded means.

What rounding the mean drops is known to its owner alone, which owes it for all: as often as there are ranks, so that
the mean of what is owed is what was dropped. Nothing is lost, and everybody has the same bits, those of the letters.

Rounds: 2, whatever the number of ranks; 1 between two, who both add up everything, so that no mean is rounded. Bytes
sent by each rank: about 2 (world - 1) / world of the rounded values.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from thinwire.exchanges.all_reduce import ring_chunks
from thinwire.exchanges.letters import Letters, added
from thinwire.message import HEADER
from thinwire.protocols import Codec, Exchange, Outgoing, Wire
from thinwire.types import Delivery, Selection, Traffic


@dataclass(frozen=True, kw_only=True)
class RoundedReduce(Exchange):
    """Sum rounded values of coordinates that all ranks share, each part of them on its owner, and round the mean.

    The owner adds up in rank order in float32 (float64 for float64). How both are rounded is the selector's matter.
    """

    needs_shared: ClassVar[bool] = True
    takes_letters: ClassVar[bool] = False
    depends_on_data: ClassVar[bool] = True
    drops: ClassVar[bool] = True

    def deliver(self, outgoing: Outgoing, wire: Wire) -> Delivery:
        """The mean of everybody's values, rounded; and what this rank, as the owner of a part, owes for it."""
        mine = outgoing.selection
        letters = Letters(codec=outgoing.codec, turn=outgoing.turn, shared=True, dtype=mine.values.dtype)
        others = [rank for rank in range(wire.world) if rank != wire.rank]
        if wire.world <= 2:
            whole = _part(mine, mine.values)
            mean = _mean(_swapped([letters.write(whole)] * len(others), whole, letters, wire))
            return Delivery([mine.with_values(mean)])
        parts = [_part(mine, values) for values in torch.split(mine.values, _sizes(mine, wire.world))]
        own = parts[wire.rank]
        exact = _mean(_swapped([letters.write(parts[rank]) for rank in others], own, letters, wire))
        told = outgoing.rounded(exact) if bool(exact.isfinite().all()) else _part(mine, exact)
        wire.post(dict.fromkeys(others, letters.write(told)))
        pulled = {rank: letters.read(letter, parts[rank]) for rank, letter in wire.collect(others).items()}
        pulled[wire.rank] = told
        means = torch.cat([_values(pulled[rank], parts[rank]) for rank in range(wire.world)])
        dropped = [torch.zeros_like(part.values) for part in parts]
        dropped[wire.rank] = (exact - told.values) * wire.world
        return Delivery([mine.with_values(means)], owed=mine.with_values(torch.cat(dropped)))

    def calls(self, world: int) -> int:
        """One to the owners, one from them."""
        return 1 if world <= 2 else 2

    def traffic(self, world: int, payload: int, itemsize: int = 4) -> Traffic:
        """What is to be expected for ``payload`` bytes of rounded values, without what depends on their format."""
        if world == 1:
            return Traffic()
        if world == 2:
            return Traffic(bytes_sent=HEADER.size + payload, rounds=1)
        return Traffic(bytes_sent=2 * (world - 1) * (HEADER.size + -(-payload // world)), rounds=2)

    def forecast(self, brought: Sequence[Selection], codec: Codec, *, shared: bool = True) -> Traffic:
        """Exactly, from the format and the number of the values."""
        world, first = len(brought), brought[0]
        if world <= 2:
            letter = HEADER.size + first.format.size(first.values.numel())
            return Traffic(bytes_sent=(world - 1) * letter, rounds=world - 1)
        sizes = [HEADER.size + first.format.size(count) for count in _sizes(first, world)]
        return Traffic(bytes_sent=sum(sizes) - min(sizes) + (world - 1) * max(sizes), rounds=2)


def _sizes(selection: Selection, world: int) -> list[int]:
    """How many values each rank owns: whole units."""
    return [chunk * selection.width for chunk in ring_chunks(selection.count, world)]


def _part(selection: Selection, values: Tensor) -> Selection:
    """Some of a selection's values as a tensor of their own, of which everything is sent."""
    return Selection(
        None, values, values.numel(), selection.width,
        format=selection.format, scale=selection.scale, levels=selection.levels,
    )  # fmt: skip


def _swapped(written: Sequence[Tensor], own: Selection, letters: Letters, wire: Wire) -> list[Selection]:
    """What all ranks say of this rank's part, in rank order, when every other rank was told its own."""
    others = [rank for rank in range(wire.world) if rank != wire.rank]
    wire.post(dict(zip(others, written, strict=True)))
    found = {rank: letters.read(letter, own) for rank, letter in wire.collect(others).items()} | {wire.rank: own}
    return [found[rank] for rank in sorted(found)]


def _mean(parts: Sequence[Selection]) -> Tensor:
    """Added up in the order of the parts and divided; all NaN where some sum is not finite."""
    return _values(added(parts), parts[0]).div_(len(parts))


def _values(part: Selection, like: Selection) -> Tensor:
    """A part's values; all NaN for one that overflowed."""
    return part.values if part.is_full else torch.full_like(like.values, torch.nan)
