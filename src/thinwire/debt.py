"""What one group owes in one step: its old debts and its new gradient, added up when somebody looks.

Adding up and finding the largest sums are one pass over memory if they are done together, so nothing is added up before
it is known who looks, and for what.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from thinwire import kernels
from thinwire.layout import Span
from thinwire.types import Selection
from thinwire.units import put_, take


@dataclass(frozen=True)
class Layer:
    """One parameter's place in a debt, and its weights in the same order, where they are known."""

    start: int
    stop: int
    weights: Tensor | None = None


class Debt:
    """Old debts and a new gradient on their way to one buffer, out of which is taken what is sent."""

    def __init__(self, before: Tensor, gradient: Tensor, out: Tensor, layers: Sequence[Layer] = ()) -> None:
        """Begin; nothing is computed yet.

        Args:
            before: What was owed; flat.
            gradient: What is new; flat, of the same type, and not to be changed as long as the debt is looked at.
            out: Where the sum will be made.
            layers: What lies where, for selectors that go layer by layer; by default it is one layer.
        """
        self.layers = layers or (Layer(0, out.numel()),)
        self._before, self._gradient, self._out = before, gradient, out
        self._taken: kernels.Taken | None = None
        self._energy = 0.0

    @property
    def numel(self) -> int:
        """Elements of the group."""
        return self._out.numel()

    @property
    def before(self) -> Tensor:
        """What was owed before this step's gradient came; to be read only."""
        return self._before

    @property
    def total(self) -> Tensor:
        """Old debts plus gradient; behind `take_out`, the rest of it."""
        self.settle()
        return self._out

    def settle(self) -> None:
        """Add up, and put back what was taken and never sent."""
        if self._taken is None:
            self._take(0)
        elif self._taken.indices.numel():
            self._out.index_copy_(0, self._taken.indices.long(), self._taken.values)
            self._taken = _NOTHING

    @property
    def energy(self) -> float:
        """The sum of squares of the total; no finite number exactly if some element is none."""
        if self._taken is None:
            self._take(0)
        return self._energy

    @property
    def is_finite(self) -> bool:
        """Whether all of it is finite numbers."""
        return math.isfinite(self.energy)

    def hush(self, spans: Iterable[Span]) -> None:
        """Let some parameters owe nothing this time."""
        for span in spans:
            self.total[span.start : span.stop] = 0
            self._energy = kernels.energy(self.total)

    def take_top_k(self, k: int) -> Selection:
        """The ``k`` largest sums, taken out at once if nobody has looked at the total yet."""
        if self._taken is not None:
            indices = kernels.top_k(self.total, k)
            return Selection(indices, take(self.total, indices), self.numel)
        taken = self._take(k)
        return Selection(taken.indices, taken.values, self.numel)

    def take_out(self, sent: Selection) -> None:
        """Owe what is sent no longer: of values sent exactly nothing remains, of rounded ones the rest."""
        taken = self._taken
        if taken is not None and taken.indices.numel() and sent.indices is taken.indices:
            self._taken = _NOTHING
            if sent.values is not taken.values:
                put_(self._out, sent, taken.values - sent.values)
        elif sent.is_full:
            self.total.sub_(sent.values[: sent.numel])
        else:
            put_(self.total, sent, take(self.total, sent.indices, sent.width) - sent.values)

    def _take(self, k: int) -> kernels.Taken:
        self._taken = kernels.take_top_k(self._before, self._gradient, self._out, k)
        self._energy = self._taken.energy
        return self._taken


_NOTHING = kernels.Taken(torch.empty(0, dtype=torch.int32), torch.empty(0), 0.0)


def none_of(debt: Debt, width: int) -> Selection:
    """No unit at all."""
    nothing = debt.total[:0]
    return Selection(torch.empty(0, dtype=torch.int32, device=nothing.device), nothing, debt.numel, width)
