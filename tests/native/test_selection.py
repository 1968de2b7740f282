"""Top-k and threshold selection, on every implementation, against sorting and comparing one by one."""

import functools
import math

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.native import oracle
from tests.native.oracle import each_kernel
from thinwire import kernels
from thinwire.kernels import Kernels

FLOATS = [torch.float32, torch.float64]
HUGE = float(np.finfo(np.float64).max) / 4
DENORMAL = float(np.float32(1e-45))


def numbers(width: int) -> st.SearchStrategy[float]:
    """Finite numbers of every kind; two in three come from so small a set that many are equal."""
    anything = st.floats(allow_nan=False, allow_infinity=False, width=32 if width == 4 else 64)
    few = st.sampled_from([0.0, -0.0, 1.0, -1.0, DENORMAL, -DENORMAL, 2 * DENORMAL, 1.5, 2.0**127])
    return st.one_of(few, few, anything)


@st.composite
def vectors(draw: st.DrawFn) -> Tensor:
    """A short vector."""
    dtype = draw(st.sampled_from(FLOATS))
    return torch.tensor(draw(st.lists(numbers(dtype.itemsize), max_size=80)), dtype=dtype)


@functools.cache
def long_vector(kind: str, n: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """A vector of one of the shapes that selection algorithms stumble over."""
    noise = torch.randn(n, generator=torch.Generator().manual_seed(n), dtype=torch.float64)
    shapes = {
        "gaussian": lambda: noise,
        "heavy tails": lambda: noise / torch.randn(n, generator=torch.Generator().manual_seed(1)).double().abs(),
        "all equal": lambda: torch.full((n,), -3.25, dtype=torch.float64),
        "all zero": lambda: torch.zeros(n, dtype=torch.float64) * noise.sign(),
        "mostly zero": lambda: torch.where(noise.abs() > 3, noise, 0.0),
        "few distinct": lambda: (noise * 2).round(),
        "increasing": lambda: torch.arange(n, dtype=torch.float64) / n,
        "decreasing": lambda: torch.arange(n, 0, -1, dtype=torch.float64) / n,
        "large at the end": lambda: torch.where(torch.arange(n) > n - n // 50, 10 + noise, noise * 1e-3),
        "denormal": lambda: (noise * 50).round() * DENORMAL,
        "one ulp apart": lambda: 1 + (noise * 10).round() * 2.0**-23,
    }
    return shapes[kind]().to(dtype)


@functools.cache
def order(kind: str, n: int, dtype: torch.dtype = torch.float32) -> np.ndarray:
    """The places of such a vector, strongest first: sorted once for all implementations."""
    return oracle.order(long_vector(kind, n, dtype))


KINDS = [
    "gaussian", "heavy tails", "all equal", "all zero", "mostly zero", "few distinct", "increasing", "decreasing",
    "large at the end", "denormal", "one ulp apart",
]  # fmt: skip


def check_form(indices: Tensor, n: int) -> None:
    """Indices are flat, in the narrow type, strictly increasing and in range."""
    assert indices.dtype == torch.int32
    assert indices.dim() == 1
    assert bool((indices[1:] > indices[:-1]).all())
    if indices.numel():
        assert indices[0] >= 0
        assert indices[-1] < n


@each_kernel
@given(values=vectors(), share=st.floats(0, 1))
@example(values=torch.empty(0), share=0.0)
@example(values=torch.tensor([0.0, -0.0, 0.0]), share=0.5)
@example(values=torch.tensor([2.0, -2.0, 2.0, -2.0]), share=0.5)
def test_top_k_of_short_vectors(kernel: Kernels, values: Tensor, share: float) -> None:
    for k in {0, 1, round(share * values.numel()), values.numel()}:
        found = kernel.top_k(values, k)
        check_form(found, values.numel())
        assert found.tolist() == oracle.top_k(values, k)


@each_kernel
@pytest.mark.parametrize("k", [-1, 0])
def test_top_k_of_nothing_is_nothing(kernel: Kernels, k: int) -> None:
    assert kernel.top_k(torch.randn(10), k).numel() == 0


@each_kernel
def test_top_k_of_more_than_there_is_is_everything(kernel: Kernels) -> None:
    assert kernel.top_k(torch.randn(10), 11).tolist() == list(range(10))


@each_kernel
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("n", [1, 15, 16, 17, 4095, 100_003])
def test_top_k_of_every_shape(kernel: Kernels, kind: str, n: int, dtype: torch.dtype) -> None:
    values = long_vector(kind, n, dtype)
    for k in {1, n // 1000, n // 100, n // 3, n - 1, n}:
        found = kernel.top_k(values, k)
        check_form(found, n)
        assert np.array_equal(found.numpy(), np.sort(order(kind, n, dtype)[:k]))


@each_kernel
@pytest.mark.parametrize("kind", KINDS)
def test_top_k_of_vectors_long_enough_to_be_sampled(kernel: Kernels, kind: str) -> None:
    n = 1_000_003
    values = long_vector(kind, n)
    for k in (1, n // 1000, n // 100, n // 10, n // 2, n - 1):
        found = kernel.top_k(values, k)
        check_form(found, n)
        assert np.array_equal(found.numpy(), np.sort(order(kind, n)[:k]))


@each_kernel
@pytest.mark.parametrize("period", [7, 15, 16, 64])
def test_top_k_of_periodic_vectors(kernel: Kernels, period: int) -> None:
    """Few large values at a regular distance, as a strided sample would see all of them or none."""
    n = 600_000
    values = torch.rand(n, generator=torch.Generator().manual_seed(period)) * 1e-3
    values[::period] += 1
    for k in (n // period // 2, n // period, n // period + 100):
        assert kernel.top_k(values, k).tolist() == oracle.top_k(values, k)


def sampled_places(n: int) -> list[int]:
    """Where native/selection/candidates.h looks before it guesses: what an adversary could read there."""
    size = min(n // 4, 1 << 14)
    state, places, stride = 0x9E3779B97F4A7C15, [], n // size
    for i in range(size):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        places.append(i * stride + (state >> 33) % stride)
    return places


@each_kernel
@pytest.mark.parametrize("offset", [10.0, 0.0], ids=["too high", "too low"])
@pytest.mark.parametrize("k", [3_000, 30_000])
def test_top_k_survives_a_sample_that_misleads(kernel: Kernels, offset: float, k: int) -> None:
    n = 300_007
    values = torch.rand(n, generator=torch.Generator().manual_seed(k)) + 10 - offset
    places = torch.tensor(sampled_places(n))
    values[places] = torch.rand(places.numel(), generator=torch.Generator().manual_seed(1)) + offset
    assert kernel.top_k(values, k).tolist() == oracle.top_k(values, k)


def taken(values: Tensor, k: int) -> tuple[np.ndarray, Tensor, Tensor]:
    """Places, values and what is left when the k largest are taken."""
    places = np.sort(oracle.order(values)[:k])
    rest = values.clone()
    rest[torch.from_numpy(places)] = 0
    return places, values[torch.from_numpy(places)], rest


def check_taking(kernel: Kernels, owed: Tensor, gradient: Tensor, k: int) -> None:
    """Into a buffer of its own, and in place: the same, and what the oracle says."""
    total = owed + gradient
    places, values, rest = taken(total, k)
    for out in (torch.full_like(owed, torch.nan), owed.clone()):
        before = out if torch.equal(out, owed) else owed
        found = kernel.take_top_k(before, gradient, out, k)
        check_form(found.indices, owed.numel())
        assert np.array_equal(found.indices.numpy(), places)
        assert bits(found.values).equal(bits(values))
        assert bits(out).equal(bits(rest))
        energy = float(total.double().square().sum())
        assert math.isfinite(found.energy)
        assert min(found.energy, HUGE) == pytest.approx(min(energy, HUGE), rel=1e-4, abs=1e-37)


def bits(values: Tensor) -> Tensor:
    """For comparisons to which minus zero is not zero."""
    return values.view(torch.int32 if values.dtype == torch.float32 else torch.int64)


@each_kernel
@given(values=vectors(), shift=st.integers(0, 80), share=st.floats(0, 1))
@example(values=torch.empty(0), shift=0, share=0.0)
def test_taking_from_short_vectors(kernel: Kernels, values: Tensor, shift: int, share: float) -> None:
    gradient = values.roll(shift) * 0.25
    for k in {0, 1, round(share * values.numel()), values.numel()}:
        check_taking(kernel, values * 0.5, gradient, min(k, values.numel()))


@each_kernel
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("n", [17, 4095, 4097, 70_001])
def test_taking_from_every_shape(kernel: Kernels, kind: str, n: int, dtype: torch.dtype) -> None:
    values = long_vector(kind, n, dtype)
    for k in {0, 1, n // 100, n // 3, n}:
        check_taking(kernel, values, values.flip(0) * 0.5, k)


@each_kernel
@pytest.mark.parametrize("offset", [10.0, 0.0], ids=["too high", "too low"])
def test_taking_survives_a_sample_that_misleads(kernel: Kernels, offset: float) -> None:
    n = 300_007
    values = torch.rand(n, generator=torch.Generator().manual_seed(3)) + 10 - offset
    places = torch.tensor(sampled_places(n))
    values[places] = torch.rand(places.numel(), generator=torch.Generator().manual_seed(1)) + offset
    for k in (3_000, 30_000):
        check_taking(kernel, torch.zeros(n), values, k)


@each_kernel
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("place", [0, 41, 49_999])
def test_nothing_is_taken_where_a_sum_is_no_finite_number(kernel: Kernels, bad: float, place: int) -> None:
    owed, gradient = torch.ones(50_000), torch.ones(50_000)
    gradient[place] = bad
    out = torch.empty(50_000)
    found = kernel.take_top_k(owed, gradient, out, 500)
    assert not math.isfinite(found.energy)
    assert found.indices.numel() == found.values.numel() == 0
    assert bits(out).equal(bits(owed + gradient))


@each_kernel
def test_sums_that_overflow_are_no_finite_numbers(kernel: Kernels) -> None:
    large = torch.full((100,), 3e38)
    assert not math.isfinite(kernel.take_top_k(large, large, torch.empty(100), 1).energy)


@each_kernel
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_large_numbers_have_a_finite_energy(kernel: Kernels, dtype: torch.dtype) -> None:
    values = torch.full((5_000,), torch.finfo(dtype).max / 4, dtype=dtype)
    found = kernel.take_top_k(values, values, torch.empty_like(values), 50)
    assert math.isfinite(found.energy)
    assert math.isfinite(kernel.energy(values))
    assert found.values.tolist() == (values + values)[:50].tolist()


@pytest.mark.skipif(not oracle.COMPILED, reason="no compiled kernels here")
@pytest.mark.parametrize("name", oracle.COMPILED)
@pytest.mark.parametrize("kind", ["gaussian", "few distinct", "large at the end", "mostly zero"])
def test_the_number_of_threads_does_not_show(name: str, kind: str) -> None:
    n = 500_009
    values, gradient = long_vector(kind, n), long_vector(kind, n).flip(0)
    for k in (0, 500, 50_000, 300_000):
        results = []
        for threads in (1, 2, 5):
            kernel = kernels.implementation(name, threads)
            out = torch.empty(n)
            found = kernel.take_top_k(values, gradient, out, k)
            plain = kernel.top_k(values, k)
            results.append((found.indices.tolist(), found.values.tolist(), found.energy, out.tolist(), plain.tolist()))
        assert results[0] == results[1] == results[2]


@pytest.mark.skipif(not oracle.COMPILED, reason="no compiled kernels here")
@pytest.mark.parametrize("name", oracle.COMPILED)
def test_wide_indices_select_the_same(name: str) -> None:
    """Indices of 64 bits, as vectors of more than 2**31 elements need them, on one that fits into a test."""
    import thinwire._native as native

    n, k = 300_000, 3_000
    values = long_vector("few distinct", n)
    machine = native.Machine(name, 2)
    wide, out = torch.empty(k, dtype=torch.int64), torch.empty(n)
    native.top_k(machine, values, wide)
    assert np.array_equal(wide.numpy(), np.sort(order("few distinct", n)[:k]))
    taken_values = torch.empty(k)
    native.take_top_k(machine, values, torch.zeros(n), out, wide, taken_values)
    assert np.array_equal(wide.numpy(), np.sort(order("few distinct", n)[:k]))
    assert taken_values.equal(values[wide])


@each_kernel
@given(values=vectors(), threshold=numbers(8))
@example(values=torch.tensor([0.7]), threshold=0.7)
@example(values=torch.tensor([0.0, -0.0]), threshold=0.0)
@example(values=torch.tensor([0.0, 1.0]), threshold=-1.0)
def test_at_least_of_short_vectors(kernel: Kernels, values: Tensor, threshold: float) -> None:
    if values.dtype == torch.float32:
        threshold = float(np.float32(min(max(threshold, -(2.0**127)), 2.0**127)))
    limits = {threshold, *(abs(v) for v in values.tolist()[:3])}
    for limit in limits:
        found = kernel.at_least(values, limit)
        check_form(found, values.numel())
        assert found.tolist() == oracle.at_least(values, limit)


@each_kernel
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_at_least_of_every_shape(kernel: Kernels, kind: str, dtype: torch.dtype) -> None:
    values = long_vector(kind, 10_007, dtype)
    for limit in (0.0, 1.0, float(values.abs().median()), float(values.abs().max()), float("inf")):
        assert kernel.at_least(values, limit).tolist() == oracle.at_least(values, limit)


@each_kernel
def test_a_threshold_is_rounded_to_the_precision_of_the_values(kernel: Kernels) -> None:
    tenths = torch.arange(1, 10) / 10
    for i, tenth in enumerate(tenths.tolist(), 1):
        assert kernel.at_least(tenths, i / 10).tolist() == kernel.at_least(tenths, tenth).tolist()


@each_kernel
@settings(max_examples=30)
@given(n=st.integers(1, 40), step=st.integers(2, 4))
def test_strided_values_select_like_packed_ones(kernel: Kernels, n: int, step: int) -> None:
    wide = torch.randn(n * step, generator=torch.Generator().manual_seed(n))
    strided = wide[::step]
    assert kernel.top_k(strided, n // 2).tolist() == oracle.top_k(strided.contiguous(), n // 2)
    assert kernel.at_least(strided, 0.5).tolist() == oracle.at_least(strided.contiguous(), 0.5)
