"""Faults: on every rank the same kind of error, naming the odd one; nothing changed; nobody steps on; nobody waits
for ever. Each test checks that its fault really fired."""

import os
import signal
import time
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

import thinwire
import thinwire.standalone
from tests.distributed.models import checksum, loss, make, train
from thinwire import message
from thinwire.kernels.reference import Reference
from thinwire.lab.ranks import RankFailed
from thinwire.plans import Plan
from thinwire.selectors import TopK
from thinwire.step import Step

PLANS = {
    "own": thinwire.recipes.topk_allgather(density=0.2).replace(exchange=thinwire.AllGather()),
    "leader": thinwire.recipes.ar_topk(density=0.2),
}
DENSE = thinwire.recipes.dense()


class Fault(Exception):
    """What the tests make go wrong."""


def failing(place: str, at: int):
    """Make one function of this process fail at its n-th call from now; returns how to undo it and the count."""
    owner, name = {
        "select": (TopK, "select_from"),
        "encode": (message, "encode"),
        "decode": (message, "decode"),
        "keep": (thinwire.ledger.Page, "keep"),
        "mean": (thinwire.carry, "_mean"),
    }[place]
    plain, calls = getattr(owner, name), [0]

    def faulty(*args, **options):
        calls[0] += 1
        if calls[0] == at:
            raise Fault(f"{place} is broken")
        return plain(*args, **options)

    setattr(owner, name, faulty)
    return (lambda: setattr(owner, name, plain)), calls


def local_faults(rank: int, world: int, plan: Plan, odd: int, places: list[str]) -> list[tuple]:
    """Each fault on one rank, early and late in a step; after each, the ranks try again and go on."""
    ddp, sync = make(rank, plan=plan)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.001)
    train(ddp, optimizer, rank, range(2))
    seen = []
    for place in places:
        for at in (1, 3):
            while plan.agreement.tells and sync.stats().steps % world == odd:
                train(ddp, optimizer, rank, range(2, 3))  # who leads knows its coordinates and reads no letter
            before, owed, steps = checksum(ddp), sync.state_dict()["owed"], sync.stats().steps
            undo, calls = failing(place, at) if rank == odd else (lambda: None, [at])
            began = time.monotonic()
            optimizer.zero_grad()
            with pytest.raises(thinwire.PeerFailedError, match=f"Fault: {place} is broken") as caught:
                loss(ddp, rank, 5).backward()
            assert caught.value.ranks == (odd,)
            assert all(bool(p.grad.isnan().all()) for p in ddp.parameters()), "must not be usable"
            if rank == odd:
                assert isinstance(caught.value.__cause__, Fault)
            seen.append((place, at, bool(sync.broken)))
            undo()
            assert calls[0] >= at, "the fault did not fire"
            assert time.monotonic() - began < 10.0
            if sync.broken:
                sync.rejoin()
            after = sync.state_dict()["owed"]
            assert checksum(ddp) == before
            assert sync.stats().steps == steps
            assert owed.keys() == after.keys()
            assert all(torch.equal(owed[name], after[name]) for name in owed), "debts must be as before"
            seen.append(train(ddp, optimizer, rank, range(6, 7)))
    seen.append(sync.stats().failures)
    return seen


@pytest.mark.parametrize("name", PLANS)
def test_an_exception_on_one_rank_is_an_error_on_all(pool, name):
    places = ["select", "encode", "decode", "keep", "mean"]
    odd = 1 if name == "own" else 0
    if name == "leader":
        places.remove("select")  # only the leader selects, see below
        places.remove("encode")
    results = pool(3).run(local_faults, PLANS[name], odd, places)
    assert results[0] == results[1] == results[2]
    noticed = [entry for entry in results[0] if isinstance(entry, tuple)]
    # Only a leader's letter that cannot be read leaves a rank behind in the middle of an exchange.
    assert [entry[0] for entry in noticed if entry[2]] == (["decode", "decode"] if name == "leader" else [])
    assert results[0][-1] == len(noticed) == 2 * len(places)


