"""Importance: how much a gradient would change a weight, in parts of that weight, layer by layer.

Bandwidth Reduction using Importance Weighted Pruning on Ring AllReduce (Cheng and Xu, 2019) takes the magnitude of
gradient over weight. By itself that mostly finds weights near zero: the ratio has a tail so long that its mean says
nothing, and new weights of zero make it infinite. So the weight's magnitude is raised by a share of its layer's root
mean square here, and a layer's threshold is a rank in the layer, never a moment.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from thinwire import kernels
from thinwire.debt import Debt, Layer, none_of
from thinwire.errors import PlanError
from thinwire.options import check_density, units_of_density
from thinwire.protocols import Selector
from thinwire.types import Selection, index_dtype


@dataclass(frozen=True, kw_only=True)
class Importance(Selector):
    """Select, in each layer, the elements with the largest magnitude in parts of their weight.

    Where no weights are known all of them count as equal, and it is top-k layer by layer.

    Args:
        density: The fraction of each layer to select, rounded up; larger sends more.
        epsilon: What is added to every weight's magnitude, as a share of its layer's root mean square. Small prefers
            weights near zero, large comes near top-k.
        lots: The share of the selected elements that is drawn by lot from the rest of the layer, with chances in
            proportion to importance: what is always just too small gets its turn.
        exempt: Layers of up to so many elements are sent whole.
    """

    density: float
    epsilon: float = 0.3
    lots: float = 0.0
    exempt: int = 0

    def __post_init__(self) -> None:
        """Check the options."""
        check_density(self, self.density)
        if not isinstance(self.epsilon, int | float) or not 0.0 < self.epsilon < math.inf:
            raise PlanError(
                f"Importance(epsilon={self.epsilon!r}): without something added to the weights, those near zero decide "
                f"everything; write a share of their size, such as epsilon=0.3"
            )
        if not isinstance(self.lots, int | float) or not 0.0 <= self.lots <= 1.0:
            raise PlanError(f"Importance(lots={self.lots!r}): a share of what is selected, from 0 to 1")
        if not isinstance(self.exempt, int) or isinstance(self.exempt, bool) or self.exempt < 0:
            raise PlanError(f"Importance(exempt={self.exempt!r}): a number of elements; 0 exempts no layer")

    @property
    def looks_at_weights(self) -> bool:
        """Yes."""
        return True

    def budget(self, units: int) -> int:
        """The density as a number of elements, of a single layer."""
        return units if units <= self.exempt else units_of_density(self.density, units)

    def choose(self, gradient: Tensor, k: int, seed: int) -> Tensor | None:
        """The ``k`` elements that matter most, as one layer without weights."""
        return self._of_layer(gradient, None, k, seed)

    def select_from(self, debt: Debt, *, seed: int = 0) -> Selection:
        """What matters most in each layer of a debt."""
        if not debt.is_finite:
            return none_of(debt, 1)
        owed, dtype = debt.total, index_dtype(debt.numel)
        found = [torch.empty(0, dtype=dtype, device=owed.device)]
        for number, layer in enumerate(debt.layers):
            part = owed[layer.start : layer.stop]
            chosen = self._of_layer(part, _weights(layer, owed), self.budget(part.numel()), seed + number)
            found.append(chosen.to(dtype) + layer.start)
        return self.at(owed, torch.cat(found))

    def _of_layer(self, values: Tensor, weights: Tensor | None, k: int, seed: int) -> Tensor:
        """The indices of one layer, increasing."""
        drawn = int(self.lots * k)
        epsilon = self._epsilon(values, weights)
        if weights is None or epsilon is None:
            surely = kernels.top_k(values, k - drawn)
        else:
            surely = kernels.importance(values, weights, epsilon, k - drawn)
        if drawn == 0:
            return surely
        scores = values.abs() if weights is None or epsilon is None else values.abs() / (weights.abs() + epsilon)
        scores.index_fill_(0, surely.long(), 0.0)
        # The largest of score / lot: a chance in proportion to the score, and certainty where that is large.
        lots = np.random.Generator(np.random.Philox(seed)).random(values.numel(), dtype=np.float32)
        scores /= torch.from_numpy(1.0 - lots).to(scores)
        scores.clamp_(max=torch.finfo(scores.dtype).max)
        rest = kernels.top_k(scores, drawn)
        both: Tensor = torch.unique(torch.cat([surely, rest]))
        return both

    def _epsilon(self, values: Tensor, weights: Tensor | None) -> float | None:
        """What is added to the weights; None where they are too small to tell anything, as new ones of zero are."""
        if weights is None or weights.numel() == 0:
            return None
        epsilon = self.epsilon * math.sqrt(kernels.energy(weights) / weights.numel())
        usual = math.isfinite(epsilon) and epsilon >= torch.finfo(values.dtype).smallest_normal
        return epsilon if usual else None


def _weights(layer: Layer, like: Tensor) -> Tensor | None:
    """A layer's weights in the type of its debt."""
    return None if layer.weights is None else layer.weights.to(like)
