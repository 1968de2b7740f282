"""The authors' own PowerSGD (epfml/powersgd): half a power iteration a step, all matrices of one shape together."""

from functools import partial

from torch import Tensor

from benchmarks.peers.found import missing
from thinwire.bench.exchange.method import Contestant, Contract, Message, Method

RANKS = (4,)


class EpfmlPowerSGD(Method):
    """What it does not send it leaves in the gradient."""

    def __init__(self, rank: int, message: Message) -> None:
        import torch
        from powersgd import Config, PowerSGD

        super().__init__()
        self._message = message
        like = message.parts(torch.empty(message.numel))
        self._aggregator = PowerSGD(like, Config(rank=rank, start_compressing_after_num_steps=0))
        self._owed: Tensor | None = None

    def exchange(self, gradient: Tensor) -> list[Tensor]:
        if self._owed is not None:
            gradient.add_(self._owed)  # as autograd does, which adds to the .grad that holds the rest
        self._owed = gradient
        means: list[Tensor] = self._aggregator.aggregate(self._message.parts(gradient))
        return means

    def forget(self) -> None:
        self._owed = None

    def owed(self) -> Tensor | None:
        return self._owed


def contestants() -> list[Contestant]:
    absent = missing("powersgd", needs="PowerSGD", checkout="powersgd", repository="epfml/powersgd")
    return [
        Contestant(
            name=f"epfml-powersgd-{rank}", make=partial(EpfmlPowerSGD, rank), contract=Contract.KEEPS, peer=True,
            absent=absent, note="epfml/powersgd, warm-started on the gradient that is measured",
        )
        for rank in RANKS
    ]  # fmt: skip
