"""How much of a gradient's energy goes through at each density, before any of them is tried.

The magnitudes of what is owed (gradient and debts) are looked at once, in a sample of them, and the shares of the
largest follow for all densities. So no step is spent on exploring, and no model is set back.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from thinwire import kernels
from thinwire.control.notes import KNOTS

Floats = NDArray[np.float64]

_SAMPLE = 1 << 15
_MISSED = 1.25
_KNOTS = np.log2(np.array([*KNOTS, 1.0]))


def look(owed: Tensor, seed: int) -> tuple[float, ...]:
    """The share of the energy in the largest elements, at each density of `KNOTS`; nothing where it is not finite.

    Args:
        owed: Gradient and debts; flat.
        seed: Chooses the sample.
    """
    energy = kernels.energy(owed)
    if not math.isfinite(energy) or owed.numel() == 0:
        return ()
    counts = [0, *(max(1, round(density * owed.numel())) for density in KNOTS)]
    with np.errstate(divide="ignore", invalid="ignore"):  # its bounds, which are not used here, divide by none at all
        seen = kernels.sampled_spectrum(owed, counts, seed, _SAMPLE)
    # Parts of the sample over the whole of the sample: what chance puts into it, it puts into both. Unless some few
    # elements that it missed hold much of the energy; they are among the largest, whatever the density.
    sampled = seen.rests[0]
    return seen.gains(energy if energy > _MISSED * sampled else sampled)[1:]


def of_laplace(densities: tuple[float, ...] = KNOTS) -> tuple[float, ...]:
    """The shares if magnitudes fell off exponentially, which gradients' nearly do: what is assumed before a look."""
    return tuple(d * (1.0 - math.log(d) + math.log(d) ** 2 / 2) for d in densities)


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Shares of the energy at the densities of `KNOTS`, smoothed over looks. A value.

    Args:
        shares: Not decreasing, between 0 and 1.
        looks: How many looks it comes from.
        weight: Of a new look.
    """

    shares: tuple[float, ...] = of_laplace()
    looks: int = 0
    weight: float = 0.3

    def looked(self, shares: tuple[float, ...]) -> "Curve":
        """After one more look; one that makes no sense is as none."""
        if len(shares) != len(KNOTS) or not all(math.isfinite(share) and 0.0 <= share <= 1.0 for share in shares):
            return self
        weight = self.weight if self.looks else 1.0
        mixed = np.array(self.shares) + weight * (np.array(shares) - np.array(self.shares))
        rising = np.maximum.accumulate(np.clip(mixed, 0.0, 1.0))
        return Curve(shares=tuple(rising.tolist()), looks=self.looks + 1, weight=self.weight)

    def at(self, densities: Floats) -> Floats:
        """The shares at any densities: straight lines over the logarithm, and in proportion below the first knot."""
        positions = np.log2(np.clip(densities, 1e-9, 1.0))
        shares: Floats = np.interp(positions, _KNOTS, [*self.shares, 1.0])
        below: Floats = np.minimum(1.0, np.exp2(positions - _KNOTS[0]))
        return shares * below