def the_leader_fails(rank: int, world: int) -> list[str]:
    """Only the leader selects: its fault must reach those who wait for its coordinates."""
    ddp, sync = make(rank, plan=PLANS["leader"])
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.001)
    train(ddp, optimizer, rank, range(2))
    sync._settle()
    messages = []
    for place in ("select", "encode"):
        leader = sync._ledger.steps % world
        undo, calls = failing(place, 2) if rank == leader else (lambda: None, [2])
        with pytest.raises(thinwire.PeerFailedError) as caught:
            loss(ddp, rank, 3).backward()
        undo()
        assert calls[0] >= 2
        messages.append(f"{leader} {caught.value.ranks} {caught.value}")
        train(ddp, optimizer, rank, range(4, 5))
        sync._settle()
    return messages


def test_a_leader_that_fails_names_itself(pool):
    results = pool(3).run(the_leader_fails)
    assert results[0] == results[1] == results[2]
    for text in results[0]:
        assert text[2:].startswith(f"({text[0]},)")


def fails_in_the_last_bucket(rank: int, world: int) -> str:
    """Behind the last roll call of a bucket there is only the vote to tell the others."""
    ddp, sync = make(rank, plan=PLANS["own"])
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.001)
    train(ddp, optimizer, rank, range(2))
    buckets, owed = len(sync.stats().groups), sync.state_dict()["owed"]
    undo, calls = failing("mean", buckets) if rank == 1 else (lambda: None, [buckets])
    with pytest.raises(thinwire.PeerFailedError) as caught:
        loss(ddp, rank, 3).backward()
    undo()
    assert calls[0] == buckets
    assert all(bool(p.grad.isnan().all()) for p in ddp.parameters())
    after = sync.state_dict()["owed"]
    assert all(torch.equal(owed[name], after[name]) for name in owed)
    return f"{caught.value.ranks} {train(ddp, optimizer, rank, range(4, 6))}"


def test_a_fault_in_the_last_bucket_reaches_everybody(pool):
    first, second = pool(2).run(fails_in_the_last_bucket)
    assert first == second
    assert first.startswith("(1,)")


def falls_out_of_a_dense_step(rank: int, world: int) -> tuple[bool, list[int]]:
    """Whether rooms of a step that broke the group are used again, and how training went on."""
    ddp, sync = make(rank, plan=thinwire.recipes.dense())
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.001)
    train(ddp, optimizer, rank, range(2))
    wire = sync._membership.wire

    def broken(values):
        raise Fault("no memory")

    if rank == 1:
        wire.all_reduce = broken
    with pytest.raises(thinwire.PeerFailedError, match="Fault: no memory"):
        loss(ddp, rank, 3).backward()
    assert sync.broken
    old = [*sync._ledger.rooms._rooms.values()]
    sync.rejoin()
    sums = train(ddp, optimizer, rank, range(4, 6))
    new = sync._ledger.rooms._rooms.values()
    assert new
    return bool({room.data_ptr() for room in old} & {room.data_ptr() for room in new}), sums


def test_memory_of_a_broken_step_is_not_used_again(pool):
    """An operation that was abandoned may write into it at any time."""
    first, second = pool(2).run(falls_out_of_a_dense_step)
    assert first == second
    assert not first[0]


def falls_out_of_synchronize(rank: int, world: int) -> tuple[bool, float, float]:
    """Whether a room is used again, what an abandoned operation wrote into the old one, and what is in the new one."""
    ledger, groups = thinwire.Ledger(), [dist.new_group(), dist.new_group()]

    def average(group: dist.ProcessGroup) -> torch.Tensor:
        return thinwire.synchronize([torch.full((1000,), 1.0 + rank)], DENSE, group, ledger=ledger)[0]

    def broken(values):
        raise Fault("no memory")

    average(groups[0])
    if rank == 1:
        thinwire.standalone._wire(groups[0]).all_reduce = broken
    (old,) = ledger.rooms._rooms.values()
    with pytest.raises(thinwire.PeerFailedError, match="Fault: no memory"):
        average(groups[0])
    assert average(groups[1]).eq(1.5).all()
    (new,) = ledger.rooms._rooms.values()
    # The other rank still waits in the operation that this one did not come to: now it ends, and writes.
    if rank == 1:
        dist.all_reduce(torch.full((1000,), 100.0), group=groups[0])
    dist.barrier(groups[1])
    for _ in range(100):
        if rank == 1 or float(old[0]) > 100.0:
            break
        time.sleep(0.05)
    return old.data_ptr() == new.data_ptr(), float(old[0]), float(new[0])


