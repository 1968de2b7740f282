"""Nonzero: gradients that are sparse by nature lose nothing when their zeros stay home."""

from dataclasses import dataclass

from torch import Tensor

from thinwire import kernels
from thinwire.options import check_width
from thinwire.protocols import Selector
from thinwire.selectors.strength import strength
from thinwire.types import index_dtype


@dataclass(frozen=True, kw_only=True)
class NonZero(Selector):
    """Select every unit that is not all zeros: lossless.

    Args:
        width: Elements of one unit, for example the row length of an embedding.
    """

    width: int = 1

    def __post_init__(self) -> None:
        """Check the options."""
        check_width(self, self.width)

    def choose(self, gradient: Tensor, k: int, seed: int) -> Tensor | None:
        """The units that are not zero; the strongest ``k`` where there are more."""
        strengths = strength(gradient, self.width)
        indices = strengths.nonzero().squeeze(1).to(index_dtype(strengths.numel()))
        return indices if indices.numel() <= k else kernels.top_k(strengths, k)
