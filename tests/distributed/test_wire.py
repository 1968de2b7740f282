"""The wire on real ranks: each collective brings what it should, and every way to wait for nothing ends in time."""

import threading
import time
from collections.abc import Callable

import pytest
import torch
import torch.distributed as dist

import thinwire
from tests.conftest import PoolFactory, Ranks
from tests.distributed.models import make, train
from thinwire.membership import Membership
from thinwire.wire import GroupWire


def world_group() -> dist.ProcessGroup:
    group = dist.group.WORLD
    assert group is not None
    return group


def swap(wire: GroupWire, note: bytes) -> list[bytes]:
    """Everybody's note."""
    wire.announce(torch.frombuffer(bytearray(note), dtype=torch.uint8))
    return [each.numpy().tobytes() for each in wire.hear()]


def collectives(rank: int, world: int) -> None:
    """Every collective, with what is different on every rank."""
    membership = Membership(world_group(), 60.0, 1)
    wire = membership.wire
    assert swap(wire, bytes([rank] * 5)) == [bytes([other] * 5) for other in range(world)]
    sizes = [3 * other for other in range(world)]
    letters = wire.all_gather(torch.full((sizes[rank],), rank, dtype=torch.uint8), sizes)
    assert [letter.tolist() for letter in letters] == [[other] * sizes[other] for other in range(world)]
    assert [letter.numel() for letter in wire.all_gather(torch.empty(0, dtype=torch.uint8), [0] * world)] == [0] * world
    for root in range(world):
        told = wire.broadcast(torch.full((4,), 10 + rank, dtype=torch.uint8), 4, root)
        assert told.tolist() == [10 + root] * 4
    values = torch.randn(1001, generator=torch.Generator().manual_seed(rank))
    wanted = sum(torch.randn(1001, generator=torch.Generator().manual_seed(other)).double() for other in range(world))
    total = wire.all_reduce(values)
    assert float((total.double() - wanted).abs().max()) <= 1e-5
    raw = total.view(torch.uint8)
    assert all(torch.equal(raw, other) for other in wire.all_gather(raw, [raw.numel()] * world))
    assert wire.calls == 5 + world
    membership.close()


@pytest.mark.parametrize("world", [1, 2, 3])
def test_collectives_bring_what_they_should(pool: PoolFactory, world: int) -> None:
    pool(world).run(collectives)


def gives_up(rank: int, world: int) -> float:
    """Rank 1 does not come to an exchange, and says so."""
    wire = Membership(world_group(), 4.0, 1).wire
    swap(wire, b"here")
    began = time.monotonic()
    if rank == 1:
        wire.abandon("out of memory")
    else:
        with pytest.raises(thinwire.PeerFailedError, match=r"rank 1 gave up .* exchange: out of memory") as caught:
            swap(wire, b"anybody?")
        assert caught.value.ranks == (1,)
    waited = time.monotonic() - began
    with pytest.raises(thinwire.BrokenGroupError, match="rejoin"):
        swap(wire, b"again")
    return waited


def test_a_rank_that_gives_up_is_heard_at_once(ranks: Ranks) -> None:
    assert max(ranks(gives_up, 3, timeout=30.0)) < 2.0


def leaves(rank: int, world: int) -> None:
    """Without a group of its own torch would take the default one, in which all ranks are and would answer."""
    wire = Membership(world_group(), 4.0, 1).wire
    swap(wire, b"here")
    wire.leave()
    for use in (
        lambda: swap(wire, b"more"),
        lambda: wire.all_gather(torch.ones(1, dtype=torch.uint8), [1] * world),
        lambda: wire.broadcast(torch.ones(1, dtype=torch.uint8), 1, 0),
        lambda: wire.all_reduce(torch.ones(1)),
    ):
        with pytest.raises(thinwire.BrokenGroupError, match=r"left the group.* attach"):
            use()
    assert wire.broken is None


@pytest.mark.parametrize("world", [1, 2])
def test_a_group_that_was_left_is_not_the_default_group(pool: PoolFactory, world: int) -> None:
    pool(world).run(leaves)


def swap_twice(wire: GroupWire) -> None:
    """The first may end well for one who is late: the others' notes were on their way before they gave up."""
    swap(wire, b"one?")
    swap(wire, b"two?")


