"""GRACE (sands-lab/grace): its top-k with residual memory and its QSGD with 127 levels, both all-gathered.

GRACE goes parameter by parameter; here it gets the gradient in one piece, which spares it all but two collectives.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch.distributed as dist
from torch import Tensor

from benchmarks.peers.found import missing
from thinwire.bench.exchange.method import Contestant, Contract, Message, Method, gather_bytes

_NAME = "message"


class Grace(Method):
    """One of GRACE's combinations, called by its ``step``."""

    def __init__(self, options: dict[str, Any], message: Message) -> None:
        from grace_dl.dist.helper import grace_from_params

        super().__init__()
        self._grace = grace_from_params({**options, "communicator": "allgather", "world_size": dist.get_world_size()})
        self._meeting = 0.0
        self._grace.send_receive = self._timed(self._grace.send_receive)

    def _timed(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any) -> Any:
            began = time.perf_counter()
            result = call(*arguments)
            self._meeting = time.perf_counter() - began
            return result

        return timed

    def exchange(self, gradient: Tensor) -> Tensor:
        began = time.perf_counter()
        mean: Tensor = self._grace.step(gradient, _NAME)
        self.seconds = {"compress": time.perf_counter() - began - self._meeting, "exchange": self._meeting}
        return mean

    def forget(self) -> None:
        for residual in self._residuals().values():
            residual.zero_()

    def owed(self) -> Tensor | None:
        return self._residuals().get(_NAME)

    def _residuals(self) -> dict[str, Tensor]:
        found: dict[str, Tensor] = getattr(self._grace.memory, "residuals", {})
        return found


def contestants(densities: Sequence[float]) -> list[Contestant]:
    absent = missing("grace_dl.dist.helper", checkout="grace", repository="sands-lab/grace")
    note = "sands-lab/grace, the gradient in one piece; its exchange includes decoding"
    top_k = [
        Contestant(
            name="grace-topk", contract=Contract.KEEPS, density=density, peer=True, absent=absent, note=note,
            make=partial(Grace, {"compressor": "topk", "memory": "residual", "compress_ratio": density}),
            forecast=lambda numel, world, density=density: 8.0 * (world - 1) * numel * density,
        )
        for density in densities
    ]  # fmt: skip
    qsgd = Contestant(
        name="grace-qsgd", contract=Contract.LOSSY, peer=True, absent=absent, note=note,
        make=partial(Grace, {"compressor": "qsgd", "memory": "none", "quantum_num": 127, "bucket_size": 128}),
        forecast=gather_bytes(1.0 + 4.0 / 128),
    )  # fmt: skip
    return [*top_k, qsgd]
