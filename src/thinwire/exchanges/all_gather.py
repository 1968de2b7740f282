"""All-gather: everybody gets everybody's message, and adds them up in rank order.

Rounds: world - 1 (ring). Bytes sent by each rank: (world - 1) times the largest message.
"""

from dataclasses import dataclass
from typing import ClassVar

from thinwire import message
from thinwire.message import Expected, Kind
from thinwire.protocols import Exchange, Outgoing, Wire
from thinwire.types import Delivery, Traffic


@dataclass(frozen=True, kw_only=True)
class AllGather(Exchange):
    """Gather all messages on all ranks. Messages of different lengths are padded to the longest and cut again."""

    needs_shared: ClassVar[bool] = False

    def deliver(self, outgoing: Outgoing, wire: Wire) -> Delivery:
        """Everybody's selection, in rank order."""
        mine = outgoing.selection
        expected = Expected(numel=mine.numel, width=mine.width, dtype=mine.values.dtype, turn=outgoing.turn)
        if not outgoing.shared:
            letters = wire.all_gather(outgoing.letter, outgoing.sizes)
            return Delivery([message.decode(letter, expected) for letter in letters], wire.world)
        # Everybody knows the coordinates: only values travel, and all messages have one length.
        values = message.encode(mine, None, outgoing.turn, kind=Kind.VALUES)
        letters = wire.all_gather(values, [values.numel()] * wire.world)
        return Delivery([message.decode(letter, expected, known=mine) for letter in letters], wire.world)

    def traffic(self, world: int, payload: int, itemsize: int = 1) -> Traffic:
        """The cost of gathering messages of which the largest has ``payload`` bytes."""
        return Traffic(bytes_sent=(world - 1) * payload, rounds=(world - 1) if payload else 0)
