"""What thinwire writes, the plain reader reads: the page is enough to write a second implementation from."""

import random
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.wire import plain
from tests.wire.forge import TURN, Reader, each_kernel, said_by, using
from tests.wire.samples import far_selections, selections
from thinwire.codecs import CODECS, Delta, IndexValue
from thinwire.kernels import Kernels
from thinwire.message import Kind, encode
from thinwire.protocols import Codec
from thinwire.types import Selection


def check(selection: Selection, codec: Codec) -> None:
    for kind in Kind:
        data = encode(selection, codec, TURN, kind=kind).numpy().tobytes()
        known = selection if kind is Kind.VALUES else None
        reader = Reader(
            numel=selection.numel, width=selection.width, dtype=selection.values.dtype, kind=kind, known=known
        )
        assert reader.read_plainly(data) == said_by(selection, values=kind is not Kind.COORDINATES)


@each_kernel
@pytest.mark.parametrize("codec", [part() for part in CODECS.values()], ids=list(CODECS))
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_the_plain_reader_reads_what_is_written(kernel: Kernels, codec: Codec, data: st.DataObject) -> None:
    with using(kernel):
        check(data.draw(selections(full=codec.full_only, max_numel=60)), codec)


@each_kernel
@pytest.mark.parametrize("codec", [Delta(), IndexValue()], ids=["delta", "index-value"])
@settings(max_examples=10, deadline=None)
@given(selection=far_selections())
def test_the_plain_reader_reads_what_is_written_about_enormous_tensors(
    kernel: Kernels, codec: Codec, selection: Selection
) -> None:
    with using(kernel):
        check(selection, codec)


def test_the_plain_checksum_is_the_one_of_zlib() -> None:
    assert plain.crc32(b"123456789") == 0xCBF43926
    for size in range(20):
        data = random.Random(size).randbytes(size)
        assert plain.crc32(data) == zlib.crc32(data)


@pytest.mark.parametrize(
    ("pattern", "format", "value"),
    [
        (0x3F800000, plain.F32, 1), (0x80000000, plain.F32, 0), (0x00000001, plain.F32, 2**-149),
        (0x7F7FFFFF, plain.F32, 2**128 - 2**104), (0x7F800000, plain.F32, None), (0xFFC00000, plain.F32, None),
        (0xC020, plain.BF16, -2.5), (0x3C01, plain.F16, 1 + 2**-10), (0x0001, plain.F16, 2**-24),
        (0x7BFF, plain.F16, 65504), (0x7FF0000000000000, plain.F64, None), (0x4059000000000000, plain.F64, 100),
    ],
)  # fmt: skip
def test_the_plain_numbers_are_those_of_ieee_754(pattern: int, format: int, value: float | None) -> None:
    assert plain.exact(pattern, format) == value
