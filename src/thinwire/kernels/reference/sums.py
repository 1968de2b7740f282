"""Sums in an order that every implementation can follow, and sums without any rounding.

Tiles of 4096 elements have 64 lanes: element i of a tile belongs to lane i mod 64. A lane is summed in the order of its
elements, in float64; then the lanes are added by halves, lane j and lane j + half, until one is left; tiles are
added in their order.
"""

import math
import sys

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

LANES, ROWS = 64, 64
_TILE = LANES * ROWS
_DIGIT = 18  # bits: products of two, doubled, of 2**25 elements fit into 63 bits
_RUN = 1 << 25


def tiles(values: Tensor) -> Tensor:
    """A vector as tiles of rows of lanes, filled up with zeros, which change no sum."""
    count = -(-values.numel() // _TILE)
    return functional.pad(values, (0, count * _TILE - values.numel())).view(count, ROWS, LANES)


def sum_of_tiles(parts: Tensor) -> float:
    """The sum of what `tiles` made, or of something computed from it element by element, in the order of the module."""
    lanes = torch.zeros(parts.shape[0], LANES, dtype=torch.float64, device=parts.device)
    for row in range(ROWS):
        lanes += parts[:, row]
    while lanes.shape[1] > 1:
        half = lanes.shape[1] // 2
        lanes = lanes[:, :half] + lanes[:, half:]
    in_order = np.add.accumulate(lanes[:, 0].cpu().numpy())
    return float(in_order[-1]) if in_order.size else 0.0


def sum_of_squares(values: Tensor) -> float:
    """The sum of squares in the order of the module; the largest finite number where only the sum is none."""
    total = sum_of_tiles(tiles(values).double().square())
    if math.isinf(total) and bool(torch.isfinite(values).all()):
        return sys.float_info.max
    return total


def exact_energies(descending: NDArray[np.floating], counts: list[int]) -> list[float]:
    """For each of increasing counts: the sum of squares of so many first magnitudes, rounded once.

    Args:
        descending: Finite magnitudes, the largest first, float32 or float64.
        counts: How many to sum, from 1 to the number of magnitudes.
    """
    fraction, smallest = (23, -149) if descending.dtype == np.float32 else (52, -1074)
    bits = descending.view(np.uint32 if fraction == 23 else np.uint64).astype(np.int64)
    field = bits >> fraction
    mantissa = (bits & ((1 << fraction) - 1)) | ((field > 0).astype(np.int64) << fraction)
    exponent = np.maximum(field, 1) - 1
    changes = (np.flatnonzero(np.diff(exponent)) + 1).tolist()
    edges = sorted({0, *changes, *counts, *range(0, descending.size, _RUN)} - {descending.size})
    whole, sums = 0, {0: 0}
    for begin, end in zip(edges, [*edges[1:], descending.size], strict=True):
        if begin < max(counts, default=0):
            whole += _whole_energy(mantissa[begin:end]) << (2 * int(exponent[begin]))
            sums[end] = whole
    return [_rounded(sums[count], 2 * smallest) for count in counts]


def _whole_energy(mantissas: NDArray[np.int64]) -> int:
    """The exact sum of squares of at most 2**25 numbers of at most 54 bits."""
    mask = (1 << _DIGIT) - 1
    low, middle, high = (mantissas >> (_DIGIT * place) & mask for place in range(3))
    products = (low * low, 2 * low * middle, 2 * low * high + middle * middle, 2 * middle * high, high * high)
    return sum(int(product.sum()) << (_DIGIT * place) for place, product in enumerate(products))


def _rounded(whole: int, exponent: int) -> float:
    """``whole * 2**exponent`` as the nearest float; the largest finite one for everything beyond."""
    drop = max(whole.bit_length() - 64, 0)
    leading = whole >> drop
    # The last bit says whether anything was dropped: it only breaks ties, as a float has 53 of the 64 bits.
    leading |= int(leading << drop != whole)
    try:
        return math.ldexp(float(leading), exponent + drop)
    except OverflowError:
        return sys.float_info.max
