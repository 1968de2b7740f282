"""Gathering, taking, summing and averaging, on every implementation, against one addition after the other."""

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.native.oracle import COMPILED, each_kernel
from thinwire import kernels
from thinwire.kernels import Kernels

FLOATS = [torch.float32, torch.float64]
INDICES = [torch.int32, torch.int64]
AWKWARD = [0.0, -0.0, 1.0, -1.0, 1e-45, 3e38, -3e38, 0.1, float("inf")]
Message = tuple[Tensor, Tensor]

dtypes = pytest.mark.parametrize("dtype", FLOATS, ids=str)
index_types = pytest.mark.parametrize("index_type", INDICES, ids=str)
several_threads = pytest.mark.parametrize("threads", [1, 2, 5])


def bits(tensor: Tensor) -> list[int]:
    """The words of a float tensor, so that both zeros differ; all NaNs are one."""
    words = tensor.view(torch.int32 if tensor.dtype == torch.float32 else torch.int64)
    return torch.where(tensor.isnan(), -1, words).tolist()


@st.composite
def messages(draw: st.DrawFn, most: int = 6) -> tuple[int, list[Message]]:
    """The length of a tensor and some messages about it, all of the same types; some are empty, some are full."""
    n = draw(st.integers(1, 150))
    dtype, index_type = draw(st.sampled_from(FLOATS)), draw(st.sampled_from(INDICES))
    found = []
    for _ in range(draw(st.integers(1, most))):
        chosen = draw(st.one_of(st.sets(st.integers(0, n - 1)), st.just(set(range(n)))))
        number = st.one_of(st.sampled_from(AWKWARD), st.floats(-(2.0**100), 2.0**100, width=32))
        values = draw(st.lists(number, min_size=len(chosen), max_size=len(chosen)))
        found.append((torch.tensor(sorted(chosen), dtype=index_type), torch.tensor(values, dtype=dtype)))
    return n, found


