"""What the elements of a gradient are distributed like."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from thinwire import kernels


class Distribution(NamedTuple):
    """A histogram in units of the standard deviation, and what says how heavy its tails are."""

    mean: float
    deviation: float
    kurtosis: float
    """The fourth moment over the squared second: 3 for normal numbers, 6 for Laplace's, more for heavier tails."""
    edges: list[float]
    """Of the bins, in standard deviations; the outermost bins hold everything beyond them, too."""
    counts: list[int]


def distribution(values: Tensor, bins: int = 80, reach: float = 10.0) -> Distribution:
    """Describe a vector.

    Args:
        values: Flat, of finite numbers.
        bins: Of the histogram.
        reach: Where it ends on either side, in standard deviations.

    Returns:
        Its distribution; of a constant one all lies at zero.
    """
    found = kernels.moments(values)
    deviation = math.sqrt(found.variance)
    scaled = (values.double() - found.mean) / (deviation or 1.0)
    kurtosis = float(scaled.pow(4).mean()) if values.numel() else 0.0
    counts = torch.histc(scaled.clamp(-reach, reach), bins, -reach, reach)
    edges = torch.linspace(-reach, reach, bins + 1, dtype=torch.float64)
    return Distribution(found.mean, deviation, kurtosis, edges.tolist(), counts.long().tolist())
