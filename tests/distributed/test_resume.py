"""Train 2T steps is train T, save, load in new processes, train T: to the bit, parameters and debts alike."""

from pathlib import Path

import pytest
import torch

import thinwire
from tests.distributed.models import checksum, loss, make, train
from thinwire.plans import Plan
from thinwire.selectors import RandomK, Rounded, TopK

T = 6
PLANS = {
    "dense": thinwire.recipes.dense(),
    "own": thinwire.recipes.topk_allgather(density=0.05),
    "leader": thinwire.recipes.ar_topk(density=0.05),
    "momentum": thinwire.recipes.topk_allgather(density=0.05, momentum=0.9),
    "seeded": Plan(selector=RandomK(density=0.1), agreement=thinwire.Seeded(seed=4), exchange=thinwire.AllReduce()),
    "narrow": thinwire.recipes.dense(to="bf16"),
    "low rank": thinwire.recipes.low_rank(rank=1),
    "rounded": Plan(selector=Rounded(TopK(density=0.1), to="int8")),
}


def optimizer_of(ddp):
    """Any optimizer with a state of its own."""
    return torch.optim.AdamW(ddp.parameters(), lr=0.003)


def half(rank: int, world: int, folder: str, plan: Plan, first: bool, options: dict) -> tuple[list[int], dict]:
    """The first or the second half of a run."""
    ddp, sync = make(rank, plan=plan if first else thinwire.recipes.topk_allgather(density=0.5), **options)
    optimizer = optimizer_of(ddp)
    path = Path(folder) / f"rank{rank}.pt"
    if not first:
        saved = torch.load(path, weights_only=True)
        ddp.module.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        sync.load_state_dict(saved["sync"])
        assert sync.plan == plan, "the plan comes with the state"
    sums = train(ddp, optimizer, rank, range(T) if first else range(T, 2 * T))
    state = sync.state_dict()
    if first:
        torch.save({"model": ddp.module.state_dict(), "optimizer": optimizer.state_dict(), "sync": state}, path)
    return sums, state


def whole(rank: int, world: int, plan: Plan, options: dict) -> tuple[list[int], dict]:
    """The same without a stop."""
    ddp, sync = make(rank, plan=plan, **options)
    return train(ddp, optimizer_of(ddp), rank, range(2 * T)), sync.state_dict()


@pytest.mark.parametrize("world", [2, 3])
@pytest.mark.parametrize("name", PLANS)
def test_a_resumed_run_is_the_uninterrupted_run(ranks, tmp_path, name, world):
    resume_is_bitwise(ranks, tmp_path, PLANS[name], world, {})


@pytest.mark.parametrize("options", [{"find_unused_parameters": True}, {"static_graph": True}], ids=str)
def test_so_it_is_with_other_ways_to_build_buckets(ranks, tmp_path, options):
    resume_is_bitwise(ranks, tmp_path, PLANS["leader"], 2, options)


def resume_is_bitwise(ranks, folder, plan, world, options):
    """The claim."""
    unbroken = ranks(whole, world, plan, options)
    start = ranks(half, world, str(folder), plan, True, options)
    end = ranks(half, world, str(folder), plan, False, options)
    for rank in range(world):
        assert unbroken[rank][0] == start[rank][0] + end[rank][0]
        for kind in ("owed", "velocity"):
            wanted, found = unbroken[rank][1][kind], end[rank][1][kind]
            assert wanted.keys() == found.keys()
            assert all(torch.equal(wanted[name], found[name]) for name in wanted)
        assert unbroken[rank][1]["steps"] == end[rank][1]["steps"] == 2 * T


def strangers(rank: int, world: int, folder: str) -> list[str]:
    """Load what belongs to another rank, another world, another model."""
    ddp, sync = make(rank, plan=thinwire.recipes.ar_topk(density=0.1))
    train(ddp, optimizer_of(ddp), rank, range(3))
    before = sync.state_dict()
    messages = []
    for change in ({"rank": 1 - rank}, {"world": 3}, {"owed": {"nobody": torch.zeros(3)}}, {"format": 9}):
        try:
            sync.load_state_dict({**before, **change})
        except thinwire.StateError as error:
            messages.append(str(error))
    after = sync.state_dict()
    assert all(torch.equal(before["owed"][n], after["owed"][n]) for n in before["owed"])
    loss(ddp, rank, 3).backward()
    sync.stats()
    messages.append(str(checksum(ddp)))
    return messages


def test_a_state_loads_only_where_it_belongs(pool, tmp_path):
    first, second = pool(2).run(strangers, str(tmp_path))
    assert len(first) == 5
    for part, message in zip(("rank 1", "3 ranks", "nobody", "format"), first, strict=False):
        assert part in message
    assert first[-1] == second[-1]
