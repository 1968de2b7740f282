"""Which few magnitudes stand best for many: Lloyd's quantiser of one dimension, on a sample.

Values that were selected for their size have a sign and a magnitude that is never small: for the top 1 % of normal
numbers it lies between 2.6 and 5.2 standard deviations, nearly always in the lower half. Equal steps around zero waste
most codes where there are no values, so the levels are put where the values are and travel with the message. Where
there are values near zero, the lowest level is zero, and everything is as it would be with steps.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Numbers = NDArray[np.float64]

_ROWS = 2048
_ROUNDS = 24
_FAR = 2.0**14
"""What a level stands for is less than this many times as large, so the difference has few enough digits."""


def best_levels(values: Tensor, count: int) -> Tensor:
    """Levels for the magnitudes of some values.

    A value less the nearest level, with its sign, is exact in the type of the values: what rounding takes away can
    be kept to the last bit. (Levels have 8 binary digits, and none is far from what it stands for.)

    Args:
        values: Finite numbers, flat.
        count: How many levels.

    Returns:
        The levels, on the CPU, of the type of the values, representable in bfloat16, none smaller than the one before.
    """
    magnitudes = values.abs()
    least, most = (float(magnitudes.min()), float(magnitudes.max())) if values.numel() else (0.0, 0.0)
    if most == 0.0:
        return torch.zeros(count, dtype=values.dtype)
    sample, weights = _sample(magnitudes, most)
    levels = _held(_lloyd(sample, weights, count, from_zero=False), most)
    if least < levels[0] / 2:
        levels = _held(_lloyd(sample, weights, count, from_zero=True), most)
        levels[0] = 0.0
    return levels.to(values.dtype)


def _sample(magnitudes: Tensor, most: float) -> tuple[Numbers, Numbers]:
    """Some magnitudes, increasing, in parts of the largest, and how many each stands for.

    Of each row of neighbours the largest, for itself, and another one, for the others: few magnitudes may be most of
    the energy, and none of those must be missed.
    """
    row = -(-magnitudes.numel() // _ROWS)
    table = magnitudes[: magnitudes.numel() // row * row].view(-1, row)
    largest = table.amax(1)
    parts, stand_for = [largest], [1.0]
    if row > 1:
        parts.append(torch.where(table[:, 0] == largest, table[:, 1], table[:, 0]))
        stand_for.append(row - 1.0)
    sample = np.append(torch.cat(parts).cpu().numpy().astype(np.float64), most) / most
    order = np.argsort(sample)
    return sample[order], np.append(np.repeat(stand_for, len(largest)), 1.0)[order]


def _lloyd(sample: Numbers, weights: Numbers, count: int, *, from_zero: bool) -> Numbers:
    """Each level the mean of what is nearest to it, as far as some rounds get; the lowest perhaps fixed at zero."""
    numbers, sums = (np.append(0.0, np.cumsum(part)) for part in (weights, weights * sample))
    middles = numbers[-1] * (np.arange(count) + 0.5) / count
    levels: Numbers = sample[np.searchsorted(numbers, middles).clip(1, sample.size) - 1]
    edges = np.zeros(0, dtype=np.int64)
    for _ in range(_ROUNDS):
        if from_zero:
            levels[0] = 0.0
        cuts = np.searchsorted(sample, (levels[1:] + levels[:-1]) / 2)
        before, edges = edges, np.concatenate([[0], cuts, [sample.size]])
        if np.array_equal(edges, before):
            break
        members = np.diff(numbers[edges])
        levels = np.where(members > 0, np.diff(sums[edges]) / np.maximum(members, 1.0), levels)
    return levels


def _held(levels: Numbers, most: float) -> Tensor:
    """As bfloat16 can write them, and none too far below the next, or below the largest magnitude."""
    largest = torch.finfo(torch.bfloat16).max
    above = most
    for at in reversed(range(len(levels))):
        above = levels[at] = min(max(levels[at] * most, above / _FAR), largest)
    return torch.from_numpy(levels).float().to(torch.bfloat16).double().sort().values
