"""Triton's coordinate sections, interpreted: exact bytes, round trips, hostile bytes."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.native import oracle, test_sections
from tests.native.test_sections import (
    as_bytes,
    as_tensor,
    damaged,
    index_lists,
    outcome,
    tensor,
    uniform_indices,
    wide_index_lists,
)
from thinwire import kernels
from thinwire.errors import WireReason
from thinwire.kernels.triton.base import programs, start

KERNEL = kernels.implementation("triton")
REFERENCE = kernels.implementation("reference")
INSTANCES = 100
"""Blocks of bits that an interpreter gets through in a test."""

few = settings(max_examples=15, deadline=None)


@few
@given(case=st.one_of(index_lists(), wide_index_lists()))
@example(case=([], 0))
@example(case=([0], 1))
@example(case=(list(range(17)), 17))
@example(case=([2**40 - 1], 2**40))
@example(case=([0, 2**38, 2**40 - 1], 2**40))
def test_rice_bytes_are_the_specified_ones_and_come_back(case: tuple[list[int], int]) -> None:
    indices, units = case
    section = KERNEL.rice_write(tensor(indices, units), units)
    assert section.dtype == torch.uint8
    assert as_bytes(section) == oracle.rice(indices)
    # With a wide gap the unary part is long, for an interpreter.
    if 8 * section.numel() < INSTANCES * 4096:
        assert outcome(KERNEL.rice_read, as_bytes(section), len(indices), units) == indices


@few
@given(case=index_lists())
@example(case=([], 0))
@example(case=([7], 8))
@example(case=([8], 9))
def test_bitmap_bytes_are_the_specified_ones_and_come_back(case: tuple[list[int], int]) -> None:
    indices, units = case
    section = KERNEL.bitmap_write(tensor(indices, units), units)
    assert section.dtype == torch.uint8
    assert as_bytes(section) == oracle.bitmap(indices, units)
    assert outcome(KERNEL.bitmap_read, as_bytes(section), len(indices), units) == indices


@pytest.mark.parametrize("density", [0.02, 0.45, 1.0])
def test_long_sections_are_those_of_the_reference_and_come_back(density: float) -> None:
    units = 10_007
    indices = uniform_indices(units, round(density * units))
    for index_type in (torch.int32, torch.int64):
        rice = KERNEL.rice_write(indices.to(index_type), units)
        bitmap = KERNEL.bitmap_write(indices.to(index_type), units)
        assert as_bytes(rice) == as_bytes(REFERENCE.rice_write(indices, units))
        assert as_bytes(bitmap) == as_bytes(REFERENCE.bitmap_write(indices, units))
    assert torch.equal(KERNEL.rice_read(rice, indices.numel(), units), indices)
    assert torch.equal(KERNEL.bitmap_read(bitmap, indices.numel(), units), indices)


@pytest.mark.parametrize("indices", [[3, 3], [4, 3], [-1, 3], [3, 100]], ids=str)
def test_rice_refuses_to_write_what_is_not_an_increasing_list(indices: list[int]) -> None:
    with pytest.raises(ValueError, match="strictly increasing list below 100"):
        KERNEL.rice_write(torch.tensor(indices), 100)


@pytest.mark.parametrize("bad", [-1, 100, 2**40])
def test_bitmap_refuses_to_write_an_index_outside(bad: int) -> None:
    with pytest.raises(IndexError, match="not below 100"):
        KERNEL.bitmap_write(torch.tensor([3, bad]), 100)


def test_bits_beyond_two_to_the_31_are_set_where_they_belong() -> None:
    bitmap = KERNEL.bitmap_write(torch.tensor([5, 2**31, 2**31 + 77]), 2**31 + 100)
    assert bitmap.numel() == 2**28 + 13
    assert [(int(at), int(bitmap[at])) for at in bitmap.nonzero()] == [(0, 32), (2**28, 1), (2**28 + 9, 32)]


def cases_of(test: Callable[..., None]) -> list[Any]:
    """What a test of all implementations is parametrized with; but for bytes too many for an interpreter."""
    marks = test.pytestmark  # type: ignore[attr-defined]
    found = next(mark.args[1] for mark in marks if mark.args[0] == ("data", "count", "units", "reason"))
    return [case for case in found if len(case.values[0]) < INSTANCES * 512]


@pytest.mark.parametrize(
    ("data", "count", "units", "reason"),
    cases_of(test_sections.test_wrong_rice_bytes_are_refused_for_the_right_reason),
)
def test_wrong_rice_bytes_are_refused_for_the_right_reason(
    data: bytes, count: int, units: int, reason: WireReason
) -> None:
    assert outcome(KERNEL.rice_read, data, count, units) == reason


@pytest.mark.parametrize(
    ("data", "count", "units", "reason"),
    cases_of(test_sections.test_wrong_bitmap_bytes_are_refused_for_the_right_reason),
)
def test_wrong_bitmap_bytes_are_refused_for_the_right_reason(
    data: bytes, count: int, units: int, reason: WireReason
) -> None:
    assert outcome(KERNEL.bitmap_read, data, count, units) == reason


def test_a_gap_that_wraps_around_is_cut() -> None:
    """A whole section with such a gap has a megabyte of zeros; the program alone can be shown its end."""
    ends, steps = torch.tensor([2**23, 2**23 + 1]), torch.zeros(2, dtype=torch.int64)
    start(programs("coordinates").join_gaps, 2, as_tensor(b"\5" + b"\0" * 9), 2, 40, ends, steps)
    assert steps.tolist() == [2**42 + 5 + 1, 1]


@settings(max_examples=60, deadline=None)
@given(case=damaged())
def test_damaged_bytes_are_refused_as_the_reference_does(case: tuple[str, bytes, int, int]) -> None:
    kind, data, count, units = case
    read = f"{kind}_read"
    assert outcome(getattr(KERNEL, read), data, count, units) == outcome(getattr(REFERENCE, read), data, count, units)


@settings(max_examples=40, deadline=None)
@given(
    bits=st.integers(0, 45),
    body=st.binary(max_size=60),
    count=st.integers(0, 90),
    units=st.sampled_from([0, 1, 90, 5000, 2**31, 2**40]),
)
def test_random_rice_bytes_are_refused_as_the_reference_does(bits: int, body: bytes, count: int, units: int) -> None:
    data = bytes([bits]) + body
    assert outcome(KERNEL.rice_read, data, count, units) == outcome(REFERENCE.rice_read, data, count, units)


@pytest.mark.parametrize("lead", [1, 7])
def test_sections_are_read_from_any_offset(lead: int) -> None:
    indices = [5, 6, 77, 1000]
    message = as_tensor(b"\xff" * lead + oracle.rice(indices))
    assert KERNEL.rice_read(message[lead:], 4, 1001).tolist() == indices
    message = as_tensor(b"\xff" * lead + oracle.bitmap(indices, 1001))
    assert KERNEL.bitmap_read(message[lead:], 4, 1001).tolist() == indices
