"""Coordinate sections (Rice, bitmap), on every implementation: exact bytes, round trips, size, hostile bytes."""

import functools
import itertools
import math
import struct
from collections.abc import Callable

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.native import oracle
from tests.native.oracle import NAMES, each_kernel
from thinwire import kernels
from thinwire.errors import WireError, WireReason
from thinwire.kernels import Kernels
from thinwire.types import index_dtype

Outcome = WireReason | list[int]


@st.composite
def index_lists(draw: st.DrawFn, max_units: int = 400) -> tuple[list[int], int]:
    """Increasing indices below a number of units, and that number."""
    units = draw(st.integers(0, max_units))
    chosen = draw(st.sets(st.integers(0, units - 1), max_size=80)) if units else set()
    return sorted(chosen), units


@st.composite
def wide_index_lists(draw: st.DrawFn) -> tuple[list[int], int]:
    """Few indices far apart, up to the largest number of units there may be."""
    units = draw(st.sampled_from([2**20 + 1, 2**31 - 1, 2**31, 2**33 + 5, 2**40]))
    return sorted(draw(st.sets(st.integers(0, units - 1), max_size=20))), units


def tensor(indices: list[int], units: int) -> Tensor:
    return torch.tensor(indices, dtype=index_dtype(units))


def as_bytes(data: Tensor) -> bytes:
    return data.numpy().tobytes()


def as_tensor(data: bytes) -> Tensor:
    return torch.tensor(list(data), dtype=torch.uint8)


def outcome(read: Callable[[Tensor, int, int], Tensor], data: bytes, count: int, units: int) -> Outcome:
    """What reading leads to: a reason to refuse, or a list that is then checked to be increasing and in range."""
    try:
        found = read(as_tensor(data), count, units)
    except WireError as error:
        return error.reason
    assert found.dtype == index_dtype(units)
    indices = found.tolist()
    assert len(indices) == count
    assert all(a < b for a, b in itertools.pairwise(indices))
    assert not indices or (indices[0] >= 0 and indices[-1] < units)
    return indices


@each_kernel
@given(case=st.one_of(index_lists(), wide_index_lists()))
@example(case=([], 0))
@example(case=([0], 1))
@example(case=(list(range(17)), 17))
@example(case=([2**40 - 1], 2**40))
def test_rice_bytes_are_the_specified_ones_and_come_back(kernel: Kernels, case: tuple[list[int], int]) -> None:
    indices, units = case
    section = kernel.rice_write(tensor(indices, units), units)
    assert section.dtype == torch.uint8
    assert as_bytes(section) == oracle.rice(indices)
    assert outcome(kernel.rice_read, as_bytes(section), len(indices), units) == indices


@each_kernel
@given(case=index_lists())
@example(case=([], 0))
@example(case=([7], 8))
@example(case=([8], 9))
def test_bitmap_bytes_are_the_specified_ones_and_come_back(kernel: Kernels, case: tuple[list[int], int]) -> None:
    indices, units = case
    section = kernel.bitmap_write(tensor(indices, units), units)
    assert section.dtype == torch.uint8
    assert as_bytes(section) == oracle.bitmap(indices, units)
    assert outcome(kernel.bitmap_read, as_bytes(section), len(indices), units) == indices


@each_kernel
@pytest.mark.parametrize("index_type", [torch.int32, torch.int64], ids=str)
def test_both_index_types_write_the_same_bytes(kernel: Kernels, index_type: torch.dtype) -> None:
    indices = torch.tensor([3, 4, 90], dtype=index_type)
    assert as_bytes(kernel.rice_write(indices, 100)) == oracle.rice([3, 4, 90])
    assert as_bytes(kernel.bitmap_write(indices, 100)) == oracle.bitmap([3, 4, 90], 100)


@functools.cache
def uniform_indices(units: int, count: int) -> Tensor:
    generator = torch.Generator().manual_seed(count)
    return torch.randperm(units, generator=generator)[:count].sort().values.to(index_dtype(units))


