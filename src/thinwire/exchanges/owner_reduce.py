"""Owner-reduce: every unit has an owner, which adds up what all ranks send of it, and tells everybody the sum.

Balanced parallelism of Zen (OSDI 2025), by direct letters. Nothing is lost: where the paper's owners are found by a
lossy hash table, here they follow from a bijection, and a stable multisplit sorts by them. Sums are made in rank
order and travel as float32.

Rounds: 2. With density d of all units (the same on every rank), densification g (units that any rank sends over units
that each sends) and e bytes for a sent unit, each rank sends (world - 1) / world * (1 + g) * d * units * e bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from thinwire.exchanges.letters import Letters, added
from thinwire.exchanges.owners import Owners
from thinwire.protocols import Codec, Exchange, Outgoing, Wire
from thinwire.types import Delivery, Selection, Traffic, Turn


@dataclass(frozen=True, kw_only=True)
class OwnerReduce(Exchange):
    """Push units to their owners, sum there, pull the sums.

    Args:
        seed: Another seed deals the units out to other owners.
    """

    seed: int = 0
    needs_shared: ClassVar[bool] = False
    takes_letters: ClassVar[bool] = False
    depends_on_data: ClassVar[bool] = True

    def deliver(self, outgoing: Outgoing, wire: Wire) -> Delivery:
        """The sums of all owners, each about units of its own."""
        owners = self._owners(outgoing.selection, wire.world)
        letters = Letters(
            codec=outgoing.codec, turn=outgoing.turn, shared=outgoing.shared, dtype=outgoing.selection.values.dtype
        )
        mine = owners.split(outgoing.selection)
        others = [rank for rank in range(wire.world) if rank != wire.rank]
        wire.post({rank: letters.write(mine[rank]) for rank in others})
        pushed = wire.collect(others)
        total = _total(pushed, mine[wire.rank], letters, wire.rank)
        answer = letters.write(total)
        wire.post(dict.fromkeys(others, answer))
        pulled = wire.collect(others)
        sums = [total if rank == wire.rank else letters.read(pulled[rank], mine[rank]) for rank in range(wire.world)]
        return Delivery([owners.join(part, owner) for owner, part in enumerate(sums)], wire.world)

    def _owners(self, selection: Selection, world: int) -> Owners:
        return Owners(numel=selection.numel, width=selection.width, count=world, seed=self.seed)

    def calls(self, world: int) -> int:
        """Push and pull."""
        return 2

    def traffic(self, world: int, payload: int, itemsize: int = 1) -> Traffic:
        """What is to be expected at the most for whole messages of ``payload`` bytes: where no unit is sent twice."""
        push = payload * (world - 1) // world
        return Traffic(bytes_sent=push + payload * (world - 1), rounds=2 if world > 1 else 0)

    def forecast(self, brought: Sequence[Selection], codec: Codec, *, shared: bool = False) -> Traffic:
        """The busiest rank of each round, from what all ranks bring."""
        world = len(brought)
        owners = self._owners(brought[0], world)
        letters = Letters(
            codec=codec, turn=Turn(step=0, group=0, rank=0, world=world), shared=shared, dtype=brought[0].values.dtype
        )
        parts = [owners.split(selection) for selection in brought]
        pushed = [[letters.write(part) for part in each] for each in parts]
        push = max(sum(len(to) for owner, to in enumerate(each) if owner != rank) for rank, each in enumerate(pushed))
        pull = 0
        for owner in range(world):
            arrived = {rank: pushed[rank][owner] for rank in range(world) if rank != owner}
            answer = letters.write(_total(arrived, parts[owner][owner], letters, owner))
            pull = max(pull, (world - 1) * answer.numel())
        return Traffic(bytes_sent=push + pull, rounds=2 if world > 1 else 0)


def _total(arrived: dict[int, Tensor], own: Selection, letters: Letters, rank: int) -> Selection:
    """The sum of all ranks' parts, in rank order."""
    parts = {source: letters.read(letter, own) for source, letter in arrived.items()}
    parts[rank] = own
    return added([parts[source] for source in sorted(parts)])
