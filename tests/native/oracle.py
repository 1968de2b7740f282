"""What the kernels should do, written as naively as possible and sharing no code with them."""

import itertools
import math
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from thinwire import kernels

NAMES = [name for name, answer in kernels.available().items() if answer == "yes"]

COMPILED = [name for name in NAMES if name not in ("triton", "reference")]

each_kernel = pytest.mark.parametrize("kernel", [kernels.implementation(name) for name in NAMES], ids=NAMES)


def order(values: Tensor) -> np.ndarray:
    """All places, strongest first, by sorting stably: equal magnitudes keep their order."""
    return np.argsort(-np.abs(values.numpy().astype(np.float64)), kind="stable")


def top_k(values: Tensor, k: int) -> list[int]:
    """By sorting everything."""
    return sorted(order(values)[: max(k, 0)].tolist())


def at_least(values: Tensor, threshold: float) -> list[int]:
    """One comparison after the other, in the precision of the values."""
    limit = values.numpy().dtype.type(threshold)
    return [i for i, value in enumerate(values.numpy()) if abs(value) >= limit]


def scatter_add(out: Tensor, indices: Tensor, values: Tensor) -> Tensor:
    """One addition after the other, in the precision of the values."""
    result = out.numpy().copy()
    for index, value in zip(indices.tolist(), values.numpy(), strict=True):
        result[index] += value
    return torch.from_numpy(result)


def rice(indices: list[int]) -> bytes:
    """As text of zeros and ones, for every parameter, and the shortest text wins."""
    if not indices:
        return b""
    gaps = [b - a - 1 for a, b in zip([-1, *indices], indices, strict=False)]
    best = min(range(41), key=lambda bits: sum(bits + 1 + (gap >> bits) for gap in gaps))
    low = "".join(format(gap % 2**best, f"0{best}b")[::-1] for gap in gaps) if best else ""
    unary = "".join("0" * (gap >> best) + "1" for gap in gaps)
    return bytes([best]) + _pack(low) + _pack(unary)


def bitmap(indices: list[int], units: int) -> bytes:
    """As text of zeros and ones."""
    chosen = set(indices)
    return _pack("".join("1" if unit in chosen else "0" for unit in range(units)))


def nearest_half(value: float, name: str) -> int:
    """The 16-bit pattern of the nearest finite number, ties to even, by trying the neighbours as exact fractions.

    A float64 is made a float32 first, as torch does.
    """
    dtype = {"BF16": torch.bfloat16, "F16": torch.float16}[name]
    most = torch.finfo(dtype).max
    value = float(np.float32(min(max(value, -most), most)))
    patterns, numbers = _halves(name)
    at = int(np.searchsorted(numbers, abs(value)))
    around = [i for i in (at - 1, at) if 0 <= i < len(numbers)]
    best = min(around, key=lambda i: (abs(Fraction(float(numbers[i])) - Fraction(abs(value))), int(patterns[i]) % 2))
    return int(patterns[best]) | (0x8000 if math.copysign(1.0, value) < 0 else 0)


@cache
def _halves(name: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """All finite patterns without a sign, and their numbers, increasing."""
    exponent, fraction = {"BF16": (8, 7), "F16": (5, 10)}[name]
    patterns = np.arange(((1 << exponent) - 1) << fraction)
    power, part = patterns >> fraction, patterns & ((1 << fraction) - 1)
    whole = np.where(power > 0, part + (1 << fraction), part)
    return patterns, np.ldexp(whole.astype(np.float64), np.maximum(power, 1) - (1 << (exponent - 1)) + 1 - fraction)


def steps(values: Tensor, scale: float) -> bytes:
    """How many steps each value is, one after the other, in the precision of the values."""
    array = values.numpy()
    with np.errstate(over="ignore"):
        return bytes(int(np.clip(np.rint(value / array.dtype.type(scale)), -127, 127)) % 256 for value in array)


def codes(values: list[float], levels: Tensor) -> bytes:
    """As text of zeros and ones: how many middles between two levels lie below the magnitude, then the sign.

    A middle is rounded to the precision of the values.
    """
    size = 1 if levels.numel() == 2 else 3
    kind = levels.numpy().dtype.type
    exact = [Fraction(level) for level in levels.tolist()]
    middles = [_rounded((a + b) / 2, kind) for a, b in itertools.pairwise(exact)]
    text = ""
    for value in values:
        near = sum(abs(value) > middle for middle in middles)
        text += format(near, f"0{size}b")[::-1] + ("1" if math.copysign(1.0, value) < 0 else "0")
    return _pack(text)


def _rounded(exact: Fraction, kind: type[np.floating[Any]]) -> float:
    """The nearest number of a type, ties to even: float64 first, unless that would round twice."""
    double = float(exact)
    if kind is np.float64 or Fraction(double) == exact:
        return float(kind(double))
    # A float32 half-way may hide behind the rounding: a step towards the exact number breaks such a tie rightly.
    return float(kind(math.nextafter(double, math.inf if Fraction(double) < exact else -math.inf)))


def levelled(data: bytes, count: int, levels: Tensor) -> Tensor:
    """One code after the other."""
    size = 2 if levels.numel() == 2 else 4
    whole = int.from_bytes(data, "little")
    found = []
    for at in range(count):
        code = whole >> (at * size) & (2**size - 1)
        level = float(levels[code % levels.numel()])
        found.append(-level if code >= levels.numel() else level)
    return torch.tensor(found, dtype=levels.dtype)


def entropy_bytes(units: int, count: int) -> float:
    """The bytes that telling one set of ``count`` out of ``units`` takes at least: log2 of the number of sets."""
    natural = math.lgamma(units + 1) - math.lgamma(count + 1) - math.lgamma(units - count + 1)
    return natural / math.log(2) / 8


def _pack(text: str) -> bytes:
    """Lowest bit first, the last byte filled up with zeros."""
    octets = [text[at : at + 8] for at in range(0, len(text), 8)]
    return bytes(int(octet[::-1], 2) for octet in octets)
