"""What magnitudes are like, and the thresholds and choices that follow."""

import math
from itertools import pairwise
from statistics import NormalDist
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from thinwire import kernels
from thinwire.bench.kernels.case import Arguments, Case
from thinwire.bench.kernels.checks import differences, largest, nearly, of_the_same_form
from thinwire.bench.kernels.data import Task
from thinwire.bench.kernels.moved import index_bytes, nbytes
from thinwire.kernels.reference.statistics import SAMPLE, ratios

CANDIDATES = 32
"""Densities that a spectrum is asked for, from 0.01 % to 10 %, evenly apart in their logarithms."""

_WIDTH = 64
_EPSILON = 1e-3
_LAYERS = 64
_LINE = 64
_SHARE = 0.01
_DIGITS = 1e-2

_OWN_SAMPLE = "torch draws a sample of its own, so that only the form of its result is checked"


def candidates(size: int) -> list[int]:
    """How many elements the candidate densities are.

    Args:
        size: Of how many.
    """
    return [max(1, round(size * 10 ** (-4 + 3 * step / (CANDIDATES - 1)))) for step in range(CANDIDATES)]


def _kth(values: Tensor, k: int) -> float:
    magnitudes = values.abs()
    return float(magnitudes[kernels.top_k(values, k).long()].min()) if k else math.inf


def _spectrum(values: Tensor, counts: list[int]) -> tuple[Any, ...]:
    descending = values.abs().topk(counts[-1]).values
    places = torch.tensor(counts) - 1
    energies = descending.double().square_().cumsum(0)
    total = torch.linalg.vector_norm(values).item() ** 2
    return tuple(descending[places].tolist()), tuple(energies[places].tolist()), (total,)


