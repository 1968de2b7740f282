"""Contestants that do wrong, each in its own way, beside the real peers."""

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from benchmarks import peers
from thinwire.bench.exchange.method import Contestant, Contract, Message, Method


class Mean(Method):
    """The true mean, of everything."""

    def __init__(self, _: Message) -> None:
        super().__init__()

    def exchange(self, gradient: Tensor) -> Tensor:
        dist.all_reduce(gradient)
        return gradient.div_(dist.get_world_size())

    def forget(self) -> None:
        pass


class Sum(Mean):
    def exchange(self, gradient: Tensor) -> Tensor:
        return super().exchange(gradient).mul_(dist.get_world_size())


class EachItsOwn(Mean):
    """Right on rank 0, where means are judged."""

    def exchange(self, gradient: Tensor) -> Tensor:
        mean = super().exchange(gradient)
        mean[0] += float(dist.get_rank())
        return mean


class Forgetful(Mean):
    """Sends half of it, and does not owe the rest."""

    def exchange(self, gradient: Tensor) -> Tensor:
        gradient[::2] = 0.0
        return super().exchange(gradient)


class Nothing(Mean):
    def exchange(self, gradient: Tensor) -> Tensor:
        return torch.full_like(gradient, torch.nan)


class Broken(Mean):
    def exchange(self, gradient: Tensor) -> Tensor:
        raise RuntimeError("no such shape")


def contestants(densities: Sequence[float]) -> list[Contestant]:
    exact = {"the-mean": Mean, "a-sum": Sum, "each-its-own": EachItsOwn, "nothing": Nothing, "broken": Broken}
    return [
        *peers.contestants(densities),
        *(Contestant(name=name, make=make, contract=Contract.EXACT, peer=True) for name, make in exact.items()),
        Contestant(name="forgetful", make=Forgetful, contract=Contract.KEEPS, peer=True),
        Contestant(name="far-too-slow", make=Mean, contract=Contract.EXACT, peer=True, forecast=lambda n, world: 1e12),
        Contestant(name="elsewhere", make=Mean, contract=Contract.EXACT, peer=True, absent="absent: buy one"),
    ]
