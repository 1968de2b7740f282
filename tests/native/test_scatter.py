"""Scatter-add, on every implementation, against one addition after the other."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.native import oracle
from tests.native.oracle import each_kernel
from thinwire.kernels import Kernels

dtypes = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
index_types = pytest.mark.parametrize("index_type", [torch.int32, torch.int64], ids=str)


@each_kernel
@dtypes
@index_types
@given(n=st.integers(1, 300), share=st.floats(0, 1), seed=st.integers(0, 1000))
def test_adds_at_the_indices_and_nowhere_else(
    kernel: Kernels, dtype: torch.dtype, index_type: torch.dtype, n: int, share: float, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    out = torch.randn(n, generator=generator, dtype=dtype)
    indices = torch.randperm(n, generator=generator)[: round(share * n)].sort().values.to(index_type)
    values = torch.randn(indices.numel(), generator=generator, dtype=dtype)
    expected = oracle.scatter_add(out, indices, values)
    kernel.scatter_add_(out, indices, values)
    assert torch.equal(out, expected)


@each_kernel
@dtypes
def test_lists_added_in_the_same_order_give_the_same_bits(kernel: Kernels, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(3)
    lists = [
        (torch.randperm(5000, generator=generator)[:2500].sort().values.int(), torch.randn(2500, generator=generator))
        for _ in range(5)
    ]
    out = torch.zeros(5000, dtype=dtype)
    expected = torch.zeros(5000, dtype=dtype)
    for indices, values in lists:
        kernel.scatter_add_(out, indices, values.to(dtype))
        expected = oracle.scatter_add(expected, indices, values.to(dtype))
    assert torch.equal(out, expected)


@each_kernel
@index_types
@pytest.mark.parametrize("bad", [-1, 10, 2**31 - 1, -(2**31)])
def test_an_index_outside_is_refused(kernel: Kernels, index_type: torch.dtype, bad: int) -> None:
    out = torch.zeros(10)
    with pytest.raises(IndexError):
        kernel.scatter_add_(out, torch.tensor([bad], dtype=index_type), torch.ones(1))
    assert out.tolist() == [0.0] * 10


@each_kernel
def test_lists_of_different_lengths_are_refused(kernel: Kernels) -> None:
    with pytest.raises((RuntimeError, IndexError)):
        kernel.scatter_add_(torch.zeros(10), torch.tensor([1, 2]), torch.ones(3))


@each_kernel
def test_a_strided_target_is_added_to_in_place(kernel: Kernels) -> None:
    wide = torch.zeros(10)
    kernel.scatter_add_(wide[::2], torch.tensor([1, 3]), torch.tensor([5.0, 7.0]))
    assert wide.tolist() == [0.0, 0.0, 5.0, 0.0, 0.0, 0.0, 7.0, 0.0, 0.0, 0.0]
