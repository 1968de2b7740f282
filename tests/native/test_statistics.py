"""Statistics and the selections that follow from them, on every implementation, against the plainest sums and sorts."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from tests.native import oracle
from tests.native.oracle import COMPILED, each_kernel
from tests.native.test_selection import FLOATS, long_vector, order, vectors
from thinwire import kernels
from thinwire.kernels import Kernels

REFERENCE = kernels.implementation("reference")
LONG = 70_000
KINDS = ["gaussian", "heavy tails", "all equal", "mostly zero", "few distinct", "large at the end", "denormal"]
each_kind = pytest.mark.parametrize("kind", KINDS)
each_float = pytest.mark.parametrize("dtype", FLOATS, ids=str)


def magnitudes(values: Tensor) -> list[float]:
    """The largest first."""
    return sorted((abs(value) for value in values.tolist()), reverse=True)


def energy_of(numbers: list[float]) -> float:
    """The sum of squares, rounded once; the largest finite number for what is beyond."""
    try:
        return float(sum((Fraction(number) ** 2 for number in numbers), Fraction(0)))
    except OverflowError:
        return float(np.finfo(np.float64).max)


# Moments and counts ----------------------------------------------------------------------------------------------


@each_kernel
@each_float
@each_kind
def test_moments(kernel: Kernels, dtype: torch.dtype, kind: str) -> None:
    values = long_vector(kind, LONG, dtype)
    numbers = values.double().tolist()
    found = kernel.moments(values)
    assert found == REFERENCE.moments(values)
    assert found.mean_magnitude == pytest.approx(math.fsum(map(abs, numbers)) / LONG, rel=1e-12)
    assert found.mean == pytest.approx(math.fsum(numbers) / LONG, abs=1e-12 * found.mean_magnitude)
    mean_square = math.fsum(number * number for number in numbers) / LONG
    assert found.variance == pytest.approx(mean_square - found.mean**2, abs=1e-9 * mean_square)
    assert found.largest == max(map(abs, numbers))


@each_kernel
def test_moments_of_nothing_and_of_one(kernel: Kernels) -> None:
    assert kernel.moments(torch.empty(0)) == (0.0, 0.0, 0.0, 0.0)
    assert kernel.moments(torch.tensor([-2.0])) == (-2.0, 2.0, 0.0, 2.0)


@each_kernel
@given(vectors(), st.data())
def test_counting_is_selecting_without_the_list(kernel: Kernels, values: Tensor, data: st.DataObject) -> None:
    threshold = data.draw(st.sampled_from([0.0, 1.0, math.inf, *values.abs().tolist()]))
    assert kernel.count_at_least(values, threshold) == len(oracle.at_least(values, threshold))


@each_kernel
@each_kind
@pytest.mark.parametrize("k", [1, 700, LONG])
def test_long_vectors_are_counted(kernel: Kernels, kind: str, k: int) -> None:
    values = long_vector(kind, LONG)
    threshold = float(values[order(kind, LONG)[k - 1]].abs())
    assert kernel.count_at_least(values, threshold) == sum(number >= threshold for number in magnitudes(values))


# Spectra ---------------------------------------------------------------------------------------------------------


@each_kernel
@given(vectors(), st.lists(st.integers(0, 90), max_size=8))
def test_a_spectrum_is_exact(kernel: Kernels, values: Tensor, counts: list[int]) -> None:
    counts.sort()
    found, largest = kernel.spectrum(values, counts), magnitudes(values)
    reached = [min(count, len(largest)) for count in counts]
    assert list(found.thresholds) == [largest[count - 1] if count else math.inf for count in reached]
    assert list(found.energies) == [energy_of(largest[:count]) for count in reached]
    assert found.total == kernel.energy(values)


@each_kernel
@each_kind
@pytest.mark.parametrize("counts", [[1, 70, 71, 700, 7000], [0, 5, LONG // 2, LONG - 1, LONG, LONG + 5]], ids=str)
def test_a_long_spectrum_is_exact(kernel: Kernels, kind: str, counts: list[int]) -> None:
    # Squares of float32 are exact in float64, so this sum is rounded once.
    n = 5 * LONG  # enough to guess a floor from a sample
    values = long_vector(kind, n)
    largest = np.abs(values.numpy()[order(kind, n)].astype(np.float64))
    found = kernel.spectrum(values, counts)
    assert list(found.thresholds) == [largest[count - 1] if count else math.inf for count in counts]
    assert list(found.energies) == [math.fsum((largest[:count] ** 2).tolist()) for count in counts]


@pytest.mark.parametrize("name", COMPILED)
@each_float
def test_threads_do_not_show_in_statistics(name: str, dtype: torch.dtype) -> None:
    values, weights = long_vector("heavy tails", 5 * LONG, dtype), long_vector("gaussian", 5 * LONG, dtype)
    one, three = (kernels.implementation(name, threads) for threads in (1, 3))
    counts, bounds = [9, 90, 9000], [0, 17, 100_000, 5 * LONG]
    assert one.spectrum(values, counts) == three.spectrum(values, counts)
    assert one.moments(values) == three.moments(values)
    assert one.count_at_least(values, 0.5) == three.count_at_least(values, 0.5)
    assert torch.equal(one.importance(values, weights, 1e-3, 999), three.importance(values, weights, 1e-3, 999))
    assert torch.equal(one.strength(values, 48), three.strength(values, 48))
    assert torch.equal(one.top_k_segments(values, bounds, counts), three.top_k_segments(values, bounds, counts))


@each_kernel
def test_candidates_that_decrease_are_refused(kernel: Kernels) -> None:
    with pytest.raises(ValueError, match="decrease"):
        kernel.spectrum(torch.ones(9), [3, 2])


@each_kernel
@each_kind
@pytest.mark.parametrize("seed", range(3))
def test_a_sample_says_no_more_than_is_true(kernel: Kernels, kind: str, seed: int) -> None:
    values, counts = long_vector(kind, LONG), [0, 1, 70, 700, 7000, LONG]
    found = kernel.sampled_spectrum(values, counts, seed, sample=LONG // 9)
    assert found == REFERENCE.sampled_spectrum(values, counts, seed, sample=LONG // 9)
    largest = np.abs(values.numpy()[order(kind, LONG)].astype(np.float64))
    rests = np.append(np.cumsum((largest**2)[::-1])[::-1], 0.0)
    for place in range(1, len(counts)):
        fewest, most = found.fewest[place], min(found.most[place], LONG)
        low, high = found.rest_bounds[place]
        assert largest[most - 1] <= found.thresholds[place] <= (largest[fewest - 1] if fewest else math.inf)
        assert low <= rests[fewest] * (1 + 1e-9)
        assert high >= rests[most] * (1 - 1e-9)
    assert found.thresholds[0] == math.inf


@each_kernel
def test_a_sample_of_nothing(kernel: Kernels) -> None:
    found = kernel.sampled_spectrum(torch.empty(0), [0, 3], 1)
    assert (found.thresholds, found.rests) == ((math.inf, math.inf), (0.0, 0.0))


# Thresholds ------------------------------------------------------------------------------------------------------


@each_kernel
@each_float
@pytest.mark.parametrize("k", [70, 700, 7000])
def test_thresholds_let_about_as_many_through(kernel: Kernels, dtype: torch.dtype, k: int) -> None:
    values = long_vector("gaussian", LONG, dtype)
    gaussian, sampled = kernel.gaussian_threshold(values, k), kernel.sampled_threshold(values, k, 5, share=0.1)
    assert gaussian == REFERENCE.gaussian_threshold(values, k)
    assert sampled == REFERENCE.sampled_threshold(values, k, 5, share=0.1)
    assert kernel.count_at_least(values, gaussian) == pytest.approx(k, rel=0.25)
    assert k / 3 <= kernel.count_at_least(values, sampled) <= 3 * k
    assert kernel.count_at_least(values, kernel.gaussian_threshold(values, k, one_sided=True)) >= 1.5 * k
    for start in (0.5 * gaussian, 1.5 * gaussian):
        corrected = kernel.corrected_threshold(values, start, k, passes=12)
        assert corrected == REFERENCE.corrected_threshold(values, start, k, passes=12)
        assert kernel.count_at_least(values, corrected) == pytest.approx(k, rel=0.12)


@each_kernel
def test_thresholds_for_nothing_and_for_everything(kernel: Kernels) -> None:
    values = long_vector("gaussian", LONG)
    assert kernel.gaussian_threshold(values, 0) == kernel.sampled_threshold(values, 0, 5) == math.inf
    assert kernel.gaussian_threshold(values, LONG) == 0.0
    assert kernel.corrected_threshold(values, math.inf, 9) == math.inf


# Importance, units, segments -------------------------------------------------------------------------------------


@each_kernel
@each_float
@each_kind
@pytest.mark.parametrize("k", [1, 700, 30_000])
def test_importance_is_top_k_of_the_ratios(kernel: Kernels, dtype: torch.dtype, kind: str, k: int) -> None:
    values, weights = long_vector(kind, LONG, dtype), long_vector("few distinct", LONG, dtype)
    small = values.numpy().dtype.type(1e-3)
    ratios = torch.from_numpy(np.abs(values.numpy()) / (np.abs(weights.numpy()) + small))
    expected = oracle.top_k(ratios, k)
    assert kernel.importance(values, weights, 1e-3, k).tolist() == expected
    threshold = float(ratios[expected].min())
    reached = np.flatnonzero(ratios.numpy() >= ratios.numpy().dtype.type(threshold))
    assert kernel.importance_at_least(values, weights, 1e-3, threshold).tolist() == reached.tolist()


@each_kernel
def test_an_epsilon_that_is_nothing_is_refused(kernel: Kernels) -> None:
    for epsilon in (0.0, -1.0, 1e-50):
        with pytest.raises(ValueError, match="not positive"):
            kernel.importance(torch.ones(9), torch.ones(9), epsilon, 3)
        with pytest.raises(ValueError, match="not positive"):
            kernel.importance_at_least(torch.ones(9), torch.ones(9), epsilon, 1.0)


@each_kernel
@each_float
@pytest.mark.parametrize("width", [1, 2, 3, 16, 64, 100, 1000])
@pytest.mark.parametrize("n", [1, 999, 20_011])
def test_the_strength_of_units(kernel: Kernels, dtype: torch.dtype, width: int, n: int) -> None:
    values = long_vector("heavy tails", n, dtype)
    found, numbers = kernel.strength(values, width), values.double().tolist()
    assert torch.equal(found, REFERENCE.strength(values, width))
    units = [numbers[at : at + width] for at in range(0, n, width)]
    assert found.tolist() == pytest.approx([math.sqrt(math.fsum(x * x for x in unit)) for unit in units], rel=1e-12)


@each_kernel
@each_kind
def test_segments_are_selected_from_one_by_one(kernel: Kernels, kind: str) -> None:
    values = long_vector(kind, LONG)
    bounds, counts = [3, 3, 10, 5000, 60_000, LONG - 1], [4, 2, 100, 550, 10**6]
    expected = [
        begin + place
        for begin, end, count in zip(bounds[:-1], bounds[1:], counts, strict=True)
        for place in oracle.top_k(values[begin:end], count)
    ]
    assert kernel.top_k_segments(values, bounds, counts).tolist() == expected


@each_kernel
def test_segments_that_are_none_are_refused(kernel: Kernels) -> None:
    for bounds, counts in (([0, 5], [1, 1]), ([0, 5, 4], [1, 1]), ([-1, 5], [1]), ([0, 10], [1])):
        with pytest.raises(ValueError, match="bounds"):
            kernel.top_k_segments(torch.ones(9), bounds, counts)


@each_kernel
def test_strided_vectors_have_the_same_statistics(kernel: Kernels) -> None:
    values = long_vector("gaussian", LONG)[::2]
    packed = values.contiguous()
    assert kernel.moments(values) == kernel.moments(packed)
    assert kernel.spectrum(values, [5, 50]) == kernel.spectrum(packed, [5, 50])
    assert kernel.count_at_least(values, 1.0) == kernel.count_at_least(packed, 1.0)
    assert torch.equal(kernel.strength(values, 8), kernel.strength(packed, 8))
