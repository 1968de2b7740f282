"""Random-k: lots instead of looks. Needs no pass over the data, and with one seed for all no indices on the wire."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from thinwire.options import check_density, check_width, units_of_density
from thinwire.protocols import Selector
from thinwire.types import index_dtype, unit_count


@dataclass(frozen=True, kw_only=True)
class RandomK(Selector):
    """Select k units by lot, every one equally likely.

    Args:
        density: k as a fraction of the units, rounded up; larger sends more.
        width: Elements of one unit.
    """

    density: float
    width: int = 1

    def __post_init__(self) -> None:
        """Check the options."""
        check_density(self, self.density)
        check_width(self, self.width)

    @property
    def ignores_data(self) -> bool:
        """Yes: lots are blind."""
        return True

    def budget(self, units: int) -> int:
        """The density as a number of units."""
        return units_of_density(self.density, units)

    def choose(self, gradient: Tensor, k: int, seed: int) -> Tensor | None:
        """The lots that ``seed`` draws, the same on every machine."""
        units = unit_count(gradient.numel(), self.width)
        generator = np.random.Generator(np.random.Philox(seed))
        lots = np.sort(generator.choice(units, size=k, replace=False, shuffle=False)) if units else np.empty(0)
        return torch.from_numpy(lots).to(index_dtype(units)).to(gradient.device)
