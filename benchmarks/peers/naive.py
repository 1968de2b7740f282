"""Top-k as one writes it in an afternoon: torch.topk, error feedback, two all-gathers."""

import time
from collections.abc import Sequence
from functools import partial

import torch
import torch.distributed as dist
from torch import Tensor

from thinwire.bench.exchange.method import Contestant, Contract, Message, Method

# torch renamed it; both names do the same.
_all_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor


class NaiveTopK(Method):
    """Indices as int32 and values as float32, each rank its own."""

    def __init__(self, density: float, message: Message) -> None:
        super().__init__()
        self._k = max(1, int(density * message.numel))
        self._residual = torch.zeros(message.numel)
        self._mean = torch.zeros(message.numel)

    def exchange(self, gradient: Tensor) -> Tensor:
        world = dist.get_world_size()
        began = time.perf_counter()
        self._residual.add_(gradient)
        indices = self._residual.abs().topk(self._k, sorted=False).indices
        values = self._residual[indices]
        self._residual[indices] = 0.0
        short = indices.int()
        compressed = time.perf_counter()
        all_indices = torch.empty(world * self._k, dtype=torch.int32)
        all_values = torch.empty(world * self._k)
        _all_gather(all_indices, short)
        _all_gather(all_values, values)
        exchanged = time.perf_counter()
        mean = self._mean.zero_().index_add_(0, all_indices, all_values).div_(world)
        done = time.perf_counter()
        self.seconds = {
            "compress": compressed - began,
            "exchange": exchanged - compressed,
            "decode": done - exchanged,
        }
        return mean

    def forget(self) -> None:
        self._residual.zero_()

    def owed(self) -> Tensor:
        return self._residual


def contestants(densities: Sequence[float]) -> list[Contestant]:
    return [
        Contestant(
            name="naive-topk", make=partial(NaiveTopK, density), contract=Contract.KEEPS, density=density, peer=True,
            forecast=lambda numel, world, density=density: 8.0 * (world - 1) * numel * density,
            note="torch.topk with error feedback and two all-gathers",
        )
        for density in densities
    ]  # fmt: skip
