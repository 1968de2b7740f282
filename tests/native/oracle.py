"""What the kernels should do, written as naively as possible and sharing no code with them."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from thinwire import kernels

NAMES = [name for name, answer in kernels.available().items() if answer == "yes"]

COMPILED = [name for name in NAMES if name not in ("triton", "reference")]

each_kernel = pytest.mark.parametrize("kernel", [kernels.implementation(name) for name in NAMES], ids=NAMES)


def top_k(values: Tensor, k: int) -> list[int]:
    """By sorting everything, stably: equal magnitudes keep their order."""
    order = np.argsort(-np.abs(values.numpy().astype(np.float64)), kind="stable")
    return sorted(order[: max(k, 0)].tolist())


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


def entropy_bytes(units: int, count: int) -> float:
    """The bytes that telling one set of ``count`` out of ``units`` takes at least: log2 of the number of sets."""
    natural = math.lgamma(units + 1) - math.lgamma(count + 1) - math.lgamma(units - count + 1)
    return natural / math.log(2) / 8


def _pack(text: str) -> bytes:
    """Lowest bit first, the last byte filled up with zeros."""
    octets = [text[at : at + 8] for at in range(0, len(text), 8)]
    return bytes(int(octet[::-1], 2) for octet in octets)
