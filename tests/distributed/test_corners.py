"""Corners of DDP life where things once went wrong: each of these was a defect found by a review."""

import copy
import gc
import threading
import weakref

import pytest
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

import thinwire
from tests.distributed.models import Zoo, checksum, loss, make, train
from tests.distributed.test_faults import Fault, failing
from thinwire.plans import Plan
from thinwire.selectors import TopK

OWN = thinwire.recipes.topk_allgather(density=0.2)


def life_and_death(rank: int, world: int) -> tuple[int, int]:
    """Models that are trained and dropped, attached or detached."""
    alive = []
    for number in range(6):
        ddp, sync = make(rank, plan=OWN)
        train(ddp, torch.optim.SGD(ddp.parameters(), lr=0.001), rank, range(2))
        alive += [weakref.ref(ddp), weakref.ref(sync)]
        if number % 2:
            sync.switch(thinwire.recipes.dense())
            train(ddp, torch.optim.SGD(ddp.parameters(), lr=0.001), rank, range(2))
            sync.detach()
        del ddp, sync
        gc.collect()
    torch.distributed.barrier()
    return sum(ref() is not None for ref in alive), sum("courier" in t.name for t in threading.enumerate())


def test_a_dropped_model_leaves_neither_memory_nor_threads(ranks):
    assert ranks(life_and_death, 2) == [(0, 0)] * 2


class Checkpointed(nn.Module):
    """Layers whose activations are computed again in backward, which nests one backward pass in another."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Through all layers, reentrantly."""
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=True)
        return x


def reentrant(rank: int, world: int, at: int) -> tuple:
    """A fault in a step whose backward pass is nested."""
    torch.manual_seed(0)
    ddp = DistributedDataParallel(Checkpointed(), bucket_cap_mb=0.0001)
    sync = thinwire.attach(ddp, OWN)

    def step(number: int) -> None:
        ddp.zero_grad()
        x = torch.randn(3, 6, generator=torch.Generator().manual_seed(number * 10 + rank)).requires_grad_()
        ddp(x).square().sum().backward()

    for number in range(3):
        step(number)
    undo, calls = failing("mean", at) if rank == 1 else (lambda: None, [at])
    with pytest.raises(thinwire.PeerFailedError, match="rank 1: Fault"):
        step(3)
    undo()
    assert calls[0] >= at
    assert all(bool(p.grad.isnan().all()) for p in ddp.parameters())
    step(4)
    return checksum(ddp), sync.stats().steps, sync.stats().failures


@pytest.mark.parametrize("at", [1, 2, 3])
def test_reentrant_checkpoints_hear_of_faults(ranks, at):
    first, second = ranks(reentrant, 2, at)
    assert first == second
    assert first[1:] == (4, 1)


def looked_at(rank: int, world: int) -> tuple[float, list[int]]:
    """stats() may be called anywhere, by any rank alone, and changes nothing; skip_step() after it still skips."""
    ddp, sync = make(rank, plan=OWN)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.001)
    train(ddp, optimizer, rank, range(2))
    before = sync.state_dict()["owed"]
    handle = next(ddp.parameters()).register_hook(lambda _: sync.stats() and None) if rank == 0 else None
    loss(ddp, rank, 2).backward()
    if handle is not None:
        handle.remove()
        assert sync.stats().steps == 3
    sync.skip_step()
    after = sync.state_dict()["owed"]
    assert all(torch.equal(before[name], after[name]) for name in before)
    with pytest.raises(thinwire.SyncError, match="no step to skip"):
        sync.skip_step()
    inside = []

    def inner(_grad: torch.Tensor) -> None:
        with pytest.raises(thinwire.SyncError, match="backward pass is running"):
            sync.state_dict()
        inside.append(True)

    handle = next(ddp.parameters()).register_hook(inner)
    sums = train(ddp, optimizer, rank, range(3, 5))
    handle.remove()
    return len(inside), sums


def test_looking_changes_nothing(pool):
    first, second = pool(2).run(looked_at)
    assert first == second
    assert first[0] == 2


