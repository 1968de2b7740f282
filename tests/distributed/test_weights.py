"""Weights reach a selector through DDP, each beside its own gradient."""

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import thinwire
from thinwire.agreements import Leaders
from thinwire.selectors import Importance

SMALL = (1, 6, 17, 20, 33, 47)


def important(rank: int, world: int) -> list[list[int]]:
    """The elements that arrive in each step: six weights are small, so that nothing matters but what changes those."""
    torch.manual_seed(0)
    model = nn.Conv2d(3, 4, 2, bias=False).to(memory_format=torch.channels_last)
    ddp = DistributedDataParallel(model)
    plan = thinwire.Plan(
        selector=Importance(density=1 / 8, epsilon=1e-3), agreement=Leaders(count=1), exchange=thinwire.AllReduce()
    )
    sync = thinwire.attach(ddp, plan)
    arrived = []
    for step in range(4):
        with torch.no_grad():
            model.weight.fill_(1e3)
            for place in SMALL:
                model.weight[tuple(int(i) for i in torch.unravel_index(torch.tensor(place), (4, 3, 2, 2)))] = 1e-3
        ddp.zero_grad()
        x = torch.rand(5, 3, 6, 6, generator=torch.Generator().manual_seed(10 * step + rank))
        ddp(x).sum().backward()
        arrived.append(model.weight.grad.reshape(-1).nonzero().squeeze(1).tolist())
    sync.flush()
    sync.detach()
    return arrived


def test_what_is_important_follows_from_the_weights_of_each_element(pool):
    assert pool(2).run(important) == [[list(SMALL)] * 4] * 2