@each_kernel
@pytest.mark.parametrize("density", [0.001, 0.01, 0.1])
def test_rice_comes_close_to_the_entropy_of_random_indices(kernel: Kernels, density: float) -> None:
    units = 1_000_003
    indices = uniform_indices(units, round(density * units))
    section = kernel.rice_write(indices, units)
    bound = oracle.entropy_bytes(units, indices.numel())
    assert bound <= section.numel() <= 1.08 * bound
    assert torch.equal(kernel.rice_read(section, indices.numel(), units), indices)


@each_kernel
@pytest.mark.parametrize("density", [0.001, 0.1, 0.5, 1.0])
def test_long_bitmaps_come_back(kernel: Kernels, density: float) -> None:
    units = 1_000_003
    indices = uniform_indices(units, round(density * units))
    section = kernel.bitmap_write(indices, units)
    assert section.numel() == math.ceil(units / 8)
    assert torch.equal(kernel.bitmap_read(section, indices.numel(), units), indices)


@pytest.mark.skipif(len(NAMES) < 2, reason="only one implementation is available here")
@pytest.mark.parametrize("density", [0.0003, 0.013, 0.2, 0.97])
def test_all_implementations_write_the_same_long_sections(density: float) -> None:
    units = 300_007
    indices = uniform_indices(units, round(density * units))
    every = [kernels.implementation(name) for name in NAMES]
    assert len({as_bytes(kernel.rice_write(indices, units)) for kernel in every}) == 1
    assert len({as_bytes(kernel.bitmap_write(indices, units)) for kernel in every}) == 1


@each_kernel
@pytest.mark.parametrize(
    ("data", "count", "units", "reason"),
    [
        pytest.param(b"\x00", 0, 8, WireReason.COORDINATES, id="bytes for no indices"),
        pytest.param(b"", 1, 8, WireReason.COORDINATES, id="no bytes for an index"),
        pytest.param(b"\x29\x01", 1, 8, WireReason.COORDINATES, id="parameter 41"),
        pytest.param(b"\xff" * 64, 1, 8, WireReason.COORDINATES, id="parameter 255"),
        pytest.param(b"\x08", 1, 8, WireReason.COORDINATES, id="low bits missing"),
        pytest.param(b"\x08\x00", 1, 8, WireReason.COORDINATES, id="unary missing"),
        pytest.param(b"\x00\x00", 1, 8, WireReason.COORDINATES, id="unary without an end"),
        pytest.param(b"\x00\x03", 1, 8, WireReason.COORDINATES, id="one number too many"),
        pytest.param(b"\x00\x01", 1000, 8, WireReason.COORDINATES, id="more indices than bits"),
        pytest.param(b"\x28" + b"\xff" * 9, 2**61, 2**40, WireReason.COORDINATES, id="count that wraps around"),
        pytest.param(b"\x04\x10\x01", 1, 99, WireReason.PADDING, id="behind the low bits"),
        pytest.param(b"\x00\x01\x00", 1, 99, WireReason.PADDING, id="a whole byte behind the unary numbers"),
        pytest.param(b"\x00\x80", 1, 7, WireReason.RANGE, id="just beyond the end"),
        pytest.param(b"\x00\x03", 2, 1, WireReason.RANGE, id="more indices than units"),
        pytest.param(b"\x28" + b"\xff" * 5 + b"\x80", 1, 2**40, WireReason.RANGE, id="far beyond the end"),
        pytest.param(b"\x28" + b"\0" * 5 + b"\0" * 2**21 + b"\1", 1, 2**40, WireReason.RANGE, id="gap that wraps"),
        pytest.param(b"\x00\x01", 1, 0, WireReason.RANGE, id="no units at all"),
    ],
)
def test_wrong_rice_bytes_are_refused_for_the_right_reason(
    kernel: Kernels, data: bytes, count: int, units: int, reason: WireReason
) -> None:
    assert outcome(kernel.rice_read, data, count, units) == reason