def interrupted(rank: int, world: int) -> bool:
    """A backward pass that is broken off half way, on all ranks: the half step must not count."""
    ddp, sync = make(rank, plan=OWN)
    train(ddp, torch.optim.SGD(ddp.parameters(), lr=0.001), rank, range(2))
    before, steps = sync.state_dict()["owed"], sync.stats().steps

    def stop(_grad: torch.Tensor) -> None:
        raise KeyboardInterrupt

    handle = ddp.module.embedding.weight.register_hook(stop)
    with pytest.raises(KeyboardInterrupt):
        loss(ddp, rank, 2).backward()
    handle.remove()
    sync._courier.wait()
    assert sync._step is not None
    assert sync._step.groups > 0, "some buckets must have been through"
    after = sync.state_dict()
    return after["steps"] == steps and all(torch.equal(before[n], after["owed"][n]) for n in before)


def test_half_a_step_does_not_count(ranks):
    assert ranks(interrupted, 2) == [True, True]


def flushed(rank: int, world: int, sparse: bool) -> tuple[float, bool]:
    """flush() and a step of the optimizer: the last gradient must not be used once more."""
    torch.manual_seed(3)
    ddp = DistributedDataParallel(Zoo(sparse=sparse), bucket_cap_mb=0.0001)
    sync = thinwire.attach(ddp, thinwire.recipes.dense())
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.01)
    train(ddp, optimizer, rank, range(2))
    before = checksum(ddp)
    delivered = sync.flush()
    optimizer.step()
    unmoved = checksum(ddp) == before and not delivered
    sync.switch(OWN)
    train(ddp, optimizer, rank, range(2, 4))
    table = ddp.module.embedding.weight.detach().clone()
    delivered = sync.flush()
    optimizer.step()
    moved = float((ddp.module.embedding.weight - table).abs().max())
    return (moved if sparse else 0.0), unmoved and bool(delivered)


@pytest.mark.parametrize("sparse", [False, True])
def test_flush_leaves_no_stale_gradient(pool, sparse):
    assert pool(2).run(flushed, sparse) == [(0.0, True)] * 2


def bad_record(rank: int, world: int) -> str:
    """A roll-call record that arrives damaged on one rank."""
    ddp, sync = make(rank, plan=OWN)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.001)
    train(ddp, optimizer, rank, range(2))
    wire, plain, fired = sync._membership.wire, sync._membership.wire.hear, []

    def damaged() -> list[torch.Tensor]:
        notes = plain()
        if rank == 1 and not fired:
            fired.append(True)
            notes[0][30] ^= 1
        return notes

    wire.hear = damaged
    with pytest.raises(thinwire.PeerFailedError, match="the roll-call record of rank 0 came damaged") as caught:
        loss(ddp, rank, 2).backward()
    sync.rejoin()
    return f"{caught.value.ranks} {train(ddp, optimizer, rank, range(3, 5))}"


def test_a_damaged_record_keeps_nobody_waiting(ranks):
    first, second = ranks(bad_record, 2, timeout=30.0)
    assert first == second
    assert first.startswith("(1,)")


def faults_beside_the_way(rank: int, world: int, place: str) -> str:
    """Faults in places that are neither selector nor codec."""
    torch.manual_seed(3)
    ddp = DistributedDataParallel(Zoo(sparse=True), bucket_cap_mb=0.0001)
    sync = thinwire.attach(ddp, OWN)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.001)
    train(ddp, optimizer, rank, range(2))
    owner, name = {"rows": (thinwire.rows, "_sparse"), "gather": (thinwire.layout.Group, "gather")}[place]
    plain, fired = getattr(owner, name), []

    def faulty(*args):
        if rank == 0 and not fired:
            fired.append(True)
            raise Fault(f"{place} is broken")
        return plain(*args)

    setattr(owner, name, faulty)
    with pytest.raises(thinwire.PeerFailedError, match=f"Fault: {place} is broken") as caught:
        loss(ddp, rank, 2).backward()
    setattr(owner, name, plain)
    if sync.broken:
        sync.rejoin()
    return f"{caught.value.ranks} {train(ddp, optimizer, rank, range(3, 5))}"


