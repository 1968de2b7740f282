"""Direct gather: everybody sends everybody a letter at once, and all add up in rank order.

Rounds: 1, whatever the number of ranks, and none where messages have coordinates: they go along with the roll call.
Bytes sent by each rank: (world - 1) times its own message.
"""

from dataclasses import dataclass
from typing import ClassVar

from thinwire import message
from thinwire.message import Expected, Kind
from thinwire.protocols import Exchange, Outgoing, Wire
from thinwire.types import Delivery, Traffic


@dataclass(frozen=True, kw_only=True)
class DirectGather(Exchange):
    """Gather all messages on all ranks in one round. Nothing is padded: each message goes as long as it is.

    It sends as many bytes as an all-gather by ring, in one delay instead of ``world - 1`` of them.
    """

    needs_shared: ClassVar[bool] = False
    early: ClassVar[bool] = True

    def deliver(self, outgoing: Outgoing, wire: Wire) -> Delivery:
        """Everybody's selection, in rank order: the same parts as those of all-gather."""
        mine = outgoing.selection
        expected = Expected(numel=mine.numel, width=mine.width, dtype=mine.values.dtype, turn=outgoing.turn)
        if not outgoing.shared:
            assert outgoing.arrived is not None
            return Delivery([message.decode(letter, expected) for letter in outgoing.arrived], wire.world)
        # Everybody knows the coordinates: only values travel.
        values = message.encode(mine, None, outgoing.turn, kind=Kind.VALUES)
        others = [rank for rank in range(wire.world) if rank != wire.rank]
        wire.post(dict.fromkeys(others, values))
        letters = {**wire.collect(others), wire.rank: values}
        parts = [message.decode(letters[rank], expected, known=mine) for rank in range(wire.world)]
        return Delivery(parts, wire.world)

    def traffic(self, world: int, payload: int, itemsize: int = 1) -> Traffic:
        """The cost of gathering messages of which the largest has ``payload`` bytes."""
        return Traffic(bytes_sent=(world - 1) * payload, rounds=int(world > 1))
