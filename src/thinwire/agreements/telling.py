"""How long lists of leaders' coordinates become known to all, by letters.

A binomial tree makes a list pass log2 of the ranks links one behind the other, each time as a whole. Here every
other rank gets a part of its own, and hands it on to the rest: two rounds, in which no rank sends more bytes than the
list has. (Short lists go along with the roll call.)
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from thinwire.errors import WireError, WireReason
from thinwire.protocols import Wire
from thinwire.types import Traffic


def tell(letter: Tensor, sizes: Mapping[int, int], wire: Wire) -> dict[int, Tensor]:
    """Make the letters of some ranks known to all.

    Args:
        letter: This rank's own; not looked at where it is no sender.
        sizes: The lengths of the senders' letters, known to all.
        wire: The ranks.

    Returns:
        The letter of every sender but this rank.
    """
    me, others = wire.rank, [rank for rank in range(wire.world) if rank != wire.rank]
    parts = {sender: _parts(size, sender, wire.world) for sender, size in sizes.items()}
    sends = others if me in sizes else []
    cut = torch.split(letter, [parts[me][other] for other in sends]) if sends else []
    wire.post(dict(zip(sends, cut, strict=True)))
    found = {sender: {me: part} for sender, part in wire.collect([sender for sender in sizes if sender != me]).items()}
    if wire.world > 2:
        bundles = {other: [sender for sender in found if sender != other] for other in others}
        bundles = {other: senders for other, senders in bundles.items() if senders}
        wire.post({other: torch.cat([found[sender][me] for sender in each]) for other, each in bundles.items()})
        for other, bundle in wire.collect(bundles).items():
            pieces = _split(bundle, [parts[sender][other] for sender in bundles[other]])
            for sender, piece in zip(bundles[other], pieces, strict=True):
                found[sender][other] = piece
    return {sender: torch.cat([each[rank] for rank in sorted(each)]) for sender, each in found.items()}


def calls(world: int) -> int:
    """Between two ranks nobody is left to hand on to."""
    return 2 if world > 2 else 1


def traffic(world: int, letter: int, *, senders: int = 1) -> Traffic:
    """What it costs to tell letters of so many bytes, every round at its busiest."""
    if world == 1:
        return Traffic()
    handed_on = senders * (world - 2) * max(_parts(letter, 0, world).values())
    return Traffic(bytes_sent=letter + handed_on, rounds=calls(world))


def _parts(size: int, sender: int, world: int) -> dict[int, int]:
    """How many bytes of a sender's letter each other rank hands on."""
    others = [rank for rank in range(world) if rank != sender]
    return {rank: (size + place) // len(others) for place, rank in enumerate(others)}


def _split(bundle: Tensor, lengths: Sequence[int]) -> Sequence[Tensor]:
    """The parts of several letters that one rank hands on."""
    if bundle.numel() != sum(lengths):
        reason = WireReason.TRUNCATED if bundle.numel() < sum(lengths) else WireReason.TRAILING
        raise WireError(reason, f"{bundle.numel()} bytes of leaders' letters instead of {sum(lengths)}")
    return torch.split(bundle, list(lengths))
