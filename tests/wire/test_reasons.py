"""Every way in which a message can be wrong, each with a right checksum, so that the check behind it is what is tested.

The plain reader must give the same reason for the same bytes.
"""

import math
import struct
from dataclasses import dataclass

import pytest
import torch

from tests.wire import plain
from tests.wire.forge import Forged, Reader, each_kernel, said_by, using
from thinwire.errors import SyncError, WireError, WireReason
from thinwire.kernels import Kernels
from thinwire.message import Kind
from thinwire.types import Selection

DENSE, INDEX_VALUE, BITMAP, DELTA, CHEAPEST = range(5)


def i32(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}i", *numbers)


def i64(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}q", *numbers)


def f32(*numbers: float) -> bytes:
    return struct.pack(f"<{len(numbers)}f", *numbers)


def f64(*numbers: float) -> bytes:
    return struct.pack(f"<{len(numbers)}d", *numbers)


# Units 1, 4 and 9 of 10, each with a value, by every codec.
VALUES_3 = f32(1, -2, 3)
INDEXED = Forged(codec=INDEX_VALUE, coordinates=i32(1, 4, 9), values=VALUES_3)
MAPPED = INDEXED.but(codec=BITMAP, coordinates=bytes([0b00010010, 0b10]))
# The gaps are 1, 2 and 4; with one low bit: 1 0 0, and quotients 0, 1 and 2.
DELTAS = INDEXED.but(codec=DELTA, coordinates=bytes([1, 0b001, 0b100101]))
NAMED = INDEXED.but(codec=CHEAPEST, coordinates=bytes([BITMAP]) + MAPPED.coordinates)
FULL = INDEXED.but(codec=DENSE, coordinates=b"", count=10, values=f32(*range(10)))
LETTER = INDEXED.but(kind=plain.COORDINATES, values=b"")
ANSWER = INDEXED.but(kind=plain.VALUES, codec=DENSE, coordinates=b"")
STEPS = INDEXED.but(format=plain.INT8, values=bytes([1, 0xFE, 3]), scale=0.5)
# Two levels, 0.5 and 3: codes 1, 2 and 0, hence 3, -0.5 and 0.5. And eight levels.
PAIR = bytes([0, 0x3F, 0x40, 0x40])
CODED = INDEXED.but(format=plain.INT2, values=PAIR + bytes([0b001001]))
EIGHT = struct.pack("<8H", 0, 0x3F00, 0x3F80, 0x3F80, 0x4000, 0x4040, 0x4080, 0x4280)
FOURS = INDEXED.but(format=plain.INT4, values=EIGHT + bytes([0x9F, 0x02]))

PLAIN = Reader()
HEARS = Reader(kind=Kind.COORDINATES)
KNOWS = Reader(kind=Kind.VALUES, known=Selection(torch.tensor([1, 4, 9], dtype=torch.int32), torch.ones(3), 10))
EXACT = Reader(dtype=torch.float64)
# Units of four: the third one has two elements behind the end.
WIDE = Reader(width=4)
LAST_UNIT = Forged(width=4, count=2, coordinates=i32(0, 2), values=f32(1, 2, 3, 4, 5, 6, 0, 0))
# So many units that indices take 64 bits.
FAR = Reader(numel=2**40)
DISTANT = Forged(numel=2**40, coordinates=i64(0, 2**39, 2**40 - 1), values=VALUES_3)


@dataclass(frozen=True)
class Case:
    """Bytes that are wrong in one way."""

    name: str
    reason: WireReason
    data: bytes
    reader: Reader = PLAIN

    @property
    def param(self) -> object:
        return pytest.param(self, id=f"{self.reason.name}: {self.name}")


