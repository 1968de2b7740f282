"""Fixed bytes of one message for each codec, value format and kind, and of one record.

A change that makes one of these tests fail changes the wire format: it needs a new version, see docs/wire-format.md.
"""

from dataclasses import dataclass
from typing import Any

import pytest
import torch

from tests.wire.forge import TURN, Reader, each_kernel, said_by, using
from thinwire.codecs import BY_NUMBER, Bitmap, Cheapest, Delta, Dense, IndexValue
from thinwire.kernels import Kernels
from thinwire.message import Kind, encode
from thinwire.protocols import Codec
from thinwire.roll_call import Record, What
from thinwire.types import Selection, ValueFormat


def units(*indices: int, wide: bool = False) -> torch.Tensor:
    return torch.tensor(indices, dtype=torch.int64 if wide else torch.int32)


def numbers(*values: float, double: bool = False) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64 if double else torch.float32)


SOME = Selection(units(5, 19, 30, 44), numbers(1, -2.5, 0.5, -0.0), 50)


@dataclass(frozen=True)
class Golden:
    """A selection, how it is written, and the bytes: header, coordinates, values."""

    name: str
    selection: Selection
    codec: Codec
    hex: str
    kind: Kind = Kind.WHOLE


GOLDEN = [
    Golden(
        "dense",
        Selection(None, numbers(1, -2, 3), 3),
        Dense(),
        "54574d31 01 00 00 00 01000000 0300000000000000 "
        "0300000000000000 0000000000000000 0000803f "
        "05000000 0600000000000000 07000000 f2f157e9 "
        "0000803f000000c000004040 ",
    ),
    Golden(
        "index-value",
        SOME,
        IndexValue(),
        "54574d31 01 00 01 00 01000000 3200000000000000 "
        "0400000000000000 1000000000000000 0000803f "
        "05000000 0600000000000000 07000000 b98190b7 "
        "05000000130000001e0000002c000000 "
        "0000803f000020c00000003f00000080 ",
    ),
    Golden(
        "wide index-value",
        Selection(units(7, 2**33, wide=True), numbers(1, 2), 2**34),
        IndexValue(),
        "54574d31 01 00 01 00 01000000 0000000004000000 "
        "0200000000000000 1000000000000000 0000803f "
        "05000000 0600000000000000 07000000 1de280fd "
        "07000000000000000000000002000000 "
        "0000803f00000040 ",
    ),
    Golden(
        "bitmap",
        SOME,
        Bitmap(),
        "54574d31 01 00 02 00 01000000 3200000000000000 "
        "0400000000000000 0700000000000000 0000803f "
        "05000000 0600000000000000 07000000 a2191655 "
        "20000840001000 "
        "0000803f000020c00000003f00000080 ",
    ),
    Golden(
        "delta",
        SOME,
        Delta(),
        "54574d31 01 00 03 00 01000000 3200000000000000 "
        "0400000000000000 0400000000000000 0000803f "
        "05000000 0600000000000000 07000000 2dc48e8b "
        "03ad0a55 "
        "0000803f000020c00000003f00000080 ",
    ),
    Golden(
        "wide delta",
        Selection(units(7, 2**33, wide=True), numbers(1, 2), 2**34),
        Delta(),
        "54574d31 01 00 03 00 01000000 0000000004000000 "
        "0200000000000000 0a00000000000000 0000803f "
        "05000000 0600000000000000 07000000 002330b1 "
        "1f07000000fcffff3f11 "
        "0000803f00000040 ",
    ),
    Golden(
        "cheapest is delta",
        SOME,
        Cheapest(),
        "54574d31 01 00 04 00 01000000 3200000000000000 "
        "0400000000000000 0500000000000000 0000803f "
        "05000000 0600000000000000 07000000 8531e628 "
        "03 03ad0a55 "
        "0000803f000020c00000003f00000080 ",
    ),
    Golden(
        "cheapest is a bitmap",
        Selection(units(3, 4, 5, 7, 8), numbers(1, 2, 3, 4, 5), 10),
        Cheapest(),
        "54574d31 01 00 04 00 01000000 0a00000000000000 "
        "0500000000000000 0300000000000000 0000803f "
        "05000000 0600000000000000 07000000 d0a38d6f "
        "02 b801 "
        "0000803f0000004000004040000080400000a040 ",
    ),
    Golden(
        "cheapest is dense",
        Selection(None, numbers(1, -2, 3), 3),
        Cheapest(),
        "54574d31 01 00 04 00 01000000 0300000000000000 "
        "0300000000000000 0100000000000000 0000803f "
        "05000000 0600000000000000 07000000 cbc6dcf7 "
        "00 "
        "0000803f000000c000004040 ",
    ),
    Golden(
        "cheapest is an index",
        Selection(units(2**30 + 1), numbers(1), 2**31 - 1),
        Cheapest(),
        "54574d31 01 00 04 00 01000000 ffffff7f00000000 "
        "0100000000000000 0500000000000000 0000803f "
        "05000000 0600000000000000 07000000 5e85af8c "
        "01 01000040 "
        "0000803f ",
    ),
    Golden(
        "nothing",
        Selection(units(), numbers(), 50),
        Delta(),
        "54574d31 01 00 03 00 01000000 3200000000000000 "
        "0000000000000000 0000000000000000 0000803f "
        "05000000 0600000000000000 07000000 c3a9a423 ",
    ),
    Golden(
        "coordinates",
        SOME,
        Delta(),
        "54574d31 01 01 03 00 01000000 3200000000000000 "
        "0400000000000000 0400000000000000 0000803f "
        "05000000 0600000000000000 07000000 4d36ea5a "
        "03ad0a55 ",
        Kind.COORDINATES,
    ),
    Golden(
        "values",
        SOME,
        Delta(),
        "54574d31 01 02 00 00 01000000 3200000000000000 "
        "0400000000000000 0000000000000000 0000803f "
        "05000000 0600000000000000 07000000 4bb66ca3 "
        "0000803f000020c00000003f00000080 ",
        Kind.VALUES,
    ),
    Golden(
        "float64",
        SOME.with_values(SOME.values.double() / 3),
        Delta(),
        "54574d31 01 00 03 01 01000000 3200000000000000 "
        "0400000000000000 0400000000000000 0000803f "
        "05000000 0600000000000000 07000000 e776ebd5 "
        "03ad0a55 "
        "555555555555d53fabaaaaaaaaaaeabf555555555555c53f0000000000000080 ",
    ),
    Golden(
        "bfloat16",
        SOME.with_values(SOME.values, format=ValueFormat.BF16),
        Delta(),
        "54574d31 01 00 03 02 01000000 3200000000000000 "
        "0400000000000000 0400000000000000 0000803f "
        "05000000 0600000000000000 07000000 101b7a53 "
        "03ad0a55 "
        "803f20c0003f0080 ",
    ),
    Golden(
        "float16",
        SOME.with_values(SOME.values, format=ValueFormat.F16),
        Delta(),
        "54574d31 01 00 03 03 01000000 3200000000000000 "
        "0400000000000000 0400000000000000 0000803f "
        "05000000 0600000000000000 07000000 6bf3e773 "
        "03ad0a55 "
        "003c00c100380080 ",
    ),
    Golden(
        "int8",
        SOME.with_values(numbers(0.5, -63.5, 0, 1.5), format=ValueFormat.INT8, scale=0.5),
        Delta(),
        "54574d31 01 00 03 04 01000000 3200000000000000 "
        "0400000000000000 0400000000000000 0000003f "
        "05000000 0600000000000000 07000000 5ca693df "
        "03ad0a55 "
        "01810003 ",
    ),
    Golden(
        "int4",
        SOME.with_values(
            numbers(0.5, -64, -0.0, 3), format=ValueFormat.INT4, levels=numbers(0, 0.5, 1, 1.5, 2, 3, 4, 64)
        ),
        Delta(),
        "54574d31 01 00 03 05 01000000 3200000000000000 "
        "0400000000000000 0400000000000000 0000803f "
        "05000000 0600000000000000 07000000 2516e6e8 "
        "03ad0a55 "
        "0000003f803fc03f0040404080408042 f158 ",
    ),
    Golden(
        "int2",
        Selection(units(5, 19, 30, 44, 49), numbers(2.5, -2.5, 4, -4, 2.5), 50).with_values(
            numbers(2.5, -2.5, 4, -4, 2.5), format=ValueFormat.INT2, levels=numbers(2.5, 4)
        ),
        IndexValue(),
        "54574d31 01 00 01 06 01000000 3200000000000000 "
        "0500000000000000 1400000000000000 0000803f "
        "05000000 0600000000000000 07000000 103996cc "
        "05000000130000001e0000002c00000031000000 "
        "20408040 d800 ",
    ),
    Golden(
        "units of four",
        Selection(units(0, 2), numbers(1, 2, 3, 4, 5, 6, 0, 0), 10, 4),
        Bitmap(),
        "54574d31 01 00 02 00 04000000 0a00000000000000 "
        "0200000000000000 0100000000000000 0000803f "
        "05000000 0600000000000000 07000000 408967ae "
        "05 "
        "0000803f0000004000004040000080400000a0400000c0400000000000000000 ",
    ),
]

