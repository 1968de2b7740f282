"""How leaders' coordinates become known to all, by letters.

A binomial tree makes a long list pass log2 of the ranks links one behind the other, each time as a whole. Here a
short list goes to everybody at once, in one round. Of a long one every other rank gets a part of its own, and hands it
on to the rest: two rounds, in which no rank sends more bytes than the list has.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from thinwire.errors import WireError, WireReason
from thinwire.protocols import Wire
from thinwire.types import Traffic

CALLS = 2


def tell(letter: Tensor, sizes: Mapping[int, int], wire: Wire, share_from: int) -> dict[int, Tensor]:
    """Make the letters of some ranks known to all.

    Args:
        letter: This rank's own; not looked at where it is no sender.
        sizes: The lengths of the senders' letters, known to all.
        wire: The ranks.
        share_from: Letters of so many bytes and more are handed on in parts.

    Returns:
        The letter of every sender but this rank.
    """
    me, others = wire.rank, [rank for rank in range(wire.world) if rank != wire.rank]
    parts = {sender: _parts(size, sender, wire.world) for sender, size in sizes.items()}
    shared = [sender for sender, size in sizes.items() if _is_shared(size, wire.world, share_from)]
    if me in shared:
        wire.post(dict(zip(others, torch.split(letter, [parts[me][other] for other in others]), strict=True)))
    else:
        wire.post(dict.fromkeys(others, letter) if me in sizes else {})
    told = wire.collect([sender for sender in sizes if sender != me])
    bundles = {other: [sender for sender in shared if sender not in (me, other)] for other in others}
    bundles = {other: senders for other, senders in bundles.items() if senders}
    wire.post({other: torch.cat([told[sender] for sender in senders]) for other, senders in bundles.items()})
    found = {sender: {me: told[sender]} for sender in shared if sender != me}
    for other, bundle in wire.collect(bundles).items():
        senders = bundles[other]
        for sender, part in zip(senders, _split(bundle, [parts[sender][other] for sender in senders]), strict=True):
            found[sender][other] = part
    return told | {sender: torch.cat([each[rank] for rank in sorted(each)]) for sender, each in found.items()}


def traffic(world: int, letter: int, share_from: int) -> Traffic:
    """What it costs one sender's letter of so many bytes, every round at its busiest."""
    if not _is_shared(letter, world, share_from):
        return Traffic(bytes_sent=(world - 1) * letter, rounds=int(world > 1))
    return Traffic(bytes_sent=letter + (world - 2) * max(_parts(letter, 0, world).values()), rounds=2)


def _is_shared(size: int, world: int, share_from: int) -> bool:
    """Whether others help: between two ranks there are none."""
    return world > 2 and size >= share_from


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
