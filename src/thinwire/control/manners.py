"""How a backend's collectives spend their rounds and bytes, where that is not as plain as it is declared.

Parts declare rounds that wait for each other and bytes of the busiest rank. On Gloo a round of a ring costs a message
and its answer, but one of the broadcast tree a message alone; and the tree does not pipeline, so that
the way to its last leaf takes more bytes one behind the other than the root sends. Both were measured with 4 ranks on
emulated links; the laws of the costs follow from the algorithms.
"""

from collections.abc import Callable
from dataclasses import dataclass

from thinwire.types import Traffic


@dataclass(frozen=True, kw_only=True)
class Manner:
    """What a declared round and a declared byte count for."""

    round: float = 1.0
    """Messages with an answer."""
    byte: Callable[[int], float] = lambda world: 1.0
    """Bytes behind one another, for each that the busiest rank sends."""

    def rounds(self, declared: Traffic) -> float:
        """Rounds of a ring that take as long."""
        return self.round * declared.rounds

    def bytes_sent(self, declared: Traffic, world: int) -> float:
        """Bytes of a ring that take as long."""
        return self.byte(world) * declared.bytes_sent


def _of_a_tree(world: int) -> float:
    """The root's L messages share its link, its first child then sends L - 1 of its own, and so on: L (L + 1) / 2."""
    depth = (world - 1).bit_length()
    return (depth + 1) / 2


PLAIN = Manner()
TREE = Manner(round=0.5, byte=_of_a_tree)

MANNERS: dict[str, Manner] = {"Leader": TREE}
"""By the name of the part's class; a part that is not here is plain."""


def manner_of(part: object) -> Manner:
    """How a part's declared traffic counts."""
    return MANNERS.get(type(part).__name__, PLAIN)
