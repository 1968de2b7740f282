"""Right messages and records, damaged in every way, thousands at a time.

Damage is done to whole batches with numpy, because a million messages have to be damaged within seconds. Everything
follows from one seed.
"""

import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from thinwire.codecs import CODECS, Delta, IndexValue
from thinwire.message import HEADER, Expected, Kind, encode
from thinwire.protocols import Codec
from thinwire.roll_call import SIZE, Record, What
from thinwire.types import Selection, Turn, ValueFormat, index_dtype, unit_count

Bytes = NDArray[np.uint8]
Numbers = NDArray[np.int64]

ROOM = 384
"""Bytes of the longest message, damaged ones included."""


@dataclass(frozen=True)
class Awaited:
    """What the reader of a message knows."""

    expected: Expected
    kind: Kind
    known: Selection | None


@dataclass(frozen=True)
class Stock:
    """Right messages (or records), one in each row, and what is known about their layout."""

    rows: Bytes
    lengths: Numbers
    fields: Sequence[tuple[int, int]]
    """Offset and size of each field of the header."""
    head: int
    seal: Callable[[Bytes], None]
    """Repairs the checksum."""
    awaited: Sequence[Awaited] = ()
    itemsizes: Numbers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Bytes of one unit's values."""

    @staticmethod
    def of(messages: Sequence[bytes], **layout: Any) -> "Stock":
        """Put them into rows."""
        rows = np.zeros((len(messages), ROOM), dtype=np.uint8)
        for row, message in zip(rows, messages, strict=True):
            row[: len(message)] = np.frombuffer(message, dtype=np.uint8)
        return Stock(rows, np.array([len(message) for message in messages]), **layout)


@dataclass
class Batch:
    """Some of the stock, being damaged."""

    stock: Stock
    random: np.random.Generator
    rows: Bytes
    lengths: Numbers
    origin: Numbers
    """Which of the stock each row was."""
    numels: Numbers
    """The number of elements that the reader awaits; -1 for that of the original."""
    sealed: NDArray[np.bool_]
    """Whose checksum is repaired."""

    def finished(self) -> Iterator[tuple[Bytes, int, int, bool]]:
        """The messages one after the other: the bytes, where they come from, the awaited elements, whether sealed."""
        numbers = (self.lengths.tolist(), self.origin.tolist(), self.numels.tolist(), self.sealed.tolist())
        for row, length, origin, numel, sealed in zip(self.rows, *numbers, strict=True):
            data = row[:length]
            if sealed:
                self.stock.seal(data)
            yield data, origin, numel, sealed

    def below(self, limits: Numbers) -> Numbers:
        """For each limit a number from 0 to below it."""
        drawn: Numbers = (self.random.random(len(limits)) * limits).astype(np.int64)
        return drawn


def damaged(stock: Stock, seed: Sequence[int], size: int) -> Batch:
    """A batch of damaged messages; three in five get a right checksum again."""
    random = np.random.default_rng(list(seed))
    origin = random.integers(len(stock.lengths), size=size)
    batch = Batch(
        stock,
        random,
        rows=stock.rows[origin],
        lengths=stock.lengths[origin],
        origin=origin,
        numels=np.full(size, -1),
        sealed=random.random(size) < 0.6,
    )
    ways = random.choice(len(WAYS), p=[share for _, share in WAYS], size=size)
    for number, (way, _) in enumerate(WAYS):
        way(batch, np.flatnonzero(ways == number))
    flip(batch, np.flatnonzero(random.random(size) < 0.2))
    # Some damage changes nothing: a field set to what it was, a message spliced with itself.
    same = (batch.lengths == stock.lengths[origin]) & (batch.rows == stock.rows[origin]).all(axis=1)
    flip(batch, np.flatnonzero(same & (batch.numels < 0)))
    return batch


def flip(batch: Batch, chosen: Numbers) -> None:
    """Flip one bit or more, in up to four bytes, mostly behind the header."""
    for turn in range(4):
        part = chosen[(batch.random.random(len(chosen)) < 0.5**turn) & (batch.lengths[chosen] > 0)]
        lengths = batch.lengths[part]
        starts = np.where((batch.random.random(len(part)) < 0.6) & (lengths > batch.stock.head), batch.stock.head, 0)
        one = 1 << batch.random.integers(8, size=len(part))
        mask = np.where(batch.random.random(len(part)) < 0.7, one, batch.random.integers(1, 256, size=len(part)))
        batch.rows[part, starts + batch.below(lengths - starts)] ^= mask.astype(np.uint8)


def overwrite(batch: Batch, chosen: Numbers) -> None:
    """Write a few bytes that mean something special: infinities, NaN, zeros, ones."""
    part = chosen[batch.lengths[chosen] >= batch.stock.head + 4]
    at = batch.stock.head + batch.below(batch.lengths[part] - batch.stock.head - 3)
    patterns = np.array([0x7F800000, 0x7FC00000, 0xFF800001, 0x80000000, 0, 0xFFFFFFFF, 0x7C007F80, 1], dtype="<u4")
    drawn = patterns[batch.random.integers(len(patterns), size=len(part))].view(np.uint8).reshape(-1, 4)
    batch.rows[part[:, None], at[:, None] + np.arange(4)] = drawn


