"""Everything: the dense answer."""

from dataclasses import dataclass

from torch import Tensor

from thinwire import kernels
from thinwire.protocols import Selector


@dataclass(frozen=True, kw_only=True)
class Everything(Selector):
    """Select every element; with ``k``, the ``k`` largest."""

    @property
    def covers_everything(self) -> bool:
        """Yes."""
        return True

    def choose(self, gradient: Tensor, k: int, seed: int) -> Tensor | None:
        """All of them, or the ``k`` largest magnitudes."""
        return None if k == gradient.numel() else kernels.top_k(gradient, k)