@pytest.mark.parametrize("place", ["rows", "gather"])
def test_a_fault_beside_the_way_keeps_nobody_waiting(ranks, place):
    first, second = ranks(faults_beside_the_way, 2, place, timeout=30.0)
    assert first == second
    assert first.startswith("(0,)")


def frozen(rank: int, world: int) -> bool:
    """A parameter that is frozen in the middle of a run keeps its debt, through save, load and flush."""
    ddp, sync = make(rank, plan=OWN, find_unused_parameters=True)
    train(ddp, torch.optim.SGD(ddp.parameters(), lr=0.001), rank, range(2))
    ddp.module.embedding.weight.requires_grad_(False)
    state = sync.state_dict()
    sync.load_state_dict(state)
    sync.flush()
    assert ddp.module.embedding.weight.grad is None
    again = sync.state_dict()["owed"]
    return torch.equal(again["embedding.weight"], state["owed"]["embedding.weight"]) and not again["out.weight"].any()


def test_a_frozen_parameter_keeps_its_debt(pool):
    assert pool(2).run(frozen) == [True, True]


def other_strides(rank: int, world: int, order: tuple[bool, bool]) -> float:
    """Saved from a contiguous model, loaded into one whose convolution is channels last; or the other way round."""
    plan = Plan(selector=TopK(density=0.0))
    grads = []
    for number, last in enumerate(order):
        torch.manual_seed(0)
        model = nn.Conv2d(3, 4, (3, 2))
        if last:
            model = model.to(memory_format=torch.channels_last)
        ddp = DistributedDataParallel(model)
        sync = thinwire.attach(ddp, plan)
        if number:
            sync.load_state_dict(state)  # noqa: F821 - of the first round
        else:
            x = torch.randn(2, 3, 5, 5, generator=torch.Generator().manual_seed(rank))
            ddp(x).square().sum().backward()
            state = sync.state_dict()  # noqa: F841
        sync.flush()
        grads.append(model.weight.grad.contiguous())
    return float((grads[0] - grads[1]).abs().max() / grads[0].abs().max())


def test_debts_are_saved_in_the_order_of_indices(pool):
    for order in ((False, True), (True, False)):
        assert max(pool(2).run(other_strides, order)) <= 1e-6


def copied(rank: int, world: int) -> list[int]:
    """Copies of an attached model, as moving averages of weights make them."""
    ddp, sync = make(rank, plan=OWN)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.001)
    train(ddp, optimizer, rank, range(2))
    twin = copy.deepcopy(ddp)
    assert checksum(twin) == checksum(ddp)
    other = thinwire.attach(twin, OWN)
    assert other is not sync
    averaged = torch.optim.swa_utils.AveragedModel(ddp)
    averaged.update_parameters(ddp)
    return train(ddp, optimizer, rank, range(2, 4)) + train(
        twin, torch.optim.SGD(twin.parameters(), lr=0.001), rank, range(2, 4)
    )


def test_an_attached_model_can_be_copied(pool):
    first, second = pool(2).run(copied)
    assert first == second


def spoilt(rank: int, world: int) -> bool:
    """A step that does not count for the debts must not count for the optimizer: all of it is NaN."""
    ddp, _ = make(rank, plan=OWN)
    train(ddp, torch.optim.SGD(ddp.parameters(), lr=0.001), rank, range(2))
    ddp.zero_grad()
    bad = ddp.module.gain.register_hook(lambda grad: grad * float("nan")) if rank == 0 else None
    loss(ddp, rank, 2).backward()
    if bad is not None:
        bad.remove()
    return all(bool(p.grad.isnan().all()) for p in ddp.parameters())


def test_an_overflow_in_one_bucket_spoils_all(pool):
    assert pool(2).run(spoilt) == [True, True]


@pytest.mark.parametrize("patience", [0, -1.0, float("nan"), float("inf"), "long"])
def test_patience_is_checked(pool, patience):
    assert all("patience" in message for message in pool(1).run(impatient, patience))


def impatient(rank: int, world: int, patience) -> str:
    """A patience that is none."""
    with pytest.raises(thinwire.AttachError) as caught:
        thinwire.attach(DistributedDataParallel(nn.Linear(2, 2)), patience=patience)
    return str(caught.value)