@each_kernel
@pytest.mark.parametrize(
    ("data", "count", "units", "reason"),
    [
        pytest.param(b"\x00", 0, 9, WireReason.COORDINATES, id="short"),
        pytest.param(b"\x00\x00\x00", 0, 9, WireReason.COORDINATES, id="long"),
        pytest.param(b"", 0, 2**40, WireReason.COORDINATES, id="missing"),
        pytest.param(b"\x00\x02", 1, 9, WireReason.PADDING, id="behind the last unit"),
        pytest.param(b"\x01\x00", 2, 9, WireReason.COORDINATES, id="fewer than counted"),
        pytest.param(b"\x03\x00", 1, 9, WireReason.COORDINATES, id="more than counted"),
        pytest.param(b"\xff", 9, 8, WireReason.COORDINATES, id="more counted than units"),
    ],
)
def test_wrong_bitmap_bytes_are_refused_for_the_right_reason(
    kernel: Kernels, data: bytes, count: int, units: int, reason: WireReason
) -> None:
    assert outcome(kernel.bitmap_read, data, count, units) == reason


@st.composite
def damaged(draw: st.DrawFn) -> tuple[str, bytes, int, int]:
    """A section, then cut, lengthened, bit-flipped or overwritten, and perhaps read with other numbers."""
    kind = draw(st.sampled_from(["rice", "bitmap"]))
    indices, units = draw(index_lists(max_units=150))
    data = bytearray(oracle.rice(indices) if kind == "rice" else oracle.bitmap(indices, units))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        match draw(st.sampled_from(["flip", "cut", "append", "insert", "write"])):
            case "flip" if data:
                data[at] ^= 1 << draw(st.integers(0, 7))
            case "write" if data:
                data[at] = draw(st.integers(0, 255))
            case "cut":
                del data[at:]
            case "insert":
                data[at:at] = draw(st.binary(min_size=1, max_size=9))
            case _:
                data += draw(st.binary(min_size=1, max_size=9))
    count = draw(st.one_of(st.just(len(indices)), st.integers(0, 200)))
    return kind, bytes(data), count, draw(st.one_of(st.just(units), st.integers(0, 200), st.just(2**40)))


@settings(max_examples=600)
@given(case=damaged())
def test_damaged_bytes_are_refused_or_a_valid_list_and_all_agree(case: tuple[str, bytes, int, int]) -> None:
    kind, data, count, units = case
    found = [outcome(getattr(kernels.implementation(name), f"{kind}_read"), data, count, units) for name in NAMES]
    assert all(each == found[0] for each in found)


@settings(max_examples=400)
@given(
    bits=st.integers(0, 45),
    body=st.binary(max_size=60),
    count=st.integers(0, 90),
    units=st.sampled_from([0, 1, 90, 5000, 2**31, 2**40]),
)
def test_random_rice_bytes_are_refused_or_a_valid_list_and_all_agree(
    bits: int, body: bytes, count: int, units: int
) -> None:
    data = struct.pack("B", bits) + body
    found = [outcome(kernels.implementation(name).rice_read, data, count, units) for name in NAMES]
    assert all(each == found[0] for each in found)


@each_kernel
def test_sections_are_read_from_any_offset(kernel: Kernels) -> None:
    """A section lies somewhere inside a message, at no particular alignment."""
    indices = [5, 6, 77, 1000]
    for lead in range(9):
        message = as_tensor(b"\xff" * lead + oracle.rice(indices))
        assert kernel.rice_read(message[lead:], 4, 1001).tolist() == indices
        message = as_tensor(b"\xff" * lead + oracle.bitmap(indices, 1001))
        assert kernel.bitmap_read(message[lead:], 4, 1001).tolist() == indices


