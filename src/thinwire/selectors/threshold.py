"""Threshold: everything that is strong enough, however much that is."""

import sys
from dataclasses import dataclass

from torch import Tensor

from thinwire import kernels
from thinwire.errors import PlanError
from thinwire.options import check_width
from thinwire.protocols import Selector
from thinwire.selectors.strength import strength


@dataclass(frozen=True, kw_only=True)
class Threshold(Selector):
    """Select every unit whose magnitude is not below a threshold.

    Args:
        threshold: The smallest magnitude that is sent; larger sends less. What stays below it piles up in the
            ledger until it is large enough.
        width: Elements of one unit.
    """

    threshold: float
    width: int = 1

    def __post_init__(self) -> None:
        """Check the options."""
        check_width(self, self.width)
        if not isinstance(self.threshold, int | float) or not 0.0 <= self.threshold <= sys.float_info.max:
            raise PlanError(
                f"Threshold(threshold={self.threshold!r}): the threshold is a magnitude, a finite number from 0"
            )

    def choose(self, gradient: Tensor, k: int, seed: int) -> Tensor | None:
        """The units at or above the threshold; the strongest ``k`` where there are more."""
        strengths = strength(gradient, self.width)
        indices = kernels.at_least(strengths, self.threshold)
        return indices if indices.numel() <= k else kernels.top_k(strengths, k)