def cut(batch: Batch, chosen: Numbers) -> None:
    """Cut off a little, or a lot."""
    little = np.maximum(batch.lengths[chosen] - batch.random.integers(1, 10, size=len(chosen)), 0)
    a_lot = batch.below(batch.lengths[chosen])
    batch.lengths[chosen] = np.where(batch.random.random(len(chosen)) < 0.5, little, a_lot)


def lengthen(batch: Batch, chosen: Numbers) -> None:
    """Append zeros, or anything."""
    old = batch.lengths[chosen]
    new = np.minimum(old + batch.random.integers(1, 17, size=len(chosen)), ROOM)
    columns = np.arange(ROOM)
    added = (columns >= old[:, None]) & (columns < new[:, None]) & (batch.random.random((len(chosen), 1)) < 0.5)
    anything = batch.random.integers(256, size=added.shape, dtype=np.uint8)
    batch.rows[chosen] = np.where(added, anything, batch.rows[chosen])
    batch.lengths[chosen] = new


def splice(batch: Batch, chosen: Numbers) -> None:
    """The beginning of one message and the end of another, or the same."""
    other = batch.random.integers(len(batch.stock.lengths), size=len(chosen))
    other = np.where(batch.random.random(len(chosen)) < 0.3, batch.origin[chosen], other)
    first = batch.below(batch.lengths[chosen] + 1)
    fitting = np.minimum(first, batch.stock.lengths[other])
    anywhere = batch.below(batch.stock.lengths[other] + 1)
    second = np.where(batch.random.random(len(chosen)) < 0.5, fitting, anywhere)
    columns = np.arange(ROOM)
    sources = np.clip(columns - first[:, None] + second[:, None], 0, ROOM - 1)
    tail = np.take_along_axis(batch.stock.rows[other], sources, axis=1)
    batch.rows[chosen] = np.where(columns < first[:, None], batch.rows[chosen], tail)
    batch.lengths[chosen] = np.minimum(first + batch.stock.lengths[other] - second, ROOM)


_TELLING = np.array(
    [0, 1, 2, 3, 4, 5, 7, 8, 9, 64, 255, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**39, 2**40, 2**63, 2**64 - 1],
    dtype=np.uint64,
)


def tweak(batch: Batch, chosen: Numbers) -> None:
    """Change one field of the header: a little more or less, or a number at some limit."""
    which = batch.random.integers(len(batch.stock.fields), size=len(chosen))
    for number, (offset, size) in enumerate(batch.stock.fields):
        part = chosen[which == number]
        wide = np.zeros((len(part), 8), dtype=np.uint8)
        wide[:, :size] = batch.rows[part, offset : offset + size]
        old = wide.view("<u8")[:, 0]
        near = old + batch.random.integers(-3, 4, size=len(part)).astype(np.uint64)
        telling = _TELLING[batch.random.integers(len(_TELLING), size=len(part))]
        new = np.where(batch.random.random(len(part)) < 0.4, near, telling)
        batch.rows[part, offset : offset + size] = new.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :size]


def regroup(batch: Batch, chosen: Numbers) -> None:
    """Count other units, and move the border between coordinates and values so that all lengths still fit."""
    if not len(batch.stock.itemsizes):
        tweak(batch, chosen)
        return
    counts = _read(batch, chosen, 20)
    change = np.where(batch.random.random(len(chosen)) < 0.5, -1, 1) * batch.random.integers(1, 4, size=len(chosen))
    _write(batch, chosen, 20, counts + change)
    _write(batch, chosen, 28, _read(batch, chosen, 28) - change * batch.stock.itemsizes[batch.origin[chosen]])


def agree(batch: Batch, chosen: Numbers) -> None:
    """The reader awaits another number of elements, and so says the message."""
    if not batch.stock.awaited:
        tweak(batch, chosen)
        return
    telling = np.array([0, 1, 2**31 - 1, 2**31, 2**39, 2**40])
    drawn = telling[batch.random.integers(len(telling), size=len(chosen))]
    few = batch.random.integers(130, size=len(chosen))
    near = np.clip(_read(batch, chosen, 12) + batch.random.integers(-9, 10, size=len(chosen)), 0, 2**40)
    kind = batch.random.integers(3, size=len(chosen))
    batch.numels[chosen] = np.where(kind == 0, drawn, np.where(kind == 1, few, near))
    _write(batch, chosen, 12, batch.numels[chosen])


def _read(batch: Batch, chosen: Numbers, offset: int) -> Numbers:
    """A number of 64 bits from each header."""
    return np.ascontiguousarray(batch.rows[chosen, offset : offset + 8]).view("<i8")[:, 0]


def _write(batch: Batch, chosen: Numbers, offset: int, numbers: Numbers) -> None:
    """A number of 64 bits into each header."""
    batch.rows[chosen, offset : offset + 8] = numbers.astype("<i8").view(np.uint8).reshape(-1, 8)