RECORD = (
    "54575231 01 03 07 01 02000000 04000000 05000000 "
    "0600000000000000 07000000 3200000000000000 "
    "6c61796f75742d38 7468652d706c616e 0000000000009040 "
    "04030201 4800000000000000 "
    "6e6f206d656d6f7279 " + "00" * 39 + "89d2268b"
)
WEIGHED = (
    "54575231 01 00 02 01 02000000 04000000 05000000 "
    "0600000000000000 07000000 3200000000000000 "
    "6c61796f75742d38 7468652d706c616e 0000000000009040 "
    "04030201 4800000000000000 "
    "000000000000f83f " + "00" * 40 + "945e4e90"
)


@each_kernel
@pytest.mark.parametrize("golden", [pytest.param(golden, id=golden.name) for golden in GOLDEN])
def test_selections_have_the_same_bytes_for_ever(kernel: Kernels, golden: Golden) -> None:
    with using(kernel):
        message = encode(golden.selection, golden.codec, TURN, kind=golden.kind)
    assert message.numpy().tobytes().hex() == golden.hex.replace(" ", "")


@each_kernel
@pytest.mark.parametrize("golden", [pytest.param(golden, id=golden.name) for golden in GOLDEN])
def test_the_same_bytes_mean_the_same_for_ever(kernel: Kernels, golden: Golden) -> None:
    selection, data = golden.selection, bytes.fromhex(golden.hex)
    known = selection if golden.kind is Kind.VALUES else None
    reader = Reader(
        numel=selection.numel, width=selection.width, dtype=selection.values.dtype, kind=golden.kind, known=known
    )
    with using(kernel):
        found = said_by(reader.read(data))
    assert found == said_by(selection, values=golden.kind is not Kind.COORDINATES)
    assert found == reader.read_plainly(data)