R = WireReason
CASES = [
    Case("nothing", R.TRUNCATED, b""),
    Case("half a header", R.TRUNCATED, INDEXED.data[:30]),
    Case("a header without its last byte", R.TRUNCATED, INDEXED.data[:59]),
    Case("a value too few", R.TRUNCATED, INDEXED.but(values=f32(1, 2)).data),
    Case("a byte too few", R.TRUNCATED, INDEXED.but(values=VALUES_3[:-1]).data),
    Case("no values", R.TRUNCATED, INDEXED.but(values=b"").data),
    Case("a section longer than the message", R.TRUNCATED, INDEXED.but(section=1 << 39).data),
    Case("a section of 2**64 - 1 bytes", R.TRUNCATED, INDEXED.but(section=2**64 - 1).data),
    Case("a section that swallows the values", R.TRUNCATED, INDEXED.but(section=24).data),
    Case("values known to all missing", R.TRUNCATED, ANSWER.but(values=b"").data, KNOWS),
    Case("a longer format than the values have", R.TRUNCATED, INDEXED.but(format=plain.F64).data, EXACT),
    Case("a value too many", R.TRAILING, INDEXED.but(values=VALUES_3 + f32(4)).data),
    Case("a byte too many", R.TRAILING, INDEXED.but(values=VALUES_3 + b"\0").data),
    Case("a hole between the sections", R.TRAILING, INDEXED.but(section=8).data),
    Case("values with coordinates only", R.TRAILING, LETTER.but(values=VALUES_3).data, HEARS),
    Case("a narrower format than the values have", R.TRAILING, INDEXED.but(format=plain.BF16).data),
    Case("zeros", R.MAGIC, bytes(100)),
    Case("another magic number", R.MAGIC, INDEXED.but(magic=b"TWR1").data),
    Case("the magic number of a later format", R.MAGIC, INDEXED.but(magic=b"TWM2").data),
    Case("the bytes of the magic number turned around", R.MAGIC, INDEXED.but(magic=b"1MWT").data),
    Case("version 0", R.VERSION, INDEXED.but(version=0).data),
    Case("version 2", R.VERSION, INDEXED.but(version=2).data),
    Case("version 255, whatever its checksum", R.VERSION, INDEXED.but(version=255, checksum=1).data),
    Case("no checksum", R.CHECKSUM, INDEXED.but(checksum=0).data),
    Case("a flipped bit in the first byte of the body", R.CHECKSUM, INDEXED.data[:60] + b"\0" + INDEXED.data[61:]),
    Case("a byte cut off", R.CHECKSUM, INDEXED.data[:-1]),
    Case("a byte appended", R.CHECKSUM, INDEXED.data + b"\0"),
    Case("a checksum over its own field too", R.CHECKSUM, INDEXED.but(checksum=0x12345678).data),
    Case("codec 5", R.CODEC, INDEXED.but(codec=5).data),
    Case("codec 255", R.CODEC, INDEXED.but(codec=255).data),
    Case("kind 3", R.CODEC, INDEXED.but(kind=3).data),
    Case("coordinates where a whole message was awaited", R.CODEC, LETTER.data),
    Case("a whole message where coordinates were awaited", R.CODEC, INDEXED.data, HEARS),
    Case("a whole message where values were awaited", R.CODEC, INDEXED.data, KNOWS),
    Case("values by a codec", R.CODEC, ANSWER.but(codec=DELTA).data, KNOWS),
    Case("the cheapest inside of the cheapest", R.CODEC,
         NAMED.but(coordinates=bytes([CHEAPEST, BITMAP]) + MAPPED.coordinates).data),
    Case("codec 255 inside of the cheapest", R.CODEC, NAMED.but(coordinates=b"\xff").data),
    Case("format 7", R.FORMAT, INDEXED.but(format=7).data),
    Case("format 255", R.FORMAT, INDEXED.but(format=255).data),
    Case("float64 for sums in float32", R.FORMAT, INDEXED.but(format=plain.F64, values=f64(1, 2, 3)).data),
    Case("another number of elements", R.SHAPE, INDEXED.but(numel=11).data),
    Case("no elements", R.SHAPE, INDEXED.but(numel=0).data),
    Case("2**64 - 1 elements", R.SHAPE, INDEXED.but(numel=2**64 - 1).data),
    Case("another width", R.SHAPE, INDEXED.but(width=2).data),
    Case("width 0", R.SHAPE, INDEXED.but(width=0).data),
    Case("another generation", R.TURN, INDEXED.but(generation=4).data),
    Case("the step before", R.TURN, INDEXED.but(step=5).data),
    Case("the step 2**64 - 1", R.TURN, INDEXED.but(step=2**64 - 1).data),
    Case("another group", R.TURN, INDEXED.but(group=8).data),
    Case("more units than there are", R.COUNT, INDEXED.but(count=11).data),
    Case("2**39 units", R.COUNT, INDEXED.but(count=2**39).data),
    Case("2**64 - 1 units", R.COUNT, INDEXED.but(count=2**64 - 1).data),
    Case("more units than fit into the width", R.COUNT, LAST_UNIT.but(count=4).data, WIDE),
    Case("dense, but for one unit", R.COUNT, FULL.but(count=9, values=f32(*range(9))).data),
    Case("named dense, but for seven units", R.COUNT, NAMED.but(coordinates=bytes([DENSE])).data),
    Case("dense and empty", R.COUNT, FULL.but(count=0, values=b"").data),
    Case("fewer values than known units", R.COUNT, ANSWER.but(count=2, values=f32(1, 2)).data, KNOWS),
    Case("more values than known units", R.COUNT, ANSWER.but(count=4, values=f32(1, 2, 3, 4)).data, KNOWS),
    Case("dense with coordinates", R.COORDINATES, FULL.but(coordinates=b"\0").data),
    Case("values with coordinates", R.COORDINATES, ANSWER.but(coordinates=i32(1, 4, 9)).data, KNOWS),
    Case("indices of 64 bits for few units", R.COORDINATES, INDEXED.but(coordinates=i64(1, 4, 9)).data),
    Case("indices of 32 bits for many units", R.COORDINATES, DISTANT.but(coordinates=i32(1, 4, 9)).data, FAR),
    Case("an index too few", R.COORDINATES, INDEXED.but(coordinates=i32(1, 4)).data),
    Case("an index too many", R.COORDINATES, LETTER.but(count=2).data, HEARS),
    Case("a bitmap too short", R.COORDINATES, MAPPED.but(coordinates=b"\x12").data),
    Case("a bitmap too long", R.COORDINATES, MAPPED.but(coordinates=b"\x12\x02\x00").data),
    Case("a bitmap with too few bits set", R.COORDINATES, MAPPED.but(coordinates=b"\x12\x00").data),
    Case("a bitmap with too many bits set", R.COORDINATES, MAPPED.but(coordinates=b"\x13\x02").data),
    Case("no codec is named", R.COORDINATES, NAMED.but(coordinates=b"").data),
    Case("no codec is named, for nothing", R.COORDINATES, NAMED.but(count=0, coordinates=b"", values=b"").data),
    Case("a named bitmap too long", R.COORDINATES, NAMED.but(coordinates=NAMED.coordinates + b"\0").data),
    Case("named Rice codes of nothing", R.COORDINATES, NAMED.but(count=0, coordinates=b"\3\0", values=b"").data),
    Case("Rice codes of nothing", R.COORDINATES, DELTAS.but(count=0, coordinates=b"\0", values=b"").data),
    Case("no Rice codes", R.COORDINATES, DELTAS.but(coordinates=b"").data),
    Case("Rice parameter 41", R.COORDINATES, DELTAS.but(coordinates=b"\x29" + bytes(16) + b"\7").data),
    Case("Rice parameter 255", R.COORDINATES, DELTAS.but(coordinates=b"\xff" + bytes(96) + b"\7").data),
    Case("low parts missing", R.COORDINATES, DELTAS.but(coordinates=b"\x09\0\0\0").data),
    Case("high parts missing", R.COORDINATES, DELTAS.but(coordinates=b"\x01\0").data),
    Case("a high part too few", R.COORDINATES, DELTAS.but(coordinates=b"\0\x03").data),
    Case("a high part too many", R.COORDINATES, DELTAS.but(coordinates=b"\0\x0f").data),
    Case("2**39 Rice codes without a bit", R.COORDINATES,
         DELTAS.but(kind=plain.COORDINATES, numel=2**40, count=2**39, coordinates=b"\0\1", values=b"").data,
         Reader(numel=2**40, kind=Kind.COORDINATES)),
    Case("indices that fall", R.ORDER, INDEXED.but(coordinates=i32(1, 9, 4)).data),
    Case("an index twice", R.ORDER, INDEXED.but(coordinates=i32(1, 4, 4)).data),
    Case("the first index twice", R.ORDER, INDEXED.but(coordinates=i32(0, 0, 4)).data),
    Case("a negative index in the middle", R.ORDER, INDEXED.but(coordinates=i32(1, -4, 9)).data),
    Case("a negative index at the end", R.ORDER, INDEXED.but(coordinates=i32(1, 4, -(2**31))).data),
    Case("wide indices that fall", R.ORDER, DISTANT.but(coordinates=i64(2**40 - 1, 5, 6)).data, FAR),
    Case("a negative index", R.RANGE, INDEXED.but(coordinates=i32(-1, 4, 9)).data),
    Case("all indices negative", R.RANGE, INDEXED.but(coordinates=i32(-3, -2, -1)).data),
    Case("an index just beyond the end", R.RANGE, INDEXED.but(coordinates=i32(1, 4, 10)).data),
    Case("an index far beyond the end", R.RANGE, INDEXED.but(coordinates=i32(1, 4, 2**31 - 1)).data),
    Case("an index beyond the end in the middle", R.RANGE, INDEXED.but(coordinates=i32(1, 10, 9)).data),
    Case("a unit that is an element", R.RANGE, LAST_UNIT.but(coordinates=i32(0, 9)).data, WIDE),
    Case("a wide index beyond the end", R.RANGE, DISTANT.but(coordinates=i64(0, 1, 2**40)).data, FAR),
    Case("the least wide index", R.RANGE, DISTANT.but(coordinates=i64(-(2**63), 1, 2)).data, FAR),
    Case("a gap just beyond the end", R.RANGE, DELTAS.but(coordinates=bytes([1, 0b101, 0b100101])).data),
    Case("a gap beyond the end", R.RANGE, DELTAS.but(coordinates=bytes([1, 0b001, 0b1000101])).data),
    Case("gaps whose sum wraps around", R.RANGE,
         DELTAS.but(numel=2**40, count=1, coordinates=b"\x28" + bytes(5 + 2**20) + b"\1", values=f32(1)).data, FAR),
    Case("a bit behind the last unit", R.PADDING, MAPPED.but(coordinates=b"\x12\x06").data),
    Case("the last bit of a bitmap", R.PADDING, MAPPED.but(coordinates=b"\x12\x80").data),
    Case("bits behind the low parts", R.PADDING, DELTAS.but(coordinates=bytes([1, 0b1001, 0b100101])).data),
    Case("a byte behind the high parts", R.PADDING, DELTAS.but(coordinates=bytes([1, 1, 0b100101, 0])).data),
    Case("a value behind the last element", R.PADDING, LAST_UNIT.but(values=f32(1, 2, 3, 4, 5, 6, 0, 7)).data, WIDE),
    Case("minus zero behind the last element", R.PADDING,
         LAST_UNIT.but(values=f32(1, 2, 3, 4, 5, 6, -0.0, 0)).data, WIDE),
    Case("a known unit's value behind the last element", R.PADDING,
         LAST_UNIT.but(kind=plain.VALUES, codec=DENSE, coordinates=b"", values=f32(1, 2, 3, 4, 5, 6, 0, 7)).data,
         Reader(width=4, kind=Kind.VALUES,
                known=Selection(torch.tensor([0, 2], dtype=torch.int32), torch.ones(8), 10, 4))),
    Case("a dense value behind the last element", R.PADDING,
         LAST_UNIT.but(codec=DENSE, coordinates=b"", count=3, values=f32(*range(12))).data, WIDE),
    Case("not a number", R.VALUE, INDEXED.but(values=f32(1, math.nan, 3)).data),
    Case("a signalling NaN", R.VALUE, INDEXED.but(values=f32(1, 2) + b"\x01\0\x80\x7f").data),
    Case("infinity", R.VALUE, INDEXED.but(values=f32(math.inf, 2, 3)).data),
    Case("minus infinity", R.VALUE, INDEXED.but(values=f32(1, 2, -math.inf)).data),
    Case("infinity in BF16", R.VALUE, INDEXED.but(format=plain.BF16, values=b"\0\0\0\0\x80\x7f").data),
    Case("not a number in BF16", R.VALUE, INDEXED.but(format=plain.BF16, values=b"\0\0\0\0\xc0\xff").data),
    Case("infinity in F16", R.VALUE, INDEXED.but(format=plain.F16, values=b"\0\0\0\0\x00\x7c").data),
    Case("not a number in F16", R.VALUE, INDEXED.but(format=plain.F16, values=b"\0\0\0\0\x01\x7c").data),
    Case("not a number in F64", R.VALUE, INDEXED.but(format=plain.F64, values=f64(1, 2, math.nan)).data, EXACT),
    Case("a known unit's value", R.VALUE, ANSWER.but(values=f32(1, math.nan, 3)).data, KNOWS),
    Case("a step of zero", R.VALUE, STEPS.but(scale=0.0).data),
    Case("a step of minus zero", R.VALUE, STEPS.but(scale=-0.0).data),
    Case("a negative step", R.VALUE, STEPS.but(scale=-0.5).data),
    Case("a step that is not a number", R.VALUE, STEPS.but(scale=math.nan).data),
    Case("an infinite step", R.VALUE, STEPS.but(scale=math.inf).data),
    Case("steps that add up to infinity", R.VALUE, STEPS.but(scale=2.0**127, values=bytes([1, 2, 3])).data),
    Case("an infinite step of coordinates", R.VALUE, LETTER.but(format=plain.INT8, scale=math.inf).data, HEARS),
    Case("a step where there are levels", R.VALUE, CODED.but(scale=0.5).data),
    Case("levels that fall", R.VALUE, CODED.but(values=PAIR[2:] + PAIR[:2] + bytes([1])).data),
    Case("an infinite level", R.VALUE, CODED.but(values=PAIR[:2] + bytes([0x80, 0x7F, 1])).data),
    Case("a level that is not a number", R.VALUE, CODED.but(values=PAIR[:2] + bytes([0xC0, 0x7F, 1])).data),
    Case("a negative level", R.VALUE, CODED.but(values=PAIR[:2] + bytes([0x40, 0xC0, 1])).data),
    Case("a level of minus zero", R.VALUE, CODED.but(values=bytes([0, 0x80]) + PAIR[2:] + bytes([1])).data),
    Case("one of eight levels that falls", R.VALUE, FOURS.but(values=EIGHT[:12] + EIGHT[:4] + bytes(2)).data),
    Case("bits behind the last code of two bits", R.PADDING, CODED.but(values=PAIR + bytes([0b1001001])).data),
    Case("bits behind the last code of four bits", R.PADDING, FOURS.but(values=EIGHT + bytes([0x9F, 0x12])).data),
    Case("a level where there must be zeros", R.PADDING,
         LAST_UNIT.but(format=plain.INT2, values=PAIR + bytes(2)).data, WIDE),
    Case("a sign where there must be zeros", R.PADDING,
         LAST_UNIT.but(format=plain.INT2, values=bytes(2) + PAIR[2:] + bytes([0, 0x80])).data, WIDE),
    Case("minus zero where there must be zeros", R.PADDING,
         LAST_UNIT.but(values=f32(1, 2, 3, 4, 5, 6, 0, -0.0)).data, WIDE),
    Case("a code too few", R.TRUNCATED, CODED.but(values=PAIR).data),
    Case("levels without values", R.TRAILING,
         CODED.but(count=0, coordinates=b"", values=PAIR).data),
    Case("a step where there are none", R.VALUE, INDEXED.but(scale=0.5).data),
]  # fmt: skip


