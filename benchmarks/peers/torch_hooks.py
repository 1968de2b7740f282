"""PyTorch's own: plain DDP's all-reduce, the fp16 hook, and PowerSGD, all in one bucket.

More than one bucket is not given to PowerSGD: on Gloo it then aborts or hangs, as it starts collectives in callbacks.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from torch import Tensor
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

from thinwire.bench.exchange.method import Contestant, Contract, Message, Method, ring_bytes

RANKS = (1, 2, 4)


class Bucket:
    """What the hooks ask of DDP's bucket; the real one can only be made by DDP itself."""

    def __init__(self, message: Message, flat: Tensor) -> None:
        self._message = message
        self._flat = flat

    def buffer(self) -> Tensor:
        return self._flat

    def set_buffer(self, flat: Tensor) -> None:
        self._flat = flat

    def gradients(self) -> list[Tensor]:
        return self._message.parts(self._flat)

    def index(self) -> int:
        return 0

    def is_last(self) -> bool:
        return True


class Hook(Method):
    """A hook without memory."""

    def __init__(self, hook: Callable[..., Any], message: Message) -> None:
        super().__init__()
        self._hook = hook
        self._message = message

    def exchange(self, gradient: Tensor) -> Tensor:
        began = time.perf_counter()
        future = self._hook(None, Bucket(self._message, gradient))
        started = time.perf_counter()
        mean: Tensor = future.wait()
        self.seconds = {"compress": started - began, "exchange": time.perf_counter() - started}
        return mean

    def forget(self) -> None:
        pass


class PowerSGD(Method):
    """With error feedback and warm start, as its documentation advises."""

    def __init__(self, rank: int, message: Message) -> None:
        super().__init__()
        self._message = message
        self._state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=rank, start_powerSGD_iter=2)
        self._state.iter = 2  # the first steps of DDP go uncompressed; these are not what is measured

    def exchange(self, gradient: Tensor) -> Tensor:
        mean: Tensor = powerSGD_hook.powerSGD_hook(self._state, Bucket(self._message, gradient)).wait()
        return mean

    def forget(self) -> None:
        for error in self._state.error_dict.values():
            error.zero_()

    def owed(self) -> Tensor | None:
        return self._state.error_dict.get(0)


def contestants() -> list[Contestant]:
    exact, half = default_hooks.allreduce_hook, default_hooks.fp16_compress_hook
    return [
        Contestant(
            name="ddp", make=partial(Hook, exact), contract=Contract.EXACT, peer=True, forecast=ring_bytes(4.0),
            note="PyTorch's all-reduce of one bucket",
        ),
        Contestant(
            name="fp16", make=partial(Hook, half), contract=Contract.LOSSY, peer=True, forecast=ring_bytes(2.0),
            note="PyTorch's fp16_compress_hook",
        ),
        *(
            Contestant(
                name=f"powersgd-{rank}", make=partial(PowerSGD, rank), contract=Contract.KEEPS, peer=True,
                note="PyTorch's powerSGD_hook, one bucket, warm-started on the gradient that is measured",
            )
            for rank in RANKS
        ),
    ]  # fmt: skip
