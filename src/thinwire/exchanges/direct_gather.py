"""Direct gather: everybody sends everybody a letter at once, and all add up in rank order.

Rounds: 1, whatever the number of ranks, and none for short messages that have coordinates: they go along with the roll
call. (Long ones could too. But then nobody could tell how long they take from how late the last rank comes, and a
controller that cannot tell does not know its wire.)
Bytes sent by each rank: (world - 1) times its own message.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from thinwire import message
from thinwire.message import Expected, Kind
from thinwire.protocols import SHORT, Exchange, Outgoing, Wire
from thinwire.types import Delivery, Traffic


@dataclass(frozen=True, kw_only=True)
class DirectGather(Exchange):
    """Gather all messages on all ranks in one round. Nothing is padded: each message goes as long as it is.

    It sends as many bytes as an all-gather by ring, in one delay instead of ``world - 1`` of them.

    Args:
        apart: Short messages too go in a round of their own, in which one can see how long they take.
    """

    apart: bool = False
    needs_shared: ClassVar[bool] = False

    @property
    def early(self) -> bool:
        """Unless all messages go apart."""
        return not self.apart

    def deliver(self, outgoing: Outgoing, wire: Wire) -> Delivery:
        """Everybody's selection, in rank order: the same parts as those of all-gather."""
        mine = outgoing.selection
        expected = Expected(numel=mine.numel, width=mine.width, dtype=mine.values.dtype, turn=outgoing.turn)
        if not outgoing.shared:
            arrived = outgoing.arrived
            late = [rank for rank, size in enumerate(outgoing.sizes) if size > SHORT or arrived is None]
            letters = dict(enumerate(arrived or ())) | (_gathered(outgoing.letter, late, wire) if late else {})
            return Delivery([message.decode(letters[rank], expected) for rank in range(wire.world)], wire.world)
        # Everybody knows the coordinates: only values travel.
        letters = _gathered(message.encode(mine, None, outgoing.turn, kind=Kind.VALUES), range(wire.world), wire)
        parts = [message.decode(letters[rank], expected, known=mine) for rank in range(wire.world)]
        return Delivery(parts, wire.world)

    def traffic(self, world: int, payload: int, itemsize: int = 1) -> Traffic:
        """The cost of gathering messages of which the largest has ``payload`` bytes."""
        return Traffic(bytes_sent=(world - 1) * payload, rounds=int(world > 1))


def _gathered(mine: Tensor, senders: Collection[int], wire: Wire) -> dict[int, Tensor]:
    """The letters of some ranks, on all ranks."""
    others = [rank for rank in range(wire.world) if rank != wire.rank] if wire.rank in senders else []
    wire.post(dict.fromkeys(others, mine))
    letters = wire.collect([rank for rank in senders if rank != wire.rank])
    return {**letters, wire.rank: mine} if wire.rank in senders else letters