def comes_late(rank: int, world: int) -> bool:
    """Rank 1 comes when the others have given it up. Whether the buffers of what was abandoned are kept."""
    wire = Membership(world_group(), 0.5, 1).wire
    swap(wire, b"here")
    if rank == 1:
        time.sleep(2.5)
        with pytest.raises(thinwire.SyncError):
            swap_twice(wire)
    else:
        with pytest.raises(thinwire.DeadlineError, match="rank 1 did not come") as caught:
            swap(wire, b"one?")
        assert caught.value.ranks == (1,)
    with pytest.raises(thinwire.BrokenGroupError, match="rejoin"):
        swap(wire, b"more")
    return bool(wire._abandoned)


def test_a_rank_that_is_too_late_is_not_waited_for(ranks: Ranks) -> None:
    assert ranks(comes_late, 2, timeout=30.0)[0], "its operation may still run"


def some_of_the_ranks(rank: int, world: int) -> list[bytes]:
    """A group of two of three ranks, formed, given back and formed again."""
    pair = dist.new_group([0, 1])
    if rank == 2:
        return []
    notes = []
    for generation in (1, 2, 3):
        if rank == generation % 2:
            time.sleep(1.0)  # so the other one looks up its address in the store before it is there, however busy
        membership = Membership(pair, 10.0, generation)
        notes += swap(membership.wire, bytes([generation, rank]))
        membership.close()
    return notes


def test_a_group_of_some_ranks_can_be_formed_again(ranks: Ranks) -> None:
    assert ranks(some_of_the_ranks, 3, timeout=20.0)[:2] == [[b"\1\0", b"\1\1", b"\2\0", b"\2\1", b"\3\0", b"\3\1"]] * 2


def starting_threads(rank: int, world: int) -> set[str]:
    """Which threads start collectives while a model trains under several plans, and is flushed."""
    plain: Callable[..., None] = GroupWire._run
    names = set()

    def noted(self: GroupWire, *arguments: object, **options: object) -> None:
        names.add(threading.current_thread().name)
        plain(self, *arguments, **options)

    GroupWire._run = noted  # type: ignore[method-assign]
    try:
        ddp, sync = make(rank)
        assert sync is not None
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.001)
        for plan in (thinwire.recipes.dense(), thinwire.recipes.ar_topk(density=0.1)):
            sync.switch(plan)
            train(ddp, optimizer, rank, range(2))
        sync.flush()
        assert len(sync.stats().groups) > 3, "the point is several buckets"
        sync.detach()
    finally:
        GroupWire._run = plain  # type: ignore[method-assign]
    return names


def test_one_thread_starts_all_collectives(pool: PoolFactory) -> None:
    """Started from several, they reach the backend in different orders on different ranks."""
    assert pool(2).run(starting_threads, timeout=12.0) == [{"thinwire-courier"}] * 2


LENGTHS = (0, 1, 4000, 4096, 4097, 5000, 100_000, 3, 3, 3_000_000, 3_000_000, 3_000_000, 17, 0, 4097, 70_000)


def letters_of_all_lengths(rank: int, world: int) -> None:
    """Longer and shorter than what stands ready, several on their way at once, and not to everybody."""
    wire = Membership(world_group(), 60.0, 1).wire

    def letter(source: int, to: int, number: int) -> torch.Tensor:
        length = LENGTHS[(number + source + 2 * to) % len(LENGTHS)]
        return (torch.arange(length) * (source + 3) + to + number).to(torch.uint8)

    others = [other for other in range(world) if other != rank]
    posted = 0
    for number in range(40):
        while posted < min(40, number + 1 + number % 3):
            wire.post({to: letter(rank, to, posted) for to in others})
            posted += 1
        came = wire.collect(others)
        assert all(torch.equal(came[source], letter(source, rank, number)) for source in others)
    for number in range(10):
        wire.post({(rank + 1) % world: letter(rank, 0, number)})
        left = (rank - 1) % world
        assert torch.equal(wire.collect([left])[left], letter(left, 0, number))


@pytest.mark.parametrize("world", [2, 3, 4])
def test_letters_of_all_lengths_arrive_in_order(pool: PoolFactory, world: int) -> None:
    pool(world).run(letters_of_all_lengths)
