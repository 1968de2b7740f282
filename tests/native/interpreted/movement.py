"""Triton's movements, interpreted: against one addition after the other."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.native import oracle
from thinwire import kernels

KERNEL = kernels.implementation("triton")
dtypes = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
index_types = pytest.mark.parametrize("index_type", [torch.int32, torch.int64], ids=str)


@dtypes
@index_types
@settings(max_examples=12, deadline=None)
@given(n=st.one_of(st.integers(1, 300), st.integers(9_000, 9_100)), share=st.floats(0, 1), seed=st.integers(0, 1000))
def test_adds_at_the_indices_and_nowhere_else(
    dtype: torch.dtype, index_type: torch.dtype, n: int, share: float, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    out = torch.randn(n, generator=generator, dtype=dtype)
    indices = torch.randperm(n, generator=generator)[: round(share * n)].sort().values.to(index_type)
    values = torch.randn(indices.numel(), generator=generator, dtype=dtype)
    expected = oracle.scatter_add(out, indices, values)
    KERNEL.scatter_add_(out, indices, values)
    assert torch.equal(out, expected)


@index_types
@pytest.mark.parametrize("bad", [-1, 10, 2**31 - 1, -(2**31)])
def test_an_index_outside_is_refused_and_nothing_is_added(index_type: torch.dtype, bad: int) -> None:
    out = torch.zeros(10)
    with pytest.raises(IndexError, match="nothing was added"):
        KERNEL.scatter_add_(out, torch.tensor([3, bad], dtype=index_type), torch.ones(2))
    assert out.tolist() == [0.0] * 10


def test_lists_of_different_lengths_are_refused() -> None:
    with pytest.raises((RuntimeError, IndexError)):
        KERNEL.scatter_add_(torch.zeros(10), torch.tensor([1, 2]), torch.ones(3))


def test_a_strided_target_is_added_to_in_place() -> None:
    wide = torch.zeros(10)
    KERNEL.scatter_add_(wide[::2], torch.tensor([1, 3]), torch.tensor([5.0, 7.0]))
    assert wide.tolist() == [0.0, 0.0, 5.0, 0.0, 0.0, 0.0, 7.0, 0.0, 0.0, 0.0]
