"""Whether a mean is right, and how much of the true one it has."""

from functools import cached_property

import torch
from torch import Tensor

from thinwire.bench.exchange.feed import Feed
from thinwire.bench.exchange.method import Contract
from thinwire.protocols import Wire

_POSITIONS = 4096
_CHUNK = 1 << 20
_RELATIVE, _OF_PEAK = 1e-4, 1e-6
"""How far sums in another order may be apart: of the element, and of the largest one."""


class Judge:
    """Knows the true means of a feed. Rank 0 judges; the others tell it what they still owe."""

    def __init__(self, feed: Feed, wire: Wire) -> None:
        """Look at nothing yet."""
        self._feed = feed
        self._wire = wire

    @cached_property
    def true_mean(self) -> Tensor:
        """The mean of all ranks' gradients."""
        total = self._feed.gradient(0).double()
        for rank in range(1, self._wire.world):
            total += self._feed.gradient(rank)
        return total.div_(self._wire.world).float()

    def gain(self, delivered: Tensor) -> float:
        """The energy of the true mean that arrived, as a part of all of it; below zero where noise is larger.

        Args:
            delivered: What a method made of them.
        """
        lost = whole = 0.0
        for got, true in zip(torch.split(delivered, _CHUNK), torch.split(self.true_mean, _CHUNK), strict=True):
            lost += float((got - true).double().square().sum())
            whole += float(true.double().square().sum())
        return 1.0 - lost / whole if whole else 1.0

    def wrong(self, delivered: Tensor, contract: Contract, owed: Tensor | None) -> int:
        """Count what breaks the contract. Every rank must call it; only rank 0 knows the answer.

        Args:
            delivered: What a method made of them.
            contract: What the method promises.
            owed: What this rank has kept.

        Returns:
            Elements; of those that were looked at.
        """
        if contract is Contract.LOSSY:
            return 0
        if contract is Contract.EXACT:
            return self._differing(delivered, self.true_mean) if self._wire.rank == 0 else 0
        picked = torch.randint(self._feed.message.numel, (_POSITIONS,), generator=torch.Generator().manual_seed(0))
        mine = torch.zeros(_POSITIONS) if owed is None else owed[picked].float()
        raw = mine.view(torch.uint8)
        parts = self._wire.all_gather(raw, [raw.numel()] * self._wire.world)
        if self._wire.rank != 0:
            return 0
        kept = torch.stack([part.clone().view(torch.float32).double() for part in parts]).mean(0)
        return self._differing(delivered[picked], (self.true_mean[picked].double() - kept).float())

    def _differing(self, got: Tensor, expected: Tensor) -> int:
        peak = float(self.true_mean.abs().max())
        allowed = _RELATIVE * expected.abs() + _OF_PEAK * peak
        # Written so that what is not a number is wrong.
        return int((~((got - expected).abs() <= allowed)).sum())
