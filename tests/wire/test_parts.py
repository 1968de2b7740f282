"""Letters about parts of owners, damaged: a typed refusal, or a part that lies inside of what the owner has."""

import struct
import zlib

import numpy as np
import pytest
import torch

from thinwire.codecs import CODECS, Cheapest
from thinwire.errors import WireError
from thinwire.exchanges import OwnerReduce
from thinwire.exchanges.letters import Letters
from thinwire.exchanges.owners import Owners
from thinwire.lab.threads import ThreadWire, run_threads
from thinwire.message import HEADER
from thinwire.protocols import Outgoing
from thinwire.types import Delivery, Selection, Turn

TURN = Turn(step=2, group=1, rank=0, world=3)


def sealed(letter: torch.Tensor) -> torch.Tensor:
    """With a right checksum again."""
    data = bytearray(letter.numpy().tobytes())
    at = HEADER.size - 4
    if len(data) >= HEADER.size:
        struct.pack_into("<I", data, at, zlib.crc32(data[:at] + data[HEADER.size :]))
    return torch.frombuffer(data, dtype=torch.uint8)


@pytest.mark.parametrize("name", [name for name, part in CODECS.items() if not part.full_only])
@pytest.mark.parametrize("width", [1, 3])
def test_damaged_letters_are_refused_or_mean_units_of_the_owner(name: str, width: int) -> None:
    numel = 200
    owners = Owners(numel=numel, width=width, count=3, seed=0)
    draw = np.random.default_rng(width)
    chosen = torch.arange(0, owners.units, 3, dtype=torch.int32)
    parts = owners.split(Selection(chosen, torch.ones(len(chosen) * width), numel - numel % width or numel, width))
    letters = Letters(codec=CODECS[name](), turn=TURN, shared=False, dtype=torch.float32)
    refused = 0
    for trial in range(600):
        owner = trial % 3
        like = Selection(None, torch.empty(0), owners.numels[owner], width)
        letter = letters.write(parts[owner]).clone()
        for _ in range(draw.integers(1, 4)):
            letter[draw.integers(HEADER.size - 48, letter.numel())] ^= 1 << draw.integers(8)
        if trial % 5 == 0:
            letter = letter[: draw.integers(1, letter.numel())]
        try:
            found = owners.join(letters.read(sealed(letter), like), owner)
        except WireError:
            refused += 1
            continue
        assert bool((found.indices[1:] > found.indices[:-1]).all())
        assert not found.count or 0 <= int(found.indices[0]) <= int(found.indices[-1]) < owners.units
        assert bool(found.values.isfinite().all())
    assert refused > 200


def test_a_letter_for_another_owner_is_refused_where_it_cannot_be_right() -> None:
    """Owners of tensors that cannot be cut evenly have tensors of different sizes."""
    owners = Owners(numel=10, width=1, count=4, seed=0)
    sizes = owners.numels
    assert sorted(sizes) == [2, 2, 3, 3]
    whole = Selection(None, torch.ones(10), 10)
    parts = owners.split(whole)
    letters = Letters(codec=Cheapest(), turn=TURN, shared=False, dtype=torch.float32)
    letter = letters.write(parts[sizes.index(3)])
    with pytest.raises(WireError, match="another number of elements"):
        letters.read(letter, parts[sizes.index(2)])


def test_a_damaged_letter_fails_the_exchange_and_nothing_else() -> None:
    """The rank that got it raises; no rank is given a sum with damage in it."""

    class Damaging(ThreadWire):
        def post(self, letters) -> None:
            spoiled = {to: letter.clone() for to, letter in letters.items()}
            for letter in spoiled.values():
                letter[-1] ^= 1
            super().post(spoiled)

    def work(wire: ThreadWire) -> Delivery:
        if wire.rank == 1:
            wire.__class__ = Damaging
        mine = Selection(None, torch.ones(30), 30)
        turn = Turn(step=0, group=0, rank=wire.rank, world=wire.world)
        letter = torch.empty(0, dtype=torch.uint8)
        try:
            return OwnerReduce().deliver(
                Outgoing(
                    selection=mine, room=torch.empty(30), shared=False, letter=letter, sizes=[], turn=turn,
                    codec=Cheapest(),
                ),
                wire,
            )  # fmt: skip
        except WireError as error:
            wire.abandon(str(error))
            raise

    results = run_threads(work, 3)
    assert isinstance(results[0], WireError)
    assert isinstance(results[2], WireError)
    assert all(isinstance(result, Exception) for result in results)
