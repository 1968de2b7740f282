"""DeMo (bloc97/DeMo): momentum in chunks of 64 x 64, DCT, the 32 largest coefficients of each.

It is an optimizer and has no exchange to call, so its whole step is taken, the update of the parameters included. What
it delivers is read behind its decoding, before it takes the sign. It divides what was sent by how many sent that
coefficient and not by the number of ranks, so its gain against the mean is low, and is no fault of its own aim.
"""

from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.peers.found import missing
from thinwire.bench.exchange.method import Contestant, Contract, Message, Method


class DeMo(Method):
    """With the options that its repository has as defaults."""

    def __init__(self, message: Message) -> None:
        from demo import DeMo as Optimizer

        super().__init__()
        self._message = message
        self._parameters = [nn.Parameter(torch.zeros(shape)) for _, shape in message.shapes]
        self._optimizer = Optimizer(self._parameters, lr=1.0)
        self._decoded: list[Tensor] = []
        self._decode = self._optimizer.transform.decode
        self._optimizer.transform.decode = self._remember

    def _remember(self, coefficients: Any) -> Tensor:
        """It decodes twice for each parameter: its own share, and then everybody's."""
        decoded: Tensor = self._decode(coefficients)
        self._decoded.append(decoded)
        return decoded

    def exchange(self, gradient: Tensor) -> list[Tensor]:
        self._decoded = []
        for parameter, part in zip(self._parameters, self._message.parts(gradient), strict=True):
            parameter.grad = part
        self._optimizer.step()
        return self._decoded[1::2]

    def forget(self) -> None:
        for state in self._optimizer.demo_state.values():
            state["delta"].zero_()


def contestants() -> list[Contestant]:
    absent = missing("einops", checkout="einops", repository="arogozhnikov/einops")
    if absent:
        absent = "absent (it needs einops): pip install -c constraints.txt einops"
    absent = absent or missing("demo", needs="DeMo", checkout="DeMo", repository="bloc97/DeMo")
    return [
        Contestant(
            name="demo", make=DeMo, contract=Contract.LOSSY, peer=True, absent=absent,
            note="bloc97/DeMo, its whole optimizer step; it averages over the senders of a coefficient, not over ranks",
        )
    ]  # fmt: skip
