"""Owner-reduce, recursive doubling and rows on real ranks: the sums of dense training."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

import thinwire
from thinwire import recipes
from thinwire.lab.ranks import run_ranks

PLANS = {"owners": recipes.zen(), "doubling": recipes.zen(hierarchical=True)}


def summed(rank: int, world: int) -> dict[str, list[bool]]:
    """Whole numbers, so that every order of additions gives the same bits."""
    draw = torch.Generator().manual_seed(rank)
    gradient = torch.zeros(10_007)
    chosen = torch.randperm(10_007, generator=draw)[: 500 * rank]  # nothing at all on rank 0
    gradient[chosen] = torch.randint(-99, 100, (len(chosen),), generator=draw).float() * world
    (dense,) = thinwire.synchronize([gradient.clone()], recipes.dense())
    found: dict[str, list[bool]] = {}
    for name, plan in PLANS.items():
        (mean,) = thinwire.synchronize([gradient.clone()], plan)
        everywhere = [torch.empty_like(mean) for _ in range(world)]
        torch.distributed.all_gather(everywhere, mean)
        found[name] = [torch.equal(mean, dense), all(torch.equal(mean, each) for each in everywhere)]
    return found


@pytest.mark.parametrize("world", [2, 3, 5])
def test_sums_are_those_of_dense_training(world: int) -> None:
    for result in run_ranks(summed, world, timeout=100):
        assert result == {"owners": [True, True], "doubling": [True, True]}


class Words(nn.Module):
    """A table of words, and something dense behind it."""

    def __init__(self, sparse: bool) -> None:
        super().__init__()
        self.table = nn.Embedding(300, 8, sparse=sparse)
        self.head = nn.Linear(8, 3)

    def forward(self, words: Tensor) -> Tensor:
        return self.head(self.table(words).mean(1))


def trained(rank: int, world: int, plan: thinwire.Plan | None, sparse: bool) -> list[Tensor]:
    """The parameters after a few steps; plain DDP without a plan."""
    torch.manual_seed(0)
    ddp = DistributedDataParallel(Words(sparse))
    sync = None if plan is None else thinwire.attach(ddp, plan)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.5)
    for step in range(4):
        draw = torch.Generator().manual_seed(100 * step + rank)
        words = (torch.rand(16, 5, generator=draw) ** 3 * 300).long()
        optimizer.zero_grad()
        ddp(words).square().sum().backward()
        optimizer.step()
    if sync is not None:
        assert all(not owed.any() for owed in sync.state_dict()["owed"].values())
    return [p.detach() for p in ddp.parameters()]


@pytest.mark.parametrize("name", PLANS)
def test_models_train_as_densely_with_tables_of_sparse_rows(name: str) -> None:
    plain = run_ranks(trained, 3, None, False, timeout=100)
    ours = run_ranks(trained, 3, PLANS[name], True, timeout=100)
    for mine, others in zip(ours[0], ours[1], strict=True):
        assert torch.equal(mine, others)
    for mine, wanted in zip(ours[0], plain[0], strict=True):
        torch.testing.assert_close(mine, wanted, rtol=1e-5, atol=1e-6)
