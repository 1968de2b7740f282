"""Small models with every shape of parameter, and the steps that train them on one rank of several."""

import zlib
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

import thinwire


class Zoo(nn.Module):
    """Convolution, embedding, norm, linear, a scalar parameter, and tied weights."""

    def __init__(self, *, sparse: bool = False) -> None:
        """Build it."""
        super().__init__()
        self.embedding = nn.Embedding(11, 6, sparse=sparse)
        self.convolution = nn.Conv2d(1, 2, 3, padding=1)
        self.norm = nn.LayerNorm(12)
        self.hidden = nn.Linear(12, 12)
        self.tied = nn.Linear(12, 12)
        self.tied.weight = self.hidden.weight
        self.out = nn.Linear(12, 3)
        self.gain = nn.Parameter(torch.tensor(1.5))

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens of shape (batch, 2) to three numbers each."""
        looked = self.embedding(tokens).flatten(1)
        picture = self.convolution(looked.view(-1, 1, 3, 4)).mean(1).flatten(1)
        hidden = torch.tanh(self.hidden(self.norm(looked + picture)))
        return self.out(torch.tanh(self.tied(hidden))) * self.gain


def make(rank: int, *, plain: bool = False, plan: thinwire.Plan | None = None, **ddp_options):
    """A DDP Zoo, the same on every rank, cut into many buckets; attached unless plain."""
    torch.manual_seed(3)
    options = {"bucket_cap_mb": 0.0001, **ddp_options}
    ddp = DistributedDataParallel(Zoo(), **options)
    return ddp, None if plain else thinwire.attach(ddp, plan)


def batch(rank: int, step: int) -> Tensor:
    """What one rank sees in one step."""
    generator = torch.Generator().manual_seed(1000 * step + rank)
    return torch.randint(0, 11, (5, 2), generator=generator)


def loss(model: Callable[[Tensor], Tensor], rank: int, step: int) -> Tensor:
    """One rank's loss in one step."""
    return model(batch(rank, step)).square().sum() * (1 + rank)


def train(model, optimizer: torch.optim.Optimizer, rank: int, steps: range) -> list[int]:
    """Some steps; a checksum of all parameters after each."""
    sums = []
    for step in steps:
        optimizer.zero_grad()
        loss(model, rank, step).backward()
        optimizer.step()
        sums.append(checksum(model))
    return sums


def checksum(model: nn.Module) -> int:
    """CRC-32 of all parameters and buffers, bit for bit."""
    total = 0
    for tensor in model.state_dict().values():
        total = zlib.crc32(
            tensor.detach().contiguous().view(torch.uint8).numpy().data
            if tensor.dim()
            else tensor.detach().reshape(1).view(torch.uint8).numpy().data,
            total,
        )
    return total


def parameters(model: nn.Module) -> Tensor:
    """All parameters in one flat tensor."""
    return torch.cat([p.detach().reshape(-1).double() for p in model.parameters()])
