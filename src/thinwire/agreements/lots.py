"""One number from which lots are drawn: the same turn gives the same number on every machine."""

import hashlib

from thinwire.types import Turn


def seed_of(turn: Turn, seed: int, rank: int | None = None) -> int:
    """A 64-bit seed for one exchange.

    The generation is left out on purpose: a resumed run draws what the uninterrupted run would have drawn.

    Args:
        turn: The exchange.
        seed: The seed of the run.
        rank: Given where every rank draws lots of its own.
    """
    text = f"{seed}/{turn.step}/{turn.group}/{'' if rank is None else rank}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