def test_there_is_a_case_for_every_reason() -> None:
    assert {case.reason for case in CASES} == set(WireReason)


@each_kernel
@pytest.mark.parametrize("case", [case.param for case in CASES])
def test_wrong_bytes_are_refused_for_their_own_reason(kernel: Kernels, case: Case) -> None:
    with using(kernel), pytest.raises(WireError) as refused:
        case.reader.read(case.data)
    assert refused.value.reason is case.reason
    assert isinstance(refused.value, SyncError)
    assert case.reason.value in str(refused.value)


@pytest.mark.parametrize("case", [case.param for case in CASES])
def test_the_plain_reader_has_the_same_reason(case: Case) -> None:
    with pytest.raises(plain.Refused, match=f"^{case.reason.name}$"):
        case.reader.read_plainly(case.data)


@each_kernel
@pytest.mark.parametrize(
    ("forged", "reader"),
    [
        pytest.param(INDEXED, PLAIN, id="index-value"),
        pytest.param(MAPPED, PLAIN, id="bitmap"),
        pytest.param(DELTAS, PLAIN, id="delta"),
        pytest.param(FULL, PLAIN, id="dense"),
        pytest.param(NAMED, PLAIN, id="cheapest"),
        pytest.param(NAMED.but(coordinates=bytes([INDEX_VALUE]) + INDEXED.coordinates), PLAIN, id="not the cheapest"),
        pytest.param(LETTER, HEARS, id="coordinates"),
        pytest.param(ANSWER, KNOWS, id="values"),
        pytest.param(STEPS, PLAIN, id="int8"),
        pytest.param(CODED, PLAIN, id="int2"),
        pytest.param(CODED, EXACT, id="int2, summed in float64"),
        pytest.param(FOURS, PLAIN, id="int4"),
        pytest.param(FOURS, EXACT, id="int4, summed in float64"),
        pytest.param(STEPS, EXACT, id="int8, summed in float64"),
        pytest.param(INDEXED, EXACT, id="float32, summed in float64"),
        pytest.param(LAST_UNIT, WIDE, id="short last unit"),
        pytest.param(DISTANT, FAR, id="wide indices"),
        # Other ways of writing the same are right as well.
        pytest.param(DELTAS.but(coordinates=bytes([0, 0b00010010, 0b10])), PLAIN, id="parameter 0"),
        pytest.param(DELTAS.but(coordinates=b"\x28" + b"\1\0\0\0\0\2\0\0\0\0\4\0\0\0\0\7"), PLAIN, id="parameter 40"),
    ],
)
def test_the_messages_that_the_wrong_ones_are_made_of_are_right(
    kernel: Kernels, forged: Forged, reader: Reader
) -> None:
    with using(kernel):
        found = said_by(reader.read(forged.data))
    assert found == reader.read_plainly(forged.data)
    wanted = {1: (1, 4, 9), 4: (0, 2)}[forged.width] if forged is not FULL else tuple(range(10))
    assert found.indices == (wanted if forged.numel == 10 else (0, 2**39, 2**40 - 1))


