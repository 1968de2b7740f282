"""What selectors by threshold share: all that reaches it, but no zeros, and no more than is allowed."""

import torch
from torch import Tensor

from thinwire import kernels

SAMPLE = 1 << 16
"""So many elements, or a hundredth where that is more, tell the threshold of one in a thousand to an eighth."""


def reaching(values: Tensor, threshold: float) -> Tensor:
    """The units at or above a threshold, increasing; at a threshold of nothing, those that are something."""
    least = torch.finfo(values.dtype).smallest_normal
    return kernels.at_least(values, max(threshold, least))


def at_most(values: Tensor, indices: Tensor, k: int) -> Tensor:
    """The ``k`` strongest of some units, where there are more: a second, small selection among those that passed."""
    if indices.numel() <= k:
        return indices
    return indices.index_select(0, kernels.top_k(kernels.gather(values, indices), k).long())


def sampled_start(values: Tensor, k: int, seed: int) -> float:
    """The threshold for about ``k``, from a sample."""
    return kernels.sampled_threshold(values, k, seed, max(0.01, SAMPLE / max(values.numel(), 1)))
