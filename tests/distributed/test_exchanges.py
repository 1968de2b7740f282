"""The exchanges on real ranks over Gloo, and switched between in the middle of training, without a restart."""

import pytest
import torch

import thinwire
from tests.conftest import PoolFactory
from tests.distributed.models import make, train
from thinwire import recipes
from thinwire.agreements import Leader, NormLeader
from thinwire.exchanges import (
    AllGather,
    AllReduce,
    DirectGather,
    DirectReduce,
    DoublingReduce,
    RingReduce,
    RoundedReduce,
)
from thinwire.plans import Plan
from thinwire.selectors import TopK

EXCHANGES = (AllGather(), AllReduce(), DirectGather(), DirectReduce(), RingReduce(), DoublingReduce(), RoundedReduce())
LEADERS = (Leader(), Leader(share_from=0), NormLeader())
PLANS = [
    *(recipes.dense().replace(exchange=exchange) for exchange in EXCHANGES),
    *(
        Plan(selector=TopK(density=0.1), agreement=leader, exchange=exchange)
        for leader in LEADERS
        for exchange in EXCHANGES
    ),
    Plan(selector=TopK(density=0.1), exchange=DirectGather()),
    recipes.low_rank(rank=1, to="f32"),
]


def means(rank: int, world: int, numel: int) -> list[list[float]]:
    """What every plan makes of one gradient."""
    found = []
    for number, plan in enumerate(PLANS):
        gradient = torch.randn(numel, generator=torch.Generator().manual_seed(1000 * number + rank))
        (mean,) = thinwire.synchronize([gradient], plan)
        found.append(mean.tolist())
    return found


@pytest.mark.parametrize("world", [2, 3, 4])
def test_every_exchange_gives_all_ranks_the_mean(pool: PoolFactory, world: int) -> None:
    numel = 1001
    found = pool(world).run(means, numel)
    assert all(other == found[0] for other in found)
    for number, plan in enumerate(PLANS):
        mean = torch.tensor(found[0][number], dtype=torch.float64)
        whole = sum(
            torch.randn(numel, generator=torch.Generator().manual_seed(1000 * number + rank)).double()
            for rank in range(world)
        )
        sent = mean != 0.0
        assert int(sent.sum()) >= plan.selector.budget(numel)
        if plan.shares_coordinates:
            assert float((mean - whole / world)[sent].abs().max()) <= 1e-6


def trained(rank: int, world: int) -> tuple[list[float], int]:
    """A model trained under another plan in every step, and its parameters."""
    ddp, sync = make(rank)
    assert sync is not None
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.001)
    for step, plan in enumerate(PLANS):
        sync.switch(plan)
        train(ddp, optimizer, rank, range(step, step + 1))
    weights = torch.cat([parameter.detach().reshape(-1) for parameter in ddp.parameters()]).tolist()
    steps = sync.stats().steps
    sync.detach()
    return weights, steps


@pytest.mark.parametrize("world", [2, 3])
def test_exchanges_are_switched_in_every_step_of_a_model(pool: PoolFactory, world: int) -> None:
    found = pool(world).run(trained, timeout=60.0)
    assert all(other == found[0] for other in found), "replicas differ"
    assert found[0][1] == len(PLANS)