def _sampled_spectrum(values: Tensor, counts: list[int], seed: int) -> tuple[Any, ...]:
    del seed
    n = values.numel()
    sample = values[torch.randint(n, (min(n, SAMPLE),))].abs().sort(descending=True).values
    ranks = [min(sample.numel() - 1, count * sample.numel() // n) for count in counts]
    above = sample.double().square_().cumsum(0)
    rests = (above[-1] - above) * (n / sample.numel())
    return tuple(sample[ranks].tolist()), tuple(rests[ranks].tolist())


def _as_many(arguments: Arguments, expected: Any, got: Any) -> int:
    return sum(len(part) != len(arguments[1]) for part in got)


def _moments(values: Tensor) -> tuple[float, ...]:
    magnitudes = values.abs()
    found = values.mean(), magnitudes.mean(), values.var(correction=0), magnitudes.max()
    return tuple(one.item() for one in found)


def _roughly(arguments: Arguments, expected: Any, got: Any) -> int:
    """Sums of many float32 lose digits: two are left, of the largest number in each list."""
    del arguments
    pairs = zip(expected, got, strict=True) if isinstance(expected[0], tuple) else [(expected, got)]
    return sum(differences(torch.tensor(one), torch.tensor(other), tolerance=_DIGITS) for one, other in pairs)


def _gaussian_threshold(values: Tensor, k: int) -> float:
    if k >= values.numel():
        return 0.0
    quantile = NormalDist().inv_cdf(1 - k / (2 * values.numel()))
    return max(0.0, (values.mean() + quantile * values.std(correction=0)).item())


def _near(arguments: Arguments, expected: float, got: float) -> int:
    del arguments
    return int(not math.isclose(expected, got, rel_tol=_DIGITS, abs_tol=1e-6))


def _sampled_threshold(values: Tensor, k: int, seed: int) -> float:
    del seed
    n = values.numel()
    count = max(1, math.ceil(_SHARE * n))
    sample = values[torch.randint(n, (count,))].abs()
    return sample.topk(max(1, k * count // n), sorted=False).values.min().item()


def _off_by_a_fifth(task: Task) -> tuple[Tensor, float, int]:
    values = task.gradient()
    return values, 1.2 * _kth(values, task.k), task.k


def _corrected(values: Tensor, threshold: float, k: int) -> float:
    return kernels.implementation("reference").corrected_threshold(values, threshold, k)


def _weighed(task: Task) -> tuple[Tensor, Tensor, float, int]:
    return task.gradient(), task.gradient(), _EPSILON, task.k


def _most_important(arguments: Arguments, expected: Tensor, got: Tensor) -> int:
    values, weights, epsilon, _ = arguments
    return largest((ratios(values, weights, epsilon),), expected, got)


def _weighed_with_threshold(task: Task) -> tuple[Tensor, Tensor, float, float]:
    values, weights, epsilon, k = _weighed(task)
    return values, weights, epsilon, _kth(ratios(values, weights, epsilon), k)


def _strength(values: Tensor, width: int) -> Tensor:
    short = -values.numel() % width
    rows = (functional.pad(values, (0, short)) if short else values).view(-1, width)
    norms: Tensor = torch.linalg.vector_norm(rows, dim=1)
    return norms


def _layers(task: Task) -> tuple[Tensor, list[int], list[int]]:
    """Segments as of a model: each of the first 16 four times as long as those of the next 16, and so on."""
    shares = [4.0 ** -(number // 16) for number in range(_LAYERS)]
    bounds = [round(task.size * sum(shares[:number]) / sum(shares)) for number in range(_LAYERS + 1)]
    lengths = [end - begin for begin, end in pairwise(bounds)]
    return task.gradient(), bounds, [min(length, math.ceil(length * task.density)) for length in lengths]


def _top_k_segments(values: Tensor, bounds: list[int], counts: list[int]) -> Tensor:
    return torch.cat(
        [
            values[begin:end].abs().topk(count, sorted=False).indices + begin
            for begin, end, count in zip(bounds[:-1], bounds[1:], counts, strict=True)
        ]
    )


def _largest_of_each(arguments: Arguments, expected: Tensor, got: Tensor) -> int:
    values, bounds, counts = arguments
    edges = torch.tensor(counts).cumsum(0).tolist()
    parts = zip([0, *edges[:-1]], edges, bounds[:-1], bounds[1:], strict=True)
    outside = sum(int(((got[at:to] < begin) | (got[at:to] >= end)).sum()) for at, to, begin, end in parts)
    return outside + largest((values,), expected, got)


STATISTICS = (
    Case(
        name="energy",
        make=lambda task: (task.gradient(),),
        torch=lambda values: torch.linalg.vector_norm(values).item() ** 2,
        moves=nbytes,
        torch_check=_near,
        remark="torch sums in float32, which of so many squares loses digits",
        densities=False,
    ),
    Case(
        name="moments",
        make=lambda task: (task.gradient(),),
        torch=_moments,
        moves=nbytes,
        torch_check=_roughly,
        densities=False,
    ),
    Case(
        name="count_at_least",
        make=lambda task: (task.gradient(), 2.5),
        torch=lambda values, threshold: int((values.abs() >= threshold).sum()),
        moves=lambda values, threshold: nbytes(values),
        densities=False,
    ),
    Case(
        name="spectrum",
        make=lambda task: (task.gradient(), candidates(task.size)),
        torch=_spectrum,
        moves=lambda values, counts: nbytes(values),
        torch_check=_roughly,
        densities=False,
        remark=f"of {CANDIDATES} densities from 0.01 % to 10 %",
    ),
    Case(
        name="sampled_spectrum",
        make=lambda task: (task.gradient(), candidates(task.size), 7),
        torch=_sampled_spectrum,
        moves=lambda values, counts, seed: min(nbytes(values), SAMPLE * _LINE),
        torch_check=_as_many,
        densities=False,
        remark=f"of {CANDIDATES} densities, from {SAMPLE} elements, with bounds, which torch's has not; {_OWN_SAMPLE}",
    ),
    Case(
        name="gaussian_threshold",
        make=lambda task: (task.gradient(), task.k),
        torch=_gaussian_threshold,
        moves=lambda values, k: nbytes(values),
        torch_check=_near,
        densities=False,
    ),
    Case(
        name="sampled_threshold",
        make=lambda task: (task.gradient(), task.k, 7),
        torch=_sampled_threshold,
        moves=lambda values, k, seed: min(nbytes(values), math.ceil(_SHARE * values.numel()) * _LINE),
        torch_check=of_the_same_form,
        densities=False,
        remark=_OWN_SAMPLE,
    ),
    Case(
        name="corrected_threshold",
        make=_off_by_a_fifth,
        torch=_corrected,
        moves=lambda values, threshold, k: nbytes(values),
        remark="beginning a fifth too high; its floor is one pass, and counting again takes another one each",
    ),
    Case(
        name="importance",
        make=_weighed,
        torch=lambda values, weights, epsilon, k: (
            (values.abs() / (weights.abs() + epsilon)).topk(k, sorted=False).indices
        ),
        moves=lambda values, weights, epsilon, k: nbytes(values, weights) + index_bytes(len(values), k),
        torch_check=_most_important,
    ),
    Case(
        name="importance_at_least",
        make=_weighed_with_threshold,
        torch=lambda values, weights, epsilon, threshold: torch.nonzero(
            values.abs() / (weights.abs() + epsilon) >= threshold
        ).squeeze(1),
        moves=lambda values, weights, epsilon, threshold: (
            nbytes(values, weights)
            + index_bytes(len(values), int((ratios(values, weights, epsilon) >= threshold).sum()))
        ),
    ),
    Case(
        name="strength",
        make=lambda task: (task.gradient(), _WIDTH),
        torch=_strength,
        moves=lambda values, width: nbytes(values) + 8 * -(-len(values) // width),
        torch_check=nearly,
        densities=False,
        remark=f"of rows of {_WIDTH}",
    ),
    Case(
        name="top_k_segments",
        make=_layers,
        torch=_top_k_segments,
        moves=lambda values, bounds, counts: nbytes(values) + index_bytes(len(values), sum(counts)),
        torch_check=_largest_of_each,
        remark=f"{_LAYERS} segments",
    ),
)
