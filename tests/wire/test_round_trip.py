"""What is written comes back bit for bit: every codec, value format and kind, on every kernel implementation."""

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.wire.forge import TURN, Reader, each_kernel, using
from tests.wire.samples import far_selections, selections
from thinwire.codecs import CODECS
from thinwire.kernels import Kernels
from thinwire.message import Kind, encode
from thinwire.protocols import Codec
from thinwire.types import Selection, ValueFormat, index_dtype

each_codec = pytest.mark.parametrize("codec", [part() for part in CODECS.values()], ids=list(CODECS))


def reader_of(selection: Selection, kind: Kind = Kind.WHOLE, known: Selection | None = None) -> Reader:
    return Reader(
        numel=selection.numel,
        width=selection.width,
        dtype=selection.values.dtype,
        turn=TURN,
        kind=kind,
        known=known,
    )


def as_bytes(message: Tensor) -> bytes:
    return message.numpy().tobytes()


def same_units(found: Selection, wanted: Selection) -> None:
    assert (found.numel, found.width, found.count) == (wanted.numel, wanted.width, wanted.count)
    assert found.indices.dtype == index_dtype(wanted.units)
    assert torch.equal(found.indices, wanted.indices)
    assert found.is_full == wanted.is_full


def same_values(found: Selection, wanted: Selection) -> None:
    assert found.values.dtype == wanted.values.dtype
    # As bytes: zeros have signs.
    plain = wanted.values.clone(memory_format=torch.contiguous_format)
    assert torch.equal(found.values.view(torch.uint8), plain.view(torch.uint8))
    assert (found.format, found.scale) == (wanted.format, wanted.scale)
    assert (found.levels is None) == (wanted.levels is None)
    if found.levels is not None and wanted.levels is not None:
        assert found.levels.tolist() == wanted.levels.tolist()


def check(selection: Selection, codec: Codec) -> None:
    """All three kinds of message."""
    whole = reader_of(selection).read(as_bytes(encode(selection, codec, TURN)))
    same_units(whole, selection)
    same_values(whole, selection)

    letter = as_bytes(encode(selection, codec, TURN, kind=Kind.COORDINATES))
    told = reader_of(selection, Kind.COORDINATES).read(letter)
    same_units(told, selection)
    assert told.values.numel() == 0

    letter = as_bytes(encode(selection, None, TURN, kind=Kind.VALUES))
    values = reader_of(selection, Kind.VALUES, known=selection).read(letter)
    same_units(values, selection)
    same_values(values, selection)


@each_kernel
@each_codec
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_selections_come_back(kernel: Kernels, codec: Codec, data: st.DataObject) -> None:
    with using(kernel):
        check(data.draw(selections(full=codec.full_only)), codec)


@each_kernel
@pytest.mark.parametrize("name", ["index-value", "delta"])
@settings(deadline=None)
@given(selection=far_selections())
@example(selection=Selection(torch.tensor([2**40 - 1]), torch.ones(1), 2**40))
@example(selection=Selection(torch.tensor([0, 2**40 - 1]), torch.ones(2), 2**40))
def test_selections_of_enormous_tensors_come_back(kernel: Kernels, name: str, selection: Selection) -> None:
    with using(kernel):
        check(selection, CODECS[name]())


@each_kernel
@each_codec
@pytest.mark.parametrize("format", list(ValueFormat), ids=lambda format: format.name)
@pytest.mark.parametrize("width", [1, 4])
def test_awkward_values_come_back(kernel: Kernels, codec: Codec, format: ValueFormat, width: int) -> None:
    """Every bit pattern of the narrow formats, and the ends of the wide ones, in a tensor with a short last unit."""
    levels = None
    if format is ValueFormat.INT8:
        scale = float(torch.tensor(0.37))
        values = torch.arange(-127, 128).float() * scale
    elif format.levels:
        scale = 1.0
        levels = torch.tensor([0.0, 2.0**-133, 2.0**-126, 0.75, 1.0, 1.0, 3.0, 2.0**127])[-format.levels :].clone()
        levels[0] = 0.0
        values = torch.cat([levels, -levels, levels.flip(0), levels[:1]])
    else:
        scale = 1.0
        whole = {8: torch.int8, 16: torch.int16, 32: torch.int32, 64: torch.int64}[format.bits]
        limits = torch.iinfo(whole)
        step = max(1, 2 ** (format.bits - 16))
        patterns = torch.arange(limits.min, limits.max - step + 1, step, dtype=torch.int64)
        near = torch.cat([patterns, patterns + 1, patterns - 1]) if step > 1 else patterns
        raw = near.clamp(limits.min, limits.max).to(whole).view(format.dtype)
        values = raw.to(torch.float64 if format is ValueFormat.F64 else torch.float32)
        values = values[torch.isfinite(values)]
    numel = values.numel()
    padded = torch.cat([values, torch.zeros(-numel % width, dtype=values.dtype)])
    with using(kernel):
        check(Selection(None, padded, numel, width, format=format, scale=scale, levels=levels), codec)


@pytest.mark.parametrize("value", [2.0**512, -1.7976931348623157e308])
@pytest.mark.parametrize("size", [1, 2, 40])
def test_the_largest_numbers_come_back(value: float, size: int) -> None:
    values = torch.zeros(size, dtype=torch.float64)
    values[size // 2] = value
    check(Selection(None, values, size), CODECS["dense"]())


@each_kernel
@each_codec
def test_nothing_and_everything_of_a_tensor_and_of_no_tensor_come_back(kernel: Kernels, codec: Codec) -> None:
    with using(kernel):
        for numel, width in [(0, 1), (0, 4), (1, 1), (10, 4), (64, 1)]:
            units = -(-numel // width)
            values = torch.zeros(units * width)
            values[:numel] = 1.5
            check(Selection(None, values, numel, width), codec)
            check(Selection(torch.arange(units, dtype=torch.int32), values, numel, width), codec)
            if not codec.full_only:
                check(Selection(torch.empty(0, dtype=torch.int32), torch.empty(0), numel, width), codec)


@each_kernel
@each_codec
def test_a_single_element_of_any_stride_comes_back(kernel: Kernels, codec: Codec) -> None:
    """Such as the gradient of a sum, which is one number shown as many."""
    indices = torch.zeros((), dtype=torch.int32).expand(1)
    values = torch.full((), 2.5).expand(1)
    assert values.stride() == (0,)
    with using(kernel):
        check(Selection(indices, values, 1), codec)


@each_kernel
@each_codec
def test_strided_values_and_indices_come_back(kernel: Kernels, codec: Codec) -> None:
    values = torch.arange(20.0)[::2]
    with using(kernel):
        check(Selection(torch.arange(20, dtype=torch.int32)[:10], values, 10), codec)
        if not codec.full_only:
            check(Selection(torch.arange(20, dtype=torch.int32)[::2], values, 20), codec)


@each_codec
def test_a_message_has_memory_of_its_own(codec: Codec) -> None:
    selection = Selection(None, torch.ones(6), 6)
    message = encode(selection, codec, TURN)
    selection.values.zero_()
    found = reader_of(selection).read(as_bytes(message))
    message.zero_()
    assert found.values.tolist() == [1.0] * 6


def test_indices_of_another_integer_type_are_written_alike() -> None:
    for codec in (part() for part in CODECS.values() if not part.full_only):
        narrow = Selection(torch.tensor([1, 5], dtype=torch.int32), torch.ones(2), 9)
        wide = Selection(torch.tensor([1, 5], dtype=torch.int64), torch.ones(2), 9)
        assert as_bytes(encode(narrow, codec, TURN)) == as_bytes(encode(wide, codec, TURN))
