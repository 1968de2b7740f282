"""Block top-k: the strongest few of every block, so that no part of a model is forgotten.

Known from training over the internet, with values of few bits. There each index has as many bits as a block needs
(12 for 4096); kept in order and written as gaps, 64 of 4096 cost about 7.5 bits each.
"""

from dataclasses import dataclass
from itertools import pairwise

from torch import Tensor

from thinwire import kernels
from thinwire.errors import PlanError
from thinwire.protocols import Selector
from thinwire.selectors.near import at_most


@dataclass(frozen=True, kw_only=True)
class BlockTopK(Selector):
    """Select the largest magnitudes of each block of neighbouring elements.

    Args:
        keep: How many of each block; of a last, short block as many in proportion, rounded up.
        block: Elements of a block.
    """

    keep: int = 64
    block: int = 4096

    def __post_init__(self) -> None:
        """Check the options."""
        whole = all(isinstance(each, int) and not isinstance(each, bool) for each in (self.keep, self.block))
        if not whole or not 0 < self.keep <= self.block:
            raise PlanError(
                f"BlockTopK(keep={self.keep!r}, block={self.block!r}): two whole numbers, the first at least 1 and "
                f"not above the second; for 64 of 4096 write keep=64, block=4096"
            )

    def budget(self, units: int) -> int:
        """As many as in all blocks together."""
        return sum(self._counts(self._bounds(units)))

    def choose(self, gradient: Tensor, k: int, seed: int) -> Tensor | None:
        """The strongest of every block; the strongest ``k`` of those where there are more."""
        bounds = self._bounds(gradient.numel())
        return at_most(gradient, kernels.top_k_segments(gradient, bounds, self._counts(bounds)), k)

    def _bounds(self, numel: int) -> list[int]:
        return [*range(0, numel, self.block), numel]

    def _counts(self, bounds: list[int]) -> list[int]:
        sizes = (end - begin for begin, end in pairwise(bounds))
        return [-(-self.keep * size // self.block) for size in sizes]
