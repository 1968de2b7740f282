"""How exchanges spend their rounds and bytes, where that is not as plain as it is declared.

Parts declare rounds that wait for each other and bytes of the busiest rank. A round of letters takes one one-way delay;
but in a round of one of Gloo's own collectives the receiver first says where to put the bytes, which is a delay more.
"""

from collections.abc import Callable
from dataclasses import dataclass

from thinwire.types import Traffic


@dataclass(frozen=True, kw_only=True)
class Manner:
    """What a declared round and a declared byte count for."""

    round: float = 1.0
    """One-way delays."""
    byte: Callable[[int], float] = lambda world: 1.0
    """Bytes behind one another, for each that the busiest rank sends."""

    def rounds(self, declared: Traffic) -> float:
        """Rounds of letters that take as long."""
        return self.round * declared.rounds

    def bytes_sent(self, declared: Traffic, world: int) -> float:
        """Bytes that take as long."""
        return self.byte(world) * declared.bytes_sent


PLAIN = Manner()
ANSWERED = Manner(round=2.0)

MANNERS: dict[str, Manner] = {"AllGather": ANSWERED, "AllReduce": ANSWERED}
"""By the name of the part's class; a part that is not here is plain."""


def manner_of(part: object) -> Manner:
    """How a part's declared traffic counts."""
    return MANNERS.get(type(part).__name__, PLAIN)