@st.composite
def memberships(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """A sorted list of members, and some of them."""
    units = draw(st.sampled_from([100, 2**31 - 1, 2**40]))
    members = sorted(draw(st.sets(st.integers(0, units - 1), max_size=90)))
    chosen = sorted(draw(st.sets(st.sampled_from(members)))) if members else []
    return members, chosen


@each_kernel
@given(case=memberships())
@example(case=([], []))
@example(case=(list(range(0, 120, 3)), list(range(0, 120, 6))))
def test_members_are_written_as_their_places_and_come_back(kernel: Kernels, case: tuple[list[int], list[int]]) -> None:
    members, chosen = case
    for dtype in (torch.int32, torch.int64):
        if members and members[-1] > torch.iinfo(dtype).max:
            continue
        known = torch.tensor(members, dtype=dtype)
        data = kernel.bitmap_of_members_write(torch.tensor(chosen, dtype=dtype), known)
        assert as_bytes(data) == oracle.bitmap([members.index(index) for index in chosen], len(members))
        found = kernel.bitmap_of_members_read(data, len(chosen), known)
        assert (found.dtype, found.tolist()) == (dtype, chosen)


@each_kernel
@given(case=memberships(), stranger=st.integers(0, 200))
def test_an_index_that_is_no_member_is_refused(
    kernel: Kernels, case: tuple[list[int], list[int]], stranger: int
) -> None:
    members, chosen = case
    if stranger in members:
        return
    with pytest.raises(IndexError, match="none of the"):
        kernel.bitmap_of_members_write(torch.tensor(sorted([*chosen, stranger])), torch.tensor(members))


@settings(max_examples=300)
@given(case=memberships(), data=st.binary(max_size=14), count=st.integers(0, 99))
def test_any_bytes_are_some_members_or_refused_and_all_agree(
    case: tuple[list[int], list[int]], data: bytes, count: int
) -> None:
    members = torch.tensor(case[0], dtype=torch.int64)
    found: list[Outcome] = []
    for name in NAMES:
        try:
            indices = kernels.implementation(name).bitmap_of_members_read(as_tensor(data), count, members).tolist()
            assert len(indices) == count
            assert set(indices) <= set(case[0])
            found.append(indices)
        except WireError as error:
            found.append(error.reason)
    assert all(each == found[0] for each in found)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("density", [0.9, 0.3, 0.05, 0.001])
def test_long_lists_have_the_same_bytes_everywhere_and_come_back(density: float, dtype: torch.dtype) -> None:
    """Whole registers and words, where short lists take the careful way to the end."""
    units = 40_000
    chosen = torch.rand(units, generator=torch.Generator().manual_seed(int(1000 * density))) < density
    indices = torch.nonzero(chosen).squeeze(1).to(dtype)
    members = torch.nonzero(chosen | (torch.arange(units) % 3 == 0)).squeeze(1).to(dtype)
    reference = kernels.implementation("reference")
    for kernel in map(kernels.implementation, NAMES):
        rice, bitmap = kernel.rice_write(indices, units), kernel.bitmap_write(indices, units)
        mine = kernel.bitmap_of_members_write(indices, members)
        assert torch.equal(rice, reference.rice_write(indices, units))
        assert torch.equal(bitmap, reference.bitmap_write(indices, units))
        assert torch.equal(mine, reference.bitmap_of_members_write(indices, members))
        narrow = indices.to(torch.int32)
        assert torch.equal(kernel.rice_read(rice, len(indices), units), narrow)
        assert torch.equal(kernel.bitmap_read(bitmap, len(indices), units), narrow)
        assert torch.equal(kernel.bitmap_of_members_read(mine, len(indices), members), indices)
        # The type of what is read follows the number of units, so this reads the same bytes as wide numbers.
        assert torch.equal(kernel.rice_read(rice, len(indices), 2**40), indices.to(torch.int64))


@each_kernel
@pytest.mark.parametrize("indices", [[5, 3], [3, 3], [200, 3, 70], [64, 0]])
def test_a_bitmap_takes_indices_in_any_order(kernel: Kernels, indices: list[int]) -> None:
    assert as_bytes(kernel.bitmap_write(torch.tensor(indices), 201)) == oracle.bitmap(indices, 201)
