"""Ranks that mean different things find out before any parameter changes, all of them, and learn who and what."""

import pytest
import torch

import thinwire
from tests.distributed.models import checksum, loss, make, train
from thinwire.plans import Feedback, Plan
from thinwire.selectors import RandomK, Rounded, TopK

BASE = Plan(selector=TopK(density=0.1), agreement=thinwire.Own(), codec=thinwire.Delta(), exchange=thinwire.AllGather())
LOTS = Plan(selector=RandomK(density=0.1), agreement=thinwire.Seeded(), exchange=thinwire.AllReduce())
CASES = {
    "plan.selector.density": (BASE, BASE.replace(selector=TopK(density=0.2))),
    "plan.selector.width": (BASE, BASE.replace(selector=TopK(density=0.1, width=2))),
    "plan.selector.name": (BASE, BASE.replace(selector=thinwire.Threshold(threshold=1.0))),
    "plan.selector.to": (
        BASE.replace(selector=Rounded(TopK(density=0.1), to="bf16")),
        BASE.replace(selector=Rounded(TopK(density=0.1), to="f16")),
    ),
    "plan.selector.selector.density": (
        BASE.replace(selector=Rounded(TopK(density=0.1), to="bf16")),
        BASE.replace(selector=Rounded(TopK(density=0.2), to="bf16")),
    ),
    "plan.agreement.name": (BASE, BASE.replace(agreement=thinwire.Leader())),
    "plan.agreement.seed": (LOTS, LOTS.replace(agreement=thinwire.Seeded(seed=1))),
    "plan.codec.name": (BASE, BASE.replace(codec=thinwire.Bitmap())),
    "plan.exchange.name": (
        BASE.replace(agreement=thinwire.Leader()),
        BASE.replace(agreement=thinwire.Leader(), exchange=thinwire.AllReduce()),
    ),
    "plan.feedback.momentum": (BASE, BASE.replace(feedback=Feedback(momentum=0.5))),
    "plan.feedback.masking": (
        BASE.replace(feedback=Feedback(momentum=0.5)),
        BASE.replace(feedback=Feedback(momentum=0.5, masking=False)),
    ),
}


def every_case(rank: int, world: int, odd: int) -> list[tuple]:
    """Each disagreement once, on one model; after each the ranks agree again and go on."""
    ddp, sync = make(rank, plan=BASE)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.001)
    train(ddp, optimizer, rank, range(2))
    seen = []
    for usual, other in CASES.values():
        sync.switch(usual)
        train(ddp, optimizer, rank, range(2))
        before, owed = checksum(ddp), sync.state_dict()["owed"]
        sync.switch(other if rank == odd else usual)
        seen.append(attempt(ddp, optimizer, rank))
        after = sync.state_dict()["owed"]
        assert checksum(ddp) == before
        assert all(torch.equal(owed[name], after[name]) for name in owed)
    sync.switch(BASE)
    seen.append(("end", train(ddp, optimizer, rank, range(3))))
    return seen


def attempt(ddp, optimizer, rank: int) -> tuple:
    """One step: what came of it."""
    try:
        optimizer.zero_grad()
        loss(ddp, rank, 0).backward()
    except thinwire.DisagreementError as error:
        assert all(p.grad is None or bool(p.grad.isnan().all()) for p in ddp.parameters()), "must not be usable"
        return error.ranks, error.fields, str(error)
    return ((), (), "nothing was noticed")


@pytest.mark.parametrize(("world", "odd"), [(2, 1), (3, 0), (3, 2)])
def test_a_plan_that_differs_in_one_field_stops_everybody(pool, world, odd):
    results = pool(world).run(every_case, odd)
    assert all(result == results[0] for result in results[1:]), "every rank must hear the same, and train on alike"
    for field, (ranks, fields, message) in zip(CASES, results[0], strict=False):
        assert ranks == (odd,), message
        assert fields == (field,), message
        assert f"on rank {odd}" in message


class Scale:
    """A loss scale that one rank gets wrong."""

    def __init__(self, value: float) -> None:
        self.value = value

    def get_scale(self) -> float:
        """The value."""
        return self.value


def other_fields(rank: int, world: int) -> list[tuple]:
    """Disagreements that are not about the plan: step, loss scale, generation, what is being done, sizes."""
    seen = []
    ddp, sync = make(rank, plan=BASE)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.001)
    train(ddp, optimizer, rank, range(2))

    def noticed(action) -> None:
        try:
            action()
            seen.append(((), (), "nothing was noticed"))
        except thinwire.DisagreementError as error:
            seen.append((error.ranks, error.fields, str(error)))

    sync._settle()
    sync._ledger.steps += rank
    noticed(lambda: loss(ddp, rank, 0).backward())
    sync._ledger.steps -= rank
    sync._scaler = Scale(1.0 + rank)
    noticed(lambda: loss(ddp, rank, 0).backward())
    sync._scaler = Scale(1.0)
    sync._generation += rank
    noticed(lambda: loss(ddp, rank, 0).backward())
    sync._generation -= rank
    noticed(sync.flush if rank else lambda: loss(ddp, rank, 0).backward())
    noticed(lambda: thinwire.synchronize([torch.ones(3 + rank)], BASE))
    noticed(lambda: thinwire.synchronize({"ab"[rank]: torch.ones(3)}, BASE))
    noticed(lambda: thinwire.synchronize([torch.ones(3, dtype=(torch.float32, torch.bfloat16)[rank])], BASE))
    seen.append(train(ddp, optimizer, rank, range(2)))
    return seen


def test_every_other_field_is_looked_at_too(pool):
    first, second = pool(2).run(other_fields)
    assert first == second
    for field, (ranks, fields, message) in zip(
        ("step", "loss_scale", "generation", "what", "numel", "layout", "dtype"), first, strict=False
    ):
        assert field in fields, message
        assert ranks == (1,)


def one_flushes_alone(rank: int, world: int) -> str:
    """One rank switches and flushes, the others train: all must hear of it."""
    ddp, sync = make(rank, plan=BASE)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.001)
    train(ddp, optimizer, rank, range(2))
    try:
        if rank == 2:
            sync.flush()
        else:
            loss(ddp, rank, 0).backward()
    except thinwire.DisagreementError as error:
        return str(error)
    return "nothing was noticed"


def test_a_rank_that_does_something_else_is_named(pool):
    for message in pool(3).run(one_flushes_alone):
        assert "what is flush on rank 2, elsewhere group" in message