def test_memory_of_a_broken_synchronize_is_not_used_again(ranks):
    shared, written, held = ranks(falls_out_of_synchronize, 2)[0]
    assert written == 100.5, "the abandoned operation was to write"
    assert not shared
    assert held == 1.5


def wrong_bytes(rank: int, world: int) -> str:
    """One bit of one rank's message flips on its way to one other rank."""
    ddp, sync = make(rank, plan=PLANS["own"])
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.001)
    train(ddp, optimizer, rank, range(2))
    wire, fired = sync._membership.wire, []
    plain = wire.all_gather

    def flipped(mine, sizes):
        letters = plain(mine, sizes)
        if rank == 2 and not fired:
            letters[0][70] ^= 4
            fired.append(True)
        return letters

    wire.all_gather = flipped
    with pytest.raises(thinwire.PeerFailedError) as caught:
        loss(ddp, rank, 3).backward()
    assert bool(fired) == (rank == 2)
    wire.all_gather = plain
    return f"{caught.value} {train(ddp, optimizer, rank, range(4, 6))}"


def test_a_damaged_message_is_refused_and_all_hear_of_it(pool):
    results = pool(3).run(wrong_bytes)
    assert results[0] == results[1] == results[2]
    assert "rank 2: WireError: refused a message" in results[0]


def late(rank: int, world: int) -> str:
    """One rank comes much too late."""
    ddp, _ = make(rank, plain=True)
    thinwire.attach(ddp, PLANS["own"], patience=1.0)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.001)
    train(ddp, optimizer, rank, range(2))
    before = checksum(ddp)
    if rank == 1:
        time.sleep(4.0)
    began = time.monotonic()
    try:
        loss(ddp, rank, 3).backward()
    except thinwire.SyncError as error:
        waited = time.monotonic() - began
        assert checksum(ddp) == before
        assert waited < 6.0
        with pytest.raises(thinwire.BrokenGroupError):
            loss(ddp, rank, 4).backward()
        return f"{type(error).__name__} {error.ranks} {error}"
    return "nothing was noticed"


def test_a_rank_that_does_not_come_is_named_in_time(ranks):
    results = ranks(late, 3, timeout=40.0)
    for survivor in (0, 2):
        assert results[survivor].startswith("DeadlineError (1,)") or "another rank gave up" in results[survivor]
    assert any(results[rank].startswith("DeadlineError (1,)") for rank in (0, 2)), results
    assert results[1] != "nothing was noticed", "the late one must not step either"


def late_for_the_vote(rank: int, world: int) -> tuple[list[str], int, int]:
    """Rank 1 votes when the others have given it up: what each attempt came to, the steps counted, the parameters."""
    ddp, _ = make(rank, plain=True)
    sync = thinwire.attach(ddp, PLANS["own"], patience=1.0)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.001)
    train(ddp, optimizer, rank, range(2))
    plain, said = Step.vote, []

    def late(step: Step) -> None:
        if rank == 1 and not said:
            time.sleep(3.0)
        plain(step)

    def attempt(step: int) -> bool:
        try:
            train(ddp, optimizer, rank, range(step, step + 1))
        except thinwire.SyncError as error:
            said.append(f"{type(error).__name__} {error.ranks} {getattr(error, 'fields', '')}")
            return False
        said.append("stepped")
        return True

    Step.vote = late
    try:
        while attempt(2 + len(said)):
            assert len(said) < 5
    finally:
        Step.vote = plain
    sync.rejoin()
    attempt(2)
    attempt(3)
    return said, sync.state_dict()["steps"], checksum(ddp)


def test_a_rank_that_is_late_for_the_vote_does_not_step_alone(ranks):
    """It has everybody's vote at hand, but the others have closed their connections: it cannot send its own."""
    results = ranks(late_for_the_vote, 3, timeout=40.0)
    assert all(said[0].startswith(("DeadlineError (1,)", "SyncError")) for said, _, _ in results), results
    assert all(said[1:] == ["stepped", "stepped"] for said, _, _ in results), results
    assert len({(steps, parameters) for _, steps, parameters in results}) == 1


def slow_but_alive(rank: int, world: int) -> list[int]:
    """A rank that is slower than the poll, but within patience: no error."""
    ddp, _ = make(rank, plan=PLANS["leader"])
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.001)
    sums = []
    for step in range(3):
        time.sleep(0.3 * rank)
        sums += train(ddp, optimizer, rank, range(step, step + 1))
    return sums


