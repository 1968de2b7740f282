"""Triton's kernels on a GPU, against the reference on the CPU. Without a GPU nothing of this runs."""

import math

import pytest
import torch
from torch import Tensor

from tests.native.test_selection import KINDS, long_vector
from thinwire import kernels
from thinwire.kernels.triton import why_not
from thinwire.kernels.triton.trial import trial

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available() or bool(why_not()), reason="no GPU, or no triton, on this machine"
)

CUDA = torch.device("cuda:0")
REFERENCE = kernels.implementation("reference")
FLOATS = [torch.float32, torch.float64]


@pytest.fixture(scope="module")
def kernel() -> kernels.Kernels:
    return kernels.implementation("triton")


def same(found: Tensor, expected: Tensor) -> bool:
    return found.dtype == expected.dtype and torch.equal(found.cpu(), expected)


def test_every_kernel_runs_and_equals_the_reference(kernel: kernels.Kernels) -> None:
    assert trial(kernel, CUDA) == ""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("n", [1, 4095, 4097, 1_000_003])
def test_selections_of_every_shape(kernel: kernels.Kernels, kind: str, dtype: torch.dtype, n: int) -> None:
    values = long_vector(kind, n, dtype)
    there = values.to(CUDA)
    for k in {1, n // 1000, n // 100, n // 3, n - 1, n}:
        assert same(kernel.top_k(there, k), REFERENCE.top_k(values, k))
    for limit in (0.0, 1.0, float(values.abs().median())):
        assert same(kernel.at_least(there, limit), REFERENCE.at_least(values, limit))
    assert kernel.energy(there) == pytest.approx(REFERENCE.energy(values), rel=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_taking_and_giving_back(kernel: kernels.Kernels, kind: str, dtype: torch.dtype) -> None:
    n, k = 1_000_003, 10_007
    owed, gradient = long_vector(kind, n, dtype), long_vector(kind, n, dtype).flip(0)
    out, out_there = torch.empty_like(owed), torch.empty_like(owed, device=CUDA)
    expected = REFERENCE.take_top_k(owed, gradient, out, k)
    found = kernel.take_top_k(owed.to(CUDA), gradient.to(CUDA), out_there, k)
    assert same(found.indices, expected.indices)
    assert same(found.values, expected.values)
    assert same(out_there, out)
    kernel.scatter_add_(out_there, found.indices, found.values)
    assert same(out_there, owed + gradient)


@pytest.mark.parametrize("density", [0.0003, 0.013, 0.2, 0.97])
def test_sections_are_those_of_the_reference_and_come_back(kernel: kernels.Kernels, density: float) -> None:
    units = 3_000_017
    chosen = torch.randperm(units, generator=torch.Generator().manual_seed(1))[: round(density * units)].sort().values
    for indices in (chosen.int(), chosen):
        for family in ("rice", "bitmap"):
            section = getattr(kernel, f"{family}_write")(indices.to(CUDA), units)
            assert section.device.type == "cpu"
            assert same(section, getattr(REFERENCE, f"{family}_write")(indices, units))
            assert same(getattr(kernel, f"{family}_read")(section.to(CUDA), indices.numel(), units), chosen.int())


def test_more_than_two_to_the_31_elements(kernel: kernels.Kernels) -> None:
    n = 2**31 + 5000
    if torch.cuda.mem_get_info(CUDA)[0] < 16 * n:
        pytest.skip("too little memory on this GPU")
    values = torch.zeros(n, device=CUDA)
    places = torch.tensor([5, 2**31 - 1, 2**31, n - 1], device=CUDA)
    values[places] = torch.tensor([1.0, -2.0, 3.0, -4.0], device=CUDA)
    assert kernel.top_k(values, 4).tolist() == kernel.at_least(values, 1.0).tolist() == places.tolist()
    assert kernel.top_k(values, 2).tolist() == [2**31, n - 1]
    assert kernel.top_k(values, 6).tolist() == [0, 1, *places.tolist()]
    assert kernel.energy(values) == 30.0
    rice = kernel.rice_write(places, n)
    assert same(rice, REFERENCE.rice_write(places, n))
    assert same(kernel.rice_read(rice.to(CUDA), 4, n), places.cpu())


@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_nothing_is_taken_where_a_sum_is_not_finite(kernel: kernels.Kernels, bad: float) -> None:
    owed, gradient = torch.ones(9, device=CUDA), torch.full((9,), bad, device=CUDA)
    assert kernel.take_top_k(owed, gradient, torch.empty_like(owed), 3).indices.numel() == 0


@pytest.mark.parametrize("bad", [-1, 10])
def test_an_index_outside_is_refused_and_the_gpu_stays_usable(kernel: kernels.Kernels, bad: int) -> None:
    out = torch.zeros(10, device=CUDA)
    with pytest.raises(IndexError, match="nothing was added"):
        kernel.scatter_add_(out, torch.tensor([3, bad], device=CUDA), torch.ones(2, device=CUDA))
    assert out.tolist() == [0.0] * 10


def test_tensors_on_a_gpu_go_there_by_themselves() -> None:
    values = torch.randn(10_000)
    found = kernels.top_k(values.to(CUDA), 100)
    assert found.device == CUDA
    assert same(found, REFERENCE.top_k(values, 100))
