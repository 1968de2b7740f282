"""Replicas stay identical to the bit after every step, under every plan, whatever the timing; and nothing hangs."""

import random
import time

import pytest
import torch

from tests.distributed.models import checksum, loss, make, train
from tests.laws.samples import plans
from thinwire.wire import GroupWire


def jitter(seed: int) -> None:
    """Random pauses before collectives, in this process, from now on."""
    rng, plain = random.Random(seed), GroupWire._run

    def paused(self, *args, **options):
        if rng.random() < 0.05:
            time.sleep(rng.random() * 0.003)
        return plain(self, *args, **options)

    GroupWire._run = paused


def every_plan(rank: int, world: int, share: int, shares: int) -> list[tuple[str, list[int]]]:
    """Two steps under each of a share of all plans, in one run, debts carried over."""
    jitter(rank)
    ddp, sync = make(rank)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.002, momentum=0.5)
    train(ddp, optimizer, rank, range(2))  # DDP rebuilds its buckets after the first step
    seen = []
    for number, plan in enumerate(plans()[share::shares]):
        sync.switch(plan)
        seen.append((str(plan), train(ddp, optimizer, rank, range(2 * number, 2 * number + 2))))
    assert len(sync.stats().groups) > 3, "the point is several buckets"
    sync.detach()
    return seen


@pytest.mark.timeout(200)
@pytest.mark.parametrize("world", [2, 3, 5])
def test_replicas_are_identical_after_every_step_of_every_plan(ranks, world):
    results = ranks(every_plan, world, 0, 1, timeout=180.0)
    assert len(results[0]) == len(plans())
    for others in results[1:]:
        for mine, theirs in zip(results[0], others, strict=True):
            assert mine == theirs, f"replicas differ under {mine[0]}"
    checksums = [sums for _, sums in results[0]]
    assert len({s for pair in checksums for s in pair}) > len(plans()), "parameters must change"


def short_runs(rank: int, world: int, runs: int) -> list[int]:
    """Fresh model, fresh plan, three steps, detach: again and again."""
    jitter(100 + rank)
    rng, seen = random.Random(5), []
    for _ in range(runs):
        ddp, sync = make(rank, plan=rng.choice(plans()))
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.002)
        train(ddp, optimizer, rank, range(2))
        loss(ddp, rank, 2).backward()
        sync.flush()
        optimizer.step()
        seen.append(checksum(ddp))
        sync.detach()
    return seen


@pytest.mark.timeout(200)
def test_no_hang_in_200_runs(ranks):
    results = ranks(short_runs, 2, 200, timeout=180.0)
    assert results[0] == results[1]
    assert len(results[0]) == 200
