"""Triton's selections, interpreted: against sorting, comparing one by one, and the reference.

The shapes are those that every implementation is tested with, short enough for an interpreter: two blocks and a bit.
"""

import math

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.native import oracle
from tests.native.test_selection import DENORMAL, FLOATS, KINDS, check_form, long_vector, numbers, vectors
from thinwire import kernels

KERNEL = kernels.implementation("triton")
REFERENCE = kernels.implementation("reference")
BLOCK = 4096
LONG = 2 * BLOCK + 809

few = settings(max_examples=12, deadline=None)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_top_k_of_every_shape(kind: str, dtype: torch.dtype) -> None:
    values = long_vector(kind, LONG, dtype)
    for k in (LONG // 100, LONG - 1) if dtype == torch.float32 else (LONG // 3,):
        found = KERNEL.top_k(values, k)
        check_form(found, LONG)
        assert found.tolist() == oracle.top_k(values, k)


@pytest.mark.parametrize("n", [2, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK])
def test_top_k_at_the_edges_of_blocks(n: int) -> None:
    values = long_vector("few distinct", n)
    for k in (1, n - 1):
        assert KERNEL.top_k(values, k).tolist() == oracle.top_k(values, k)


def test_ties_go_to_the_lowest_indices_through_all_blocks() -> None:
    values = torch.ones(LONG)
    values[::1000] = -1.0
    for k in (BLOCK, BLOCK + 1):
        assert KERNEL.top_k(values, k).tolist() == list(range(k))


@few
@given(values=vectors(), share=st.floats(0, 1))
@example(values=torch.empty(0), share=0.0)
@example(values=torch.tensor([0.0, -0.0, 0.0]), share=0.5)
@example(values=torch.tensor([2.0, -2.0, 2.0, -2.0]), share=0.5)
@example(values=torch.tensor([3.4e38, -3.4e38, DENORMAL, 0.0]), share=0.25)
@example(values=torch.tensor([1.7e308, -1.7e308, 5e-324, 0.0], dtype=torch.float64), share=0.75)
def test_top_k_of_short_vectors(values: Tensor, share: float) -> None:
    for k in {-1, 0, round(share * values.numel()), values.numel(), values.numel() + 1}:
        found = KERNEL.top_k(values, k)
        check_form(found, values.numel())
        assert found.tolist() == oracle.top_k(values, k)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_at_least_of_every_shape(kind: str, dtype: torch.dtype) -> None:
    values = long_vector(kind, BLOCK + 9, dtype)
    for limit in (1.0, float(values.abs().median())):
        assert KERNEL.at_least(values, limit).tolist() == oracle.at_least(values, limit)


@pytest.mark.parametrize("limit", [0.0, -0.0, -1.0, float("inf"), float("-inf"), float("nan"), 0.1, DENORMAL, 3.4e38])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_at_least_of_every_threshold(limit: float, dtype: torch.dtype) -> None:
    values = torch.tensor([0.0, -0.0, 0.1, -1.0, DENORMAL, 3.4e38, math.inf], dtype=dtype)
    assert KERNEL.at_least(values, limit).tolist() == oracle.at_least(values, limit)


@few
@given(values=vectors(), threshold=numbers(8))
@example(values=torch.tensor([0.7]), threshold=0.7)
def test_at_least_of_short_vectors(values: Tensor, threshold: float) -> None:
    limit = min(max(threshold, -(2.0**127)), 2.0**127)
    assert KERNEL.at_least(values, limit).tolist() == oracle.at_least(values, limit)


def test_a_threshold_is_rounded_to_the_precision_of_the_values() -> None:
    tenths = torch.arange(1, 10) / 10
    for i, tenth in enumerate(tenths.tolist(), 1):
        assert KERNEL.at_least(tenths, i / 10).tolist() == KERNEL.at_least(tenths, tenth).tolist()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_energy_is_the_sum_of_squares(dtype: torch.dtype) -> None:
    for values in (long_vector("heavy tails", LONG, dtype), torch.full((3,), 1e30, dtype=dtype), torch.empty(0)):
        assert KERNEL.energy(values) == pytest.approx(math.fsum(v * v for v in values.tolist()), rel=1e-6)


@pytest.mark.filterwarnings("ignore:overflow encountered in multiply:RuntimeWarning")
@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_energy_is_not_finite_exactly_if_an_element_is_not(bad: float, dtype: torch.dtype) -> None:
    values = torch.full((BLOCK + 5,), torch.finfo(dtype).max, dtype=dtype)
    assert math.isfinite(KERNEL.energy(values))
    values[-1] = bad
    assert not math.isfinite(KERNEL.energy(values))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("kind", ["gaussian", "few distinct", "denormal"])
def test_taking_adds_takes_and_leaves_zeros(kind: str, in_place: bool, dtype: torch.dtype) -> None:
    owed, gradient = long_vector(kind, LONG, dtype).clone(), long_vector(kind, LONG, dtype).flip(0)
    expected_out = torch.empty_like(owed)
    expected = REFERENCE.take_top_k(owed, gradient, expected_out, 300)
    out = owed if in_place else torch.empty_like(owed)
    found = KERNEL.take_top_k(owed, gradient, out, 300)
    assert found.indices.tolist() == expected.indices.tolist() == oracle.top_k(long_sum(kind, dtype), 300)
    check_form(found.indices, LONG)
    assert as_bits(found.values) == as_bits(expected.values)
    assert as_bits(out) == as_bits(expected_out)
    assert found.energy == pytest.approx(expected.energy, rel=1e-6)


@pytest.mark.parametrize("k", [0, 5, 6])
def test_taking_nothing_or_all(k: int) -> None:
    owed, gradient, out = torch.arange(5.0), torch.ones(5), torch.empty(5)
    taken = KERNEL.take_top_k(owed, gradient, out, k)
    assert taken.indices.tolist() == list(range(min(k, 5)))
    assert out.tolist() == ([1.0, 2.0, 3.0, 4.0, 5.0] if k == 0 else [0.0] * 5)


@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
def test_nothing_is_taken_where_a_sum_is_not_finite(bad: float) -> None:
    owed, gradient, out = torch.arange(5.0), torch.ones(5), torch.empty(5)
    gradient[3] = bad
    taken = KERNEL.take_top_k(owed, gradient, out, 2)
    assert taken.indices.numel() == taken.values.numel() == 0
    assert not math.isfinite(taken.energy)
    assert out[[0, 1, 2, 4]].tolist() == [1.0, 2.0, 3.0, 5.0]


def test_lengths_that_differ_are_refused() -> None:
    with pytest.raises(RuntimeError):
        KERNEL.take_top_k(torch.zeros(5), torch.zeros(4), torch.zeros(5), 2)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_what_the_programs_cannot_take_goes_on_to_the_reference(dtype: torch.dtype) -> None:
    values = torch.arange(10.0).to(dtype)[::2]
    assert KERNEL.top_k(values, 2).tolist() == [3, 4]
    assert KERNEL.at_least(values, 4.0).tolist() == [2, 3, 4]
    assert KERNEL.energy(values) == pytest.approx(120.0, rel=1e-2)


def long_sum(kind: str, dtype: torch.dtype) -> Tensor:
    return long_vector(kind, LONG, dtype) + long_vector(kind, LONG, dtype).flip(0)


def as_bits(values: Tensor) -> bytes:
    return values.numpy().tobytes()