@pytest.mark.parametrize("size", [1, 3, 8, 17, 64, 257])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_is_found_wherever_it_is(size: int, value: float) -> None:
    reader = Reader(numel=size)
    for at in range(size):
        values = [0.5] * size
        values[at] = value
        forged = Forged(codec=DENSE, numel=size, count=size, values=f32(*values))
        with pytest.raises(WireError) as refused:
            reader.read(forged.data)
        assert refused.value.reason is WireReason.VALUE


@each_kernel
@pytest.mark.parametrize(
    "forged",
    [INDEXED, MAPPED, DELTAS, NAMED, FULL, STEPS, CODED, FOURS],
    ids=["index", "bitmap", "delta", "cheapest", "dense", "int8", "int2", "int4"],
)
def test_no_flipped_bit_and_no_lost_or_added_byte_goes_unnoticed(kernel: Kernels, forged: Forged) -> None:
    """All of them, one after the other, and all pairs of neighbouring bits: without repairing the checksum."""
    data = forged.data
    altered = [data[:length] for length in range(len(data))] + [data + bytes(extra) for extra in range(1, 70)]
    for position in range(8 * len(data)):
        for mask in (1, 3):
            whole = int.from_bytes(data, "little") ^ mask << position
            altered.append(whole.to_bytes(len(data) + 1, "little")[: len(data)])
    with using(kernel):
        for bad in altered:
            if bad != data:
                with pytest.raises(WireError):
                    PLAIN.read(bad)