WAYS: Sequence[tuple[Callable[[Batch, Numbers], None], float]] = [
    (flip, 0.26),
    (overwrite, 0.12),
    (cut, 0.08),
    (lengthen, 0.08),
    (splice, 0.14),
    (tweak, 0.14),
    (regroup, 0.08),
    (agree, 0.10),
]


def messages(seed: int) -> Stock:
    """Small messages of every codec, value format and kind, about tensors of all sizes."""
    random = np.random.default_rng(seed)
    written, awaited, itemsizes = [], [], []
    for codec in (part() for part in CODECS.values()):
        for format in ValueFormat:
            for kind in Kind:
                for _ in range(10):
                    selection, turn = _selection(random, format, codec), _turn(random)
                    written.append(encode(selection, codec, turn, kind=kind).numpy().tobytes())
                    known = selection if kind is Kind.VALUES else None
                    awaited.append(Awaited(_expected(selection, turn), kind, known))
                    itemsizes.append(0 if kind is Kind.COORDINATES else selection.width * format.bits // 8)
    sizes = [struct.calcsize("<" + code) for code in ("4s", *HEADER.format.removeprefix("<4s"))]
    fields = [(sum(sizes[:number]), size) for number, size in enumerate(sizes)]
    return Stock.of(
        written, fields=fields, head=HEADER.size, seal=_seal_message, awaited=awaited, itemsizes=np.array(itemsizes)
    )


def _selection(random: np.random.Generator, format: ValueFormat, codec: Codec) -> Selection:
    full = codec.full_only
    width = int(random.choice([1, 1, 1, 2, 5]))  # short messages, and most damage hits something that matters
    numel = int(random.integers(0, 25 if full else 90))
    if isinstance(codec, Delta | IndexValue) and random.random() < 0.1:
        numel, width = int(random.choice([2**31 - 1, 2**31, 2**40])), 1
    units = unit_count(numel, width)
    count = units if full else int(random.integers(0, min(units, 14 // width) + 1))
    chosen = np.unique(random.integers(0, units, size=count)) if units > 1000 else random.permutation(units)[:count]
    indices = torch.from_numpy(np.sort(chosen)).to(index_dtype(units))
    double = format is ValueFormat.F64 or random.random() < 0.2
    steps = torch.from_numpy(random.integers(-127, 128, size=indices.numel() * width))
    steps = steps.to(torch.float64 if double else torch.float32)
    if indices.numel() and int(indices[-1]) == units - 1:
        steps[steps.numel() - (units * width - numel) :] = 0
    scale = float(2.0 ** random.integers(-10, 10)) if format is ValueFormat.INT8 else 1.0
    if format.levels:
        levels = torch.from_numpy(np.append(0, np.sort(random.integers(0, 256, size=format.levels - 1)))).to(steps)
        values = torch.copysign(levels[steps.abs().long() % format.levels], steps)
        return Selection(None if full else indices, values, numel, width, format=format, levels=levels)
    return Selection(None if full else indices, steps * scale, numel, width, format=format, scale=scale)


def _expected(selection: Selection, turn: Turn) -> Expected:
    return Expected(numel=selection.numel, width=selection.width, dtype=selection.values.dtype, turn=turn)


def _turn(random: np.random.Generator) -> Turn:
    step, group, generation = (int(random.integers(0, limit)) for limit in (2**40, 50, 4))
    return Turn(step=step, group=group, rank=0, world=2, generation=generation)


def _seal_message(data: Bytes) -> None:
    if len(data) >= HEADER.size:
        raw = data.data
        struct.pack_into("<I", raw, 56, zlib.crc32(raw[60:], zlib.crc32(raw[:56])))


def records(seed: int) -> Stock:
    """Records of every purpose, with and without flags."""
    random = np.random.default_rng(seed)
    written = []
    for what in What:
        for flags in range(8):
            rank, group, letter = (int(number) for number in random.integers(0, 2**20, size=3))
            written.append(
                Record(
                    what=what, world=4, generation=1, step=rank**2, group=group, numel=letter * 7, dtype=flags % 4,
                    layout=random.bytes(8), plan=random.bytes(8), loss_scale=2.0**flags, coordinates=rank, rank=rank,
                    letter=letter, overflow=bool(flags & 1), owing=bool(flags & 2),
                    failure="no memory" if flags & 4 else "", weight=0.0 if flags & 4 else 1.5 * rank,
                ).pack()
            )  # fmt: skip
    sizes = [4, 1, 1, 1, 1, 4, 4, 4, 8, 4, 8, 8, 8, 8, 4, 8, 48, 4]
    fields = [(sum(sizes[:number]), min(size, 8)) for number, size in enumerate(sizes)]
    return Stock.of(written, fields=fields, head=4, seal=_seal_record)


def _seal_record(data: Bytes) -> None:
    if len(data) >= SIZE:
        raw = data.data
        struct.pack_into("<I", raw, len(data) - 4, zlib.crc32(raw[:-4]))
