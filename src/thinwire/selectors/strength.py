"""How strong a unit is: the magnitude of an element, the Euclidean norm of a wider unit."""

import torch
from torch import Tensor

from thinwire.units import padded


def strength(flat: Tensor, width: int) -> Tensor:
    """One number for each unit, to be compared by magnitude.

    Norms of wide units are taken in float64: squares of float32 gradients can overflow and vanish.
    """
    if width == 1:
        return flat
    norms: Tensor = torch.linalg.vector_norm(padded(flat, width), dim=1, dtype=torch.float64)
    return norms
