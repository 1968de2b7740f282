"""Densities group by group under one budget: the error of one density everywhere, with the fewest bytes (L-GreCo).

L-GreCo (Alimohammadi and others, 2022) finds them by a dynamic program over errors made whole numbers. Groups add up in
error and in bytes, so a price for each unit of error, the same for all groups, splits the problem: each group takes
what is cheapest at that price, and the price is found by halving. That meets the best on the hull of what each group
can do, which with 32 densities is about as near as the program's rounding.
"""

from collections.abc import Sequence

import numpy as np

from thinwire.codecs import Delta
from thinwire.control.gains import Curve, Floats
from thinwire.control.menu import DENSITIES
from thinwire.options import units_of_density

_HALVINGS = 60


def allocate(curves: Sequence[Curve], sizes: Sequence[int], energies: Sequence[float], density: float) -> list[float]:
    """Densities for each group with no more error than one density for all, and the fewest bytes.

    Args:
        curves: What each group gains at each density.
        sizes: Elements of each group.
        energies: Of what each group owes.
        density: The one that is to be matched.

    Returns:
        One density for each group.
    """
    choices = np.array(sorted({*DENSITIES, density}))
    errors = np.stack([energy * (1.0 - curve.at(choices)) for curve, energy in zip(curves, energies, strict=True)])
    costs = np.stack([_bytes(size, choices) for size in sizes])
    uniform = int(np.flatnonzero(choices == density)[0])
    allowed = float(errors[:, uniform].sum())
    every = np.arange(len(sizes))
    best = np.full(len(sizes), uniform)
    low, high = 0.0, float(costs.max() / max(errors[errors > 0.0].min(initial=np.inf), 1e-300))
    for _ in range(_HALVINGS):
        price = (low * high) ** 0.5 if low > 0.0 else high * 1e-9
        picked = np.argmin(costs + price * errors, axis=1)
        if errors[every, picked].sum() <= allowed:
            high = price
            if costs[every, picked].sum() < costs[every, best].sum():
                best = picked
        else:
            low = price
    return [float(density) for density in choices[best]]


def _bytes(size: int, densities: Floats) -> Floats:
    counts = [units_of_density(float(density), size) for density in densities]
    return np.array([4.0 * count + Delta().size(count, size) for count in counts])