def crowd(kind: str, n: int, k: int, dtype: torch.dtype = torch.float32) -> list[Message]:
    """``k`` long messages of a shape that cutting into ranges and windows may stumble over."""
    generator = torch.Generator().manual_seed(k)
    found = []
    for m in range(k):
        noise = torch.rand(n, generator=generator)
        shapes = {
            "spread": lambda noise=noise: noise < 0.02,
            "dense": lambda noise=noise: noise < 0.7,
            "crowded at the front": lambda noise=noise: (noise < 0.5) & (torch.arange(n) < n // 50),
            "crowded at the end": lambda noise=noise: (noise < 0.5) & (torch.arange(n) >= n - n // 50),
            "the ends alone": lambda: (torch.arange(n) == 0) | (torch.arange(n) == n - 1),
            "all the same": lambda: torch.arange(n) % 7 == 3,
            "disjoint": lambda m=m: torch.arange(n) % k == m,
            "one after the other": lambda m=m: torch.arange(n) * k // n == m,
            "one long, others empty": lambda noise=noise, m=m: (noise < 0.3) & (m == k // 2),
        }
        indices = shapes[kind]().nonzero().squeeze(1)
        found.append((indices.int(), torch.randn(indices.numel(), generator=generator).to(dtype)))
    return found


KINDS = [
    "spread", "dense", "crowded at the front", "crowded at the end", "the ends alone", "all the same", "disjoint",
    "one after the other", "one long, others empty",
]  # fmt: skip


def added(start: Tensor, parts: list[Message]) -> Tensor:
    """One message after the other, in the precision of the values."""
    result = start.numpy().copy()
    with np.errstate(all="ignore"):
        for indices, values in parts:
            result[indices.numpy()] += values.numpy()
    return torch.from_numpy(result)


def averaged(n: int, parts: list[Message], divisor: float) -> Tensor:
    total = added(torch.zeros(n, dtype=parts[0][1].dtype), parts).numpy()
    with np.errstate(all="ignore"):
        return torch.from_numpy(total / total.dtype.type(divisor))


def merged(parts: list[Message]) -> tuple[list[int], list[int]]:
    """By a dictionary."""
    sums: dict[int, np.floating] = {}
    with np.errstate(all="ignore"):
        for indices, values in parts:
            for index, value in zip(indices.tolist(), values.numpy(), strict=True):
                sums[index] = sums[index] + value if index in sums else value
    order = sorted(sums)
    return order, bits(torch.tensor(np.array([sums[index] for index in order], dtype=parts[0][1].numpy().dtype)))


# Sums ------------------------------------------------------------------------------------------------------------


@each_kernel
@settings(max_examples=40)
@given(case=messages(), seed=st.integers(0, 100))
def test_messages_are_added_in_their_order(kernel: Kernels, case: tuple[int, list[Message]], seed: int) -> None:
    n, parts = case
    out = torch.randn(n, generator=torch.Generator().manual_seed(seed)).to(parts[0][1].dtype)
    expected = added(out, parts)
    kernel.scatter_sum_(out, parts)
    assert bits(out) == bits(expected)


@each_kernel
@settings(max_examples=40)
@given(case=messages(), divisor=st.sampled_from([1, 2, 3, 4, 7, 64, 0.1, 1e-40, 2.0**-140, 2.0**127, 1e30]))
@example(case=(1, [(torch.tensor([0]), torch.tensor([-0.0]))]), divisor=1)
def test_means_are_written_over_whatever_was_there(
    kernel: Kernels, case: tuple[int, list[Message]], divisor: float
) -> None:
    n, parts = case
    out = torch.full((n,), float("nan"), dtype=parts[0][1].dtype)
    kernel.scatter_mean_(out, parts, divisor)
    assert bits(out) == bits(averaged(n, parts, divisor))


@each_kernel
@settings(max_examples=40)
@given(case=messages(most=9))
@example(case=(3, [(torch.tensor([1], dtype=torch.int32), torch.tensor([-0.0]))] * 2))
def test_merging_is_adding_without_the_zeros(kernel: Kernels, case: tuple[int, list[Message]]) -> None:
    n, parts = case
    indices, sums = kernel.merge_sum(parts, n)
    assert indices.dtype == torch.int32
    assert sums.dtype == parts[0][1].dtype
    assert (indices.tolist(), bits(sums)) == merged(parts)


@pytest.mark.parametrize("name", COMPILED)
@several_threads
@pytest.mark.parametrize("kind", KINDS)
def test_long_messages_of_every_shape(name: str, threads: int, kind: str) -> None:
    """Long enough for several tiles, windows and parts. The dense way is the oracle here."""
    kernel, n = kernels.implementation(name, threads), 400_003
    for k, dtype in ((1, torch.float64), (3, torch.float32)):
        parts = crowd(kind, n, k, dtype)
        out = torch.randn(n, generator=torch.Generator().manual_seed(1)).to(dtype)
        expected = added(out, parts)
        kernel.scatter_sum_(out, parts)
        assert torch.equal(out, expected)
        kernel.scatter_mean_(out, parts, k)
        assert torch.equal(out, averaged(n, parts, k))
        indices, sums = kernel.merge_sum(parts, n)
        flags = torch.zeros(n, dtype=torch.bool)
        for list_, _ in parts:
            flags[list_.long()] = True
        assert torch.equal(indices.long(), flags.nonzero().squeeze(1))
        assert torch.equal(sums, added(torch.zeros(n, dtype=dtype), parts)[flags])


@pytest.mark.parametrize("name", COMPILED)
@pytest.mark.parametrize("divisor", [4, 5])
def test_a_mean_that_is_too_large_for_the_caches(name: str, divisor: int) -> None:
    n = 6_000_001
    parts = crowd("spread", n, 2)
    memory = torch.full((n + 3,), float("nan"))
    for offset in (0, 1, 3):  # wherever a cache line begins
        out = memory[offset : offset + n]
        kernels.implementation(name, 2).scatter_mean_(out, parts, divisor)
        assert torch.equal(out, averaged(n, parts, divisor))
        assert bool(memory[:offset].isnan().all())
        assert bool(memory[offset + n :].isnan().all())
        memory.fill_(float("nan"))


@each_kernel
def test_many_messages_are_merged(kernel: Kernels) -> None:
    parts = crowd("spread", 20_000, 64)
    indices, sums = kernel.merge_sum(parts, 20_000)
    assert (indices.tolist(), bits(sums)) == merged(parts)


@each_kernel
def test_more_messages_than_entries_are_merged(kernel: Kernels) -> None:
    parts = [(torch.tensor([m % 3], dtype=torch.int32), torch.ones(1)) for m in range(100)]
    indices, sums = kernel.merge_sum(parts, 5)
    assert (indices.tolist(), sums.tolist()) == ([0, 1, 2], [34.0, 33.0, 33.0])


@pytest.mark.parametrize("name", COMPILED)
def test_many_tiny_messages_are_merged_by_several_threads(name: str) -> None:
    """More parts than the longest message has entries."""
    one = torch.ones(1)
    parts = [(torch.tensor([m % 7], dtype=torch.int32), one) for m in range(140_000)]
    indices, sums = kernels.implementation(name, 4).merge_sum(parts, 7)
    assert (indices.tolist(), sums.tolist()) == (list(range(7)), [20_000.0] * 7)


@each_kernel
def test_a_merge_in_a_tensor_beyond_32_bits(kernel: Kernels) -> None:
    far = 2**33 + 1
    parts = [(torch.tensor([5, far - 1]), torch.tensor([1.0, 2.0])), (torch.tensor([far - 1]), torch.tensor([3.0]))]
    indices, sums = kernel.merge_sum(parts, far)
    assert indices.dtype == torch.int64
    assert (indices.tolist(), sums.tolist()) == ([5, far - 1], [1.0, 5.0])


@each_kernel
def test_no_entries_at_all(kernel: Kernels) -> None:
    empty = (torch.empty(0, dtype=torch.int32), torch.empty(0))
    out = torch.full((5,), 3.0)
    kernel.scatter_sum_(out, [])
    kernel.scatter_sum_(out, [empty, empty])
    assert out.tolist() == [3.0] * 5
    assert kernel.merge_sum([empty, empty], 5)[0].numel() == 0
    assert kernel.merge_sum([empty], 0)[1].numel() == 0
    kernel.scatter_mean_(out, [empty], 2)
    assert out.tolist() == [0.0] * 5
    kernel.scatter_mean_(out.fill_(1.0), [], 2)
    assert out.tolist() == [0.0] * 5
    kernel.scatter_mean_(out[:0], [empty], 2)


@each_kernel
@dtypes
@index_types
@pytest.mark.parametrize(
    ("bad", "error"),
    [
        ([-1, 3], IndexError), ([3, 10], IndexError), ([-(2**31)], IndexError), ([-(2**31), 2**31 - 1], IndexError),
        ([2**31 - 1], IndexError), ([3, 3], ValueError), ([4, 3], ValueError), ([2**31 - 1, -(2**31)], ValueError),
        ([5, -1], ValueError), ([*range(9), 8], ValueError), ([8, 9, 10, 3], ValueError), ([0, 1, -3, -2], ValueError),
    ],
    ids=str,
)  # fmt: skip
def test_one_unsound_message_spoils_all(
    kernel: Kernels, dtype: torch.dtype, index_type: torch.dtype, bad: list[int], error: type[Exception]
) -> None:
    out = torch.ones(10, dtype=dtype)
    parts = [
        (torch.tensor([1, 2], dtype=index_type), torch.ones(2, dtype=dtype)),
        (torch.tensor(bad, dtype=index_type), torch.ones(len(bad), dtype=dtype)),
    ]
    with pytest.raises(error):
        kernel.scatter_sum_(out, parts)
    with pytest.raises(error):
        kernel.scatter_mean_(out, parts, 2)
    with pytest.raises(error):
        kernel.merge_sum(parts, 10)
    with pytest.raises(error):
        kernel.take_at(out, parts[1][0])
    assert out.tolist() == [1.0] * 10


@pytest.mark.parametrize("name", COMPILED)
@pytest.mark.parametrize("at", [0, 99_999, 131_072, 199_999, 200_000])
def test_a_fall_in_a_long_list_is_seen_wherever_it_is(name: str, at: int) -> None:
    indices = torch.arange(200_001, dtype=torch.int32)
    indices[at:] -= 1
    out = torch.zeros(300_000)
    for threads in (1, 3):
        with pytest.raises(IndexError if at == 0 else ValueError, match="nothing was changed"):
            kernels.implementation(name, threads).scatter_sum_(out, [(indices, torch.ones(200_001))])
    assert not bool(out.any())


@each_kernel
def test_messages_that_do_not_fit_are_refused(kernel: Kernels) -> None:
    out, two = torch.zeros(10), torch.tensor([1, 2])
    for values in (torch.ones(3), torch.ones(2, dtype=torch.float64)):
        with pytest.raises(ValueError, match="every index needs a value"):
            kernel.scatter_sum_(out, [(two, values)])
        with pytest.raises(ValueError, match="every index needs a value"):
            kernel.scatter_mean_(out, [(two, values)], 2)
    with pytest.raises(ValueError, match="every index needs a value"):
        kernel.merge_sum([(two, torch.ones(2)), (two, torch.ones(2, dtype=torch.float64))], 10)
    with pytest.raises(ValueError, match="at least one"):
        kernel.merge_sum([], 10)
    for divisor in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="positive"):
            kernel.scatter_mean_(out, [(two, torch.ones(2))], divisor)


@each_kernel
def test_strided_and_half_precision_tensors_and_mixed_indices(kernel: Kernels) -> None:
    wide = torch.zeros(10)
    parts = [(torch.tensor([1, 3]), torch.tensor([5.0, 7.0])), (torch.tensor([3], dtype=torch.int32), torch.ones(1))]
    kernel.scatter_sum_(wide[::2], parts)
    assert wide.tolist() == [0.0, 0.0, 5.0, 0.0, 0.0, 0.0, 8.0, 0.0, 0.0, 0.0]
    kernel.scatter_mean_(wide[::2], parts, 2)
    assert wide.tolist() == [0.0, 0.0, 2.5, 0.0, 0.0, 0.0, 4.0, 0.0, 0.0, 0.0]
    indices, sums = kernel.merge_sum([(i, v.half()) for i, v in parts], 5)
    assert (indices.tolist(), sums.tolist(), sums.dtype) == ([1, 3], [5.0, 8.0], torch.float16)


# Means of dense tensors ------------------------------------------------------------------------------------------


@each_kernel
@dtypes
@settings(max_examples=40)
@given(n=st.integers(0, 70), k=st.integers(1, 9), seed=st.integers(0, 100))
def test_dense_means(kernel: Kernels, dtype: torch.dtype, n: int, k: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    tensors = [torch.randn(n, generator=generator, dtype=dtype) for _ in range(k)]
    total = tensors[0].numpy().copy()
    for tensor in tensors[1:]:
        total += tensor.numpy()
    expected = torch.from_numpy(total / total.dtype.type(k))
    out = torch.full((n,), float("nan"), dtype=dtype)
    kernel.dense_mean_(out, tensors)
    assert bits(out) == bits(expected)
    kernel.dense_mean_(tensors[-1], tensors)
    assert bits(tensors[-1]) == bits(expected)


@pytest.mark.parametrize("name", COMPILED)
@several_threads
@pytest.mark.parametrize("k", [1, 2, 3])
def test_long_dense_means(name: str, threads: int, k: int) -> None:
    n = 4_200_001
    tensors = [torch.randn(n + 1, generator=torch.Generator().manual_seed(t))[1:] for t in range(k)]
    expected = sum(tensors[1:], start=tensors[0]) / k
    out = torch.full((n + 1,), 9.0)
    kernels.implementation(name, threads).dense_mean_(out[:-1], tensors)
    assert torch.equal(out[:-1], expected)
    assert out[-1] == 9.0


@each_kernel
def test_tensors_without_a_mean_are_refused(kernel: Kernels) -> None:
    with pytest.raises(ValueError, match="at least one"):
        kernel.dense_mean_(torch.zeros(3), [])
    for other in (torch.zeros(4), torch.zeros(3, dtype=torch.float64)):
        with pytest.raises(ValueError, match="alike"):
            kernel.dense_mean_(torch.zeros(3), [torch.zeros(3), other])


@each_kernel
def test_dense_means_of_other_layouts(kernel: Kernels) -> None:
    out = torch.zeros(2, 3)
    kernel.dense_mean_(out, [torch.ones(2, 3), torch.full((2, 3), 2.0)])
    assert out.tolist() == [[1.5] * 3] * 2


# Out of a tensor -------------------------------------------------------------------------------------------------


@each_kernel
@dtypes
@index_types
@settings(max_examples=40)
@given(n=st.integers(1, 200), count=st.integers(0, 300), seed=st.integers(0, 100))
def test_gather(kernel: Kernels, dtype: torch.dtype, index_type: torch.dtype, n: int, count: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(n, generator=generator, dtype=dtype)
    indices = torch.randint(n, (count,), generator=generator).to(index_type)
    expected = [values[index].item() for index in indices.tolist()]
    found = kernel.gather(values, indices)
    assert (found.tolist(), found.dtype) == (expected, dtype)
    out = torch.zeros(count, dtype=dtype)
    assert kernel.gather(values, indices, out) is out
    assert out.tolist() == expected


@each_kernel
@index_types
@settings(max_examples=40)
@given(n=st.integers(1, 200), share=st.floats(0, 1), seed=st.integers(0, 100))
def test_what_is_taken_leaves_zeros(kernel: Kernels, index_type: torch.dtype, n: int, share: float, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(n, generator=generator)
    before = values.tolist()
    chosen = torch.rand(n, generator=generator) < share
    taken = kernel.take_at(values, chosen.nonzero().squeeze(1).to(index_type))
    assert taken.tolist() == [value for value, flag in zip(before, chosen.tolist(), strict=True) if flag]
    assert bits(values) == bits(torch.tensor(before).masked_fill(chosen, 0.0))


@pytest.mark.parametrize("name", COMPILED)
@several_threads
@index_types
def test_long_lists_are_gathered_and_taken(name: str, threads: int, index_type: torch.dtype) -> None:
    kernel = kernels.implementation(name, threads)
    values = torch.randn(500_000, dtype=torch.float64)
    indices = torch.arange(1, 500_000, 2, dtype=index_type)
    expected = values[1::2].clone()
    assert torch.equal(kernel.gather(values, indices), expected)
    assert torch.equal(kernel.gather(values, indices.flip(0)), expected.flip(0))
    assert torch.equal(kernel.take_at(values, indices), expected)
    assert not bool(values[1::2].any())
    assert bool(values[::2].all())


@each_kernel
@index_types
@pytest.mark.parametrize("bad", [-1, 10, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("before", [0, 3, 70_000])
def test_nothing_outside_is_gathered(kernel: Kernels, index_type: torch.dtype, bad: int, before: int) -> None:
    indices = torch.tensor([0] * before + [bad, 1], dtype=index_type)
    with pytest.raises(IndexError):
        kernel.gather(torch.zeros(10), indices)
    with pytest.raises(IndexError):
        kernel.gather(torch.zeros(0), indices)


@each_kernel
def test_a_place_that_does_not_fit_is_refused(kernel: Kernels) -> None:
    for out in (torch.zeros(3), torch.zeros(2, dtype=torch.float64)):
        with pytest.raises(ValueError, match="are to be gathered"):
            kernel.gather(torch.zeros(10), torch.tensor([1, 2]), out)


@each_kernel
def test_strided_tensors_are_gathered_and_taken_from(kernel: Kernels) -> None:
    wide = torch.arange(10.0)
    out = torch.zeros(4)
    kernel.gather(wide[::2], torch.tensor([4, 0]), out[::2])
    assert out.tolist() == [8.0, 0.0, 0.0, 0.0]
    assert kernel.take_at(wide[::2], torch.tensor([1, 4])).tolist() == [2.0, 8.0]
    assert wide.tolist() == [0.0, 1.0, 0.0, 3.0, 4.0, 5.0, 6.0, 7.0, 0.0, 9.0]