def test_every_codec_format_and_kind_has_its_bytes() -> None:
    assert {golden.codec.number for golden in GOLDEN} == set(BY_NUMBER)
    assert {golden.selection.format for golden in GOLDEN} == set(ValueFormat)
    assert {golden.kind for golden in GOLDEN} == set(Kind)


@pytest.mark.parametrize(
    ("changes", "bytes_of_it"),
    [
        ({"what": What.ROWS, "overflow": True, "owing": True, "failure": "no memory"}, RECORD),
        ({"what": What.GROUP, "overflow": False, "owing": True, "weight": 1.5}, WEIGHED),
    ],
)
def test_a_record_has_the_same_bytes_for_ever(changes: dict[str, Any], bytes_of_it: str) -> None:
    record = Record(
        world=4, generation=5, step=6, group=7, numel=50, layout=b"layout-8", plan=b"the-plan", loss_scale=1024.0,
        coordinates=0x01020304, dtype=1, rank=2, letter=72, **changes,
    )  # fmt: skip
    assert record.pack().hex() == bytes_of_it.replace(" ", "")
    assert Record.unpack(bytes.fromhex(bytes_of_it)) == record


def test_numbers_are_given_out_for_ever() -> None:
    assert {number: type(codec).__name__ for number, codec in BY_NUMBER.items()} == {
        0: "Dense", 1: "IndexValue", 2: "Bitmap", 3: "Delta", 4: "Cheapest",
    }  # fmt: skip
    assert {int(format): format.name for format in ValueFormat} == {
        0: "F32", 1: "F64", 2: "BF16", 3: "F16", 4: "INT8", 5: "INT4", 6: "INT2",
    }  # fmt: skip
    assert {int(kind): kind.name for kind in Kind} == {0: "WHOLE", 1: "COORDINATES", 2: "VALUES"}
    assert {int(what): what.name for what in What} == {0: "GROUP", 1: "VOTE", 2: "FLUSH", 3: "ROWS", 4: "BYSTANDER"}
