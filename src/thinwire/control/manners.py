"""How many one-way delays an exchange's declared rounds take, where that is not as plain as it is declared.

A round of letters takes one delay. In a round of one of Gloo's own collectives the receiver first says where to put
the bytes, which is a delay more. And of a letter that is longer than any room that stands ready (see `thinwire.mail`)
the rest comes two delays behind the beginning.
"""

from thinwire.mail import LARGEST
from thinwire.types import Traffic

ANSWERED = ("AllGather", "AllReduce")
"""The classes of parts that are collectives of Gloo: receivers answer before anything moves."""


def delays(part: object, declared: Traffic, world: int) -> float:
    """One-way delays that a part's declared rounds take."""
    if type(part).__name__ in ANSWERED:
        return 2.0 * declared.rounds
    longest = declared.bytes_sent / max(declared.rounds * (world - 1), 1)
    return (3.0 if longest > LARGEST else 1.0) * declared.rounds
