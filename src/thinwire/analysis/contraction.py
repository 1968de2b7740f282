"""How much of a gradient's energy a selection keeps, beside what theory promises.

A selection of k of n elements is a contraction if it leaves at most (1 - delta) of the energy; convergence is proved
for any delta, and faster for a larger one. Random-k has delta = k/n. For top-k of bell-shaped vectors, Shi, Chu, Cheung
and See (2019) prove (2kn - k^2) / n^2, about twice that. What real gradients give is measured here, exactly.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

from torch import Tensor

from thinwire import kernels
from thinwire.options import units_of_density


class Contraction(NamedTuple):
    """One vector at one density."""

    density: float
    measured: float
    """The share of the energy in the k largest magnitudes."""
    random: float
    """k/n: what random-k keeps on average."""
    bound: float
    """What the paper proves for top-k of a bell-shaped vector."""
    gaussian: float
    """What top-k keeps of a normally distributed vector."""


def contractions(values: Tensor, densities: Sequence[float]) -> list[Contraction]:
    """Measure one vector.

    Args:
        values: Flat, of finite numbers.
        densities: Increasing.

    Returns:
        One for each density; a vector of zeros loses nothing.
    """
    n = values.numel()
    counts = [units_of_density(density, n) for density in densities]
    found = kernels.spectrum(values, counts)
    out = []
    for density, k, energy in zip(densities, counts, found.energies, strict=True):
        share = k / n if n else 1.0
        kept = energy / found.total if found.total > 0.0 else 1.0
        out.append(Contraction(density, kept, share, 2.0 * share - share * share, of_normal(share)))
    return out


def of_normal(share: float) -> float:
    """What the ``share`` largest magnitudes of normal numbers hold of their energy."""
    if not 0.0 < share < 1.0:
        return max(0.0, min(share, 1.0))
    normal = NormalDist()
    reach = -normal.inv_cdf(share / 2.0)
    density = math.exp(-reach * reach / 2.0) / math.sqrt(2.0 * math.pi)
    return share + 2.0 * reach * density