def test_a_straggler_is_no_fault(pool):
    first, second = pool(2).run(slow_but_alive)
    assert first == second


def killed(rank: int, world: int, folder: str, victim: int, at: int) -> None:
    """One rank dies in the middle of an exchange."""
    ddp, sync = make(rank, plan=PLANS["own"])
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.001)
    train(ddp, optimizer, rank, range(2))
    before = checksum(ddp)
    if rank == victim:
        wire, count = sync._membership.wire, [0]
        plain = wire._run

        def dying(*args, **options):
            count[0] += 1
            if count[0] == at:
                os.kill(os.getpid(), signal.SIGKILL)
            return plain(*args, **options)

        wire._run = dying
    began = time.monotonic()
    try:
        loss(ddp, rank, 3).backward()
        outcome = "nothing was noticed"
    except thinwire.SyncError as error:
        outcome = f"{type(error).__name__}: {error}"
    assert checksum(ddp) == before
    Path(folder, f"rank{rank}").write_text(f"{time.monotonic() - began:.2f} {outcome}")


@pytest.mark.parametrize(("victim", "at"), [(0, 1), (2, 2), (1, 4)])
def test_a_killed_rank_does_not_keep_the_others_waiting(ranks, tmp_path, victim, at):
    with pytest.raises(RankFailed, match="SIGKILL"):
        ranks(killed, 4, str(tmp_path), victim, at, timeout=60.0)
    for rank in set(range(4)) - {victim}:
        seconds, outcome = Path(tmp_path, f"rank{rank}").read_text().split(" ", 1)
        assert float(seconds) < 5.0, outcome
        assert "SyncError" in outcome or "DeadlineError" in outcome, outcome


def fails_inside_join(rank: int, world: int) -> str:
    """Inside `join` a rank without data has no backward pass; it must hear of errors all the same."""
    ddp, _sync = make(rank, plan=PLANS["own"])
    train(ddp, torch.optim.SGD(ddp.parameters(), lr=0.001), rank, range(2))
    undo, calls = failing("mean", 8) if rank == 1 else (lambda: None, [8])
    try:
        with ddp.join():
            for step in range(1 + 2 * rank):
                loss(ddp, rank, step).backward()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        undo()
        assert calls[0] >= 8
    return "nothing was noticed"


def test_an_error_inside_join_reaches_the_rank_without_data(ranks):
    for outcome in ranks(fails_inside_join, 2, timeout=12.0):
        assert "rank 1" in outcome
        assert "mean is broken" in outcome


def fails_in_flush(rank: int, world: int) -> str:
    """A flush that fails leaves all debts."""
    ddp, sync = make(rank, plan=PLANS["own"])
    train(ddp, torch.optim.SGD(ddp.parameters(), lr=0.001), rank, range(2))
    before = sync.state_dict()["owed"]
    wire = sync._membership.wire
    plain = wire.all_reduce
    if rank == 1:

        def broken(values):
            plain(values)
            raise Fault("flush is broken")

        wire.all_reduce = broken
    with pytest.raises(thinwire.PeerFailedError) as caught:
        sync.flush()
    wire.all_reduce = plain
    after = sync.state_dict()["owed"]
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert any(mean.any() for mean in sync.flush().values())
    return str(caught.value)


def test_a_failed_flush_changes_nothing(pool):
    first, second = pool(2).run(fails_in_flush)
    assert first == second
    assert "rank 1: Fault: flush is broken" in first


def fails_in_the_hook(rank: int, world: int) -> str:
    """What goes wrong in the hook's own body would leave DDP unusable if it came out there."""
    ddp, sync = make(rank, plan=PLANS["own"])
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.001)
    train(ddp, optimizer, rank, range(2))
    names = sync._names
    if rank == 0:
        sync._names = {}
    with pytest.raises(thinwire.PeerFailedError) as caught:
        loss(ddp, rank, 3).backward()
    sync._names = names
    return f"{caught.value.ranks} {train(ddp, optimizer, rank, range(4, 6))}"


def test_a_fault_in_the_hook_leaves_ddp_usable(pool):
    first, second = pool(2).run(fails_in_the_hook)
    assert first == second
    assert first.startswith("(0,)")


def test_reference_kernels_are_there_for_comparison():
    assert Reference().top_k(torch.tensor([1.0, -3.0, 2.0]), 2).tolist() == [1, 2]
