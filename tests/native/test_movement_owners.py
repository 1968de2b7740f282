"""Owners and places of indices, and splitting by owner, on every implementation."""

from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.native.oracle import COMPILED, each_kernel
from thinwire import kernels
from thinwire.kernels import Kernels

MOST = 2**40
WORD = 2**64
index_types = pytest.mark.parametrize("index_type", [torch.int32, torch.int64], ids=str)
owner_numbers = st.one_of(st.integers(1, 70), st.sampled_from([255, 256, 257, 1000, 2**15 - 1, 2**15]))


def mixed(number: int) -> int:
    number = ((number ^ number >> 32) * 0xBEA225F9EB34556D) % WORD
    return ((number ^ number >> 29) * 0xBEA225F9EB34556D) % WORD


def owner(index: int, owners: int, seed: int) -> int:
    """By the definition, in whole numbers of any length."""
    block, position = divmod(index, owners)
    draw = mixed((block + mixed((seed + 0x9E3779B97F4A7C15) % WORD)) % WORD) // 2**32 * owners // 2**32
    return (position + draw) % owners


@each_kernel
@settings(max_examples=40)
@given(
    indices=st.lists(st.integers(0, MOST - 1) | st.integers(0, 2000), max_size=60),
    owners=owner_numbers,
    seed=st.integers(-(2**70), 2**70),
)
def test_owners_and_places_and_the_way_back(kernel: Kernels, indices: list[int], owners: int, seed: int) -> None:
    for listed in (torch.tensor(indices, dtype=torch.int64), torch.tensor([i % 2**31 for i in indices]).int()):
        found = kernel.owner_of(listed, owners, seed)
        assert found.dtype == (torch.uint8 if owners <= 256 else torch.int16)
        assert found.tolist() == [owner(index, owners, seed) for index in listed.tolist()]
        places = kernel.place_of(listed, owners)
        assert places.dtype == listed.dtype
        assert places.tolist() == [index // owners for index in listed.tolist()]
        for each in set(found.tolist()):
            mine = found == each
            assert torch.equal(kernel.index_at(places[mine], each, owners, seed), listed[mine])


def test_the_map_stays_as_it_is() -> None:
    """Ranks with different versions must agree: these numbers never change."""
    found = kernels.owner_of(torch.tensor([0, 1, 2, 3, 4, 5, 1000, 10**6, 2**31, 2**40 - 1]), 3, 42)
    assert found.tolist() == [owner(i, 3, 42) for i in (0, 1, 2, 3, 4, 5, 1000, 10**6, 2**31, 2**40 - 1)]
    assert found.tolist() == [0, 1, 2, 0, 1, 2, 2, 2, 0, 0]


@each_kernel
@index_types
@pytest.mark.parametrize("owners", [1, 2, 3, 7, 255, 2**15])
def test_division_is_exact_at_the_ends(kernel: Kernels, index_type: torch.dtype, owners: int) -> None:
    top = 2**31 if index_type == torch.int32 else MOST
    near = {x + d for x in (0, owners, top // 2 // owners * owners, (top - 1) // owners * owners) for d in range(-2, 3)}
    indices = sorted(i for i in near | {top - 1, top - 2} if 0 <= i < top)
    places = kernel.place_of(torch.tensor(indices, dtype=index_type), owners)
    assert places.tolist() == [index // owners for index in indices]


@each_kernel
@pytest.mark.parametrize("owners", [1, 2, 5, 16, 300])
@pytest.mark.parametrize("shape", ["neighbours", "stride", "multiples", "random"])
def test_owners_are_balanced(kernel: Kernels, owners: int, shape: str) -> None:
    """No owner is off its share by more than six standard deviations of a fair draw."""
    n = 60_000
    indices = {
        "neighbours": torch.arange(n) + 12345,
        "stride": torch.arange(n) * 1024,
        "multiples": torch.arange(n) * owners,
        "random": torch.randint(2**40, (n,), generator=torch.Generator().manual_seed(1)),
    }[shape]
    counts = Counter(kernel.owner_of(indices, owners, 3).tolist())
    fair = n / owners
    assert all(abs(counts[each] - fair) <= 6 * fair**0.5 for each in range(owners))
    if shape == "neighbours":
        assert max(counts.values()) - min(counts[each] for each in range(owners)) <= 2


@each_kernel
def test_places_keep_the_order_and_leave_no_gaps(kernel: Kernels) -> None:
    n, owners = 1003, 7
    everything = torch.arange(n, dtype=torch.int32)
    found, places = kernel.owner_of(everything, owners, 5), kernel.place_of(everything, owners)
    for each in range(owners):
        mine = places[found == each].tolist()
        assert mine[:143] == list(range(143))  # of the last, short block some have one more
        assert mine[143:] in ([], [143])


@each_kernel
def test_another_seed_is_another_map(kernel: Kernels) -> None:
    indices = torch.arange(1000)
    assert kernel.owner_of(indices, 8, 1).tolist() != kernel.owner_of(indices, 8, 2).tolist()
    assert kernel.owner_of(indices, 8, -1).tolist() == kernel.owner_of(indices, 8, 2**64 - 1).tolist()


@each_kernel
def test_impossible_owners_and_indices_are_refused(kernel: Kernels) -> None:
    indices = torch.tensor([1, 2])
    for owners in (0, -1, 2**15 + 1):
        with pytest.raises(ValueError, match="write a number from 1 to 32768"):
            kernel.owner_of(indices, owners, 0)
        with pytest.raises(ValueError, match="write a number from 1 to 32768"):
            kernel.place_of(indices, owners)
        with pytest.raises(ValueError, match="write a number from 1 to 32768"):
            kernel.multisplit(indices, torch.ones(2), torch.zeros(2, dtype=torch.uint8), owners)
    for each in (-1, 4):
        with pytest.raises(ValueError, match="of 4; write a number from 0 to 3"):
            kernel.index_at(indices, each, 4, 0)
    for bad in (torch.tensor([0, -1]), torch.tensor([0, -1]).int(), torch.tensor([MOST])):
        with pytest.raises(IndexError):
            kernel.owner_of(bad, 4, 0)
        with pytest.raises(IndexError):
            kernel.place_of(bad, 4)
        with pytest.raises(IndexError):
            kernel.index_at(bad, 0, 4, 0)
    with pytest.raises(IndexError):
        kernel.index_at(torch.tensor([2**30], dtype=torch.int32), 0, 4, 0)
    with pytest.raises(IndexError):
        kernel.index_at(torch.tensor([2**39]), 0, 4, 0)


def split(indices: Tensor, values: Tensor, owner_of_each: Tensor, owners: int) -> tuple[list[int], list[float]]:
    """One owner after the other."""
    order = [i for each in range(owners) for i, of in enumerate(owner_of_each.tolist()) if of == each]
    return [indices.tolist()[i] for i in order], [values.tolist()[i] for i in order]


@each_kernel
@index_types
@settings(max_examples=40)
@given(owner_of_each=st.lists(st.integers(0, 9), max_size=100), spare=st.integers(0, 300), double=st.booleans())
def test_a_split_is_a_stable_sort(
    kernel: Kernels, index_type: torch.dtype, owner_of_each: list[int], spare: int, double: bool
) -> None:
    owners, count = 10 + spare, len(owner_of_each)
    of = torch.tensor(owner_of_each, dtype=torch.uint8 if owners <= 256 else torch.int16)
    indices = torch.arange(count, dtype=index_type) * 3
    values = torch.arange(count, dtype=torch.float64 if double else torch.float32) + 0.5
    found = kernel.multisplit(indices, values, of, owners)
    assert (found.indices.tolist(), found.values.tolist()) == split(indices, values, of, owners)
    assert found.indices.dtype == index_type
    assert found.values.dtype == values.dtype
    assert found.counts.dtype == torch.int64
    assert found.counts.tolist() == [owner_of_each.count(each) for each in range(owners)]


@pytest.mark.parametrize("name", COMPILED)
@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("owners", [1, 2, 16, 1000])
def test_long_splits_come_back(name: str, threads: int, owners: int) -> None:
    """From indices to owners and places, split, and back: nothing is lost, whatever the threads."""
    kernel, n = kernels.implementation(name, threads), 300_007
    indices = torch.arange(n, dtype=torch.int32) * 2
    values = torch.randn(n, generator=torch.Generator().manual_seed(0))
    found = kernel.multisplit(kernel.place_of(indices, owners), values, kernel.owner_of(indices, owners, 9), owners)
    back = torch.zeros(2 * n)
    at = 0
    for each, count in enumerate(found.counts.tolist()):
        mine = kernel.index_at(found.indices[at : at + count], each, owners, 9)
        assert bool((mine[1:] > mine[:-1]).all())
        kernel.scatter_sum_(back, [(mine, found.values[at : at + count])])
        at += count
    assert at == n
    assert torch.equal(back[::2], values)


@each_kernel
@pytest.mark.parametrize("bad", [4, 255])
def test_an_owner_that_is_not_one_is_refused(kernel: Kernels, bad: int) -> None:
    for of in (torch.tensor([0, bad, 1], dtype=torch.uint8), torch.tensor([0, bad - 256, 1], dtype=torch.int16)):
        with pytest.raises(IndexError):
            kernel.multisplit(torch.arange(3), torch.ones(3), of, 4)


@each_kernel
def test_lists_of_different_lengths_are_not_split(kernel: Kernels) -> None:
    with pytest.raises(ValueError, match="every entry has one of each"):
        kernel.multisplit(torch.arange(3), torch.ones(2), torch.zeros(3, dtype=torch.uint8), 4)


@each_kernel
def test_other_types_are_split_as_well(kernel: Kernels) -> None:
    found = kernel.multisplit(torch.arange(4), torch.ones(4).half(), torch.tensor([1, 0, 1, 0]), 2)
    assert (found.indices.tolist(), found.values.dtype, found.counts.tolist()) == ([1, 3, 0, 2], torch.float16, [2, 2])
