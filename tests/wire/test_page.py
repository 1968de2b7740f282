"""The page about the wire format is compared with the code: tables, reasons and examples cannot fall behind."""

import hashlib
import json
import re
import struct
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import NamedTuple

import torch

from thinwire.codecs import BY_NUMBER, Delta
from thinwire.errors import WireReason
from thinwire.layout import Layout
from thinwire.message import HEADER, Kind, encode
from thinwire.plans import Plan
from thinwire.roll_call import SIZE, Record, What
from thinwire.selectors import TopK
from thinwire.types import MAX_NUMEL, Selection, Turn, ValueFormat

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "wire-format.md").read_text()


def tables() -> dict[tuple[str, ...], list[list[str]]]:
    """The rows of all tables, by their column heads; of tables with the same heads, all rows."""
    found: dict[tuple[str, ...], list[list[str]]] = {}
    for block in re.findall(r"(?:^\|.*\n)+", PAGE, re.MULTILINE):
        rows = [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in block.splitlines()]
        found.setdefault(tuple(rows[0]), []).extend(rows[2:])
    return found


class Field(NamedTuple):
    """One row of a layout."""

    offset: int
    size: int
    type: str
    name: str

    def of(self, data: bytes) -> int | float | bytes:
        """What the bytes say."""
        raw = data[self.offset : self.offset + self.size]
        if self.type == "bytes":
            return raw
        value: int | float = struct.unpack(
            "<" + {"u8": "B", "u32": "I", "u64": "Q", "f32": "f", "f64": "d"}[self.type], raw
        )[0]
        return value


def layout(*heads: str) -> list[Field]:
    """A table of fields."""
    return [Field(int(row[0]), int(row[1]), row[2], row[3]) for row in tables()[heads]]


MESSAGE = layout("offset", "bytes", "type", "field", "meaning")
RECORD = layout("offset", "bytes", "type", "field", "must agree", "meaning")


def numbered(*heads: str) -> dict[int, list[str]]:
    """A table of numbers and what they stand for."""
    return {int(row[0]): row[1:] for row in tables()[heads]}


def example_message() -> bytes:
    indices = torch.tensor([5, 19, 30, 44], dtype=torch.int32)
    values = torch.tensor([1.0, -2.5, 0.5, 0.09375])
    selection = Selection(indices, values, 50, format=ValueFormat.BF16)
    return encode(selection, Delta(), Turn(step=7, group=2, rank=1, world=4)).numpy().tobytes()


def example_record() -> bytes:
    return Record(
        what=What.GROUP, world=4, generation=0, step=7, group=2, numel=50, layout=bytes.fromhex("1011121314151617"),
        plan=bytes.fromhex("2021222324252627"), rank=1, letter=72, owing=True,
    ).pack()  # fmt: skip


def dump(data: bytes, parts: Sequence[tuple[int, str, str]]) -> str:
    """Bytes in hex, at most eight in a line, each part with its name and what it says."""
    lines = []
    at = 0
    for size, name, meaning in parts:
        for start in range(at, at + size, 8):
            words = f"{name:<13} {meaning}" if start == at else ""
            lines.append(f"{start:3}  {data[start : min(start + 8, at + size)].hex(' '):<25} {words}".rstrip())
        at += size
    assert at == len(data)
    return "\n".join(lines) + "\n"


def shown(field: Field, data: bytes) -> str:
    value = field.of(data)
    if isinstance(value, bytes):
        return value.decode() if field.name == "magic" else ""
    return f"{value:08x}" if field.name == "checksum" else f"{value:g}" if isinstance(value, float) else str(value)


def test_fields_lie_where_the_page_says_and_leave_no_gap() -> None:
    for fields_, size in [(MESSAGE, HEADER.size), (RECORD, SIZE)]:
        assert [field.offset for field in fields_] == [sum(f.size for f in fields_[:i]) for i in range(len(fields_))]
        assert fields_[-1].offset + fields_[-1].size == size
    turn = Turn(step=2**40 + 1, group=2**20 + 2, rank=0, world=2, generation=2**20 + 3)
    values = torch.full((8,), 2.0)
    selection = Selection(torch.tensor([3, 5]), values, 301, 4, format=ValueFormat.INT8, scale=0.25)
    data = encode(selection, BY_NUMBER[1], turn).numpy().tobytes()
    found = {field.name: field.of(data) for field in MESSAGE}
    del found["checksum"]
    assert found == {
        "magic": b"TWM1", "version": 1, "kind": 0, "codec": 1, "format": 4, "width": 4, "numel": 301, "count": 2,
        "section": 8, "scale": 0.25, "generation": 2**20 + 3, "step": 2**40 + 1, "group": 2**20 + 2,
    }  # fmt: skip


def test_fields_of_a_record_lie_where_the_page_says() -> None:
    record = Record(
        what=What.FLUSH, world=2, generation=3, step=4, group=5, numel=6, layout=b"layout-7", plan=b"plan---8",
        loss_scale=9.5, coordinates=10, dtype=11, rank=12, letter=13, owing=True, overflow=True, failure="14",
    )  # fmt: skip
    found = {field.name: field.of(record.pack()) for field in RECORD}
    del found["checksum"]
    assert found == {
        "magic": b"TWR1", "version": 1, "what": 2, "flags": 7, "dtype": 11, "rank": 12, "world": 2, "generation": 3,
        "step": 4, "group": 5, "numel": 6, "layout": b"layout-7", "plan": b"plan---8", "loss_scale": 9.5,
        "coordinates": 10, "letter": 13, "failure": b"14" + bytes(46),
    }  # fmt: skip


def test_the_page_has_every_number() -> None:
    kinds = numbered("number", "kind", "coordinate section", "value section", "used for")
    assert {number: row[0] for number, row in kinds.items()} == {int(kind): kind.name for kind in Kind}
    formats = numbered("number", "format", "bits", "a value")
    assert {n: (row[0], int(row[1])) for n, row in formats.items()} == {int(f): (f.name, f.bits) for f in ValueFormat}
    codecs = numbered("number", "codec", "coordinate section")
    assert {n: row[0] for n, row in codecs.items()} == {n: type(codec).__name__ for n, codec in BY_NUMBER.items()}
    purposes = numbered("number", "purpose", "the exchange")
    assert {number: row[0] for number, row in purposes.items()} == {int(what): what.name for what in What}


def test_the_page_has_every_reason() -> None:
    found = [row[-1] for heads, rows in tables().items() if heads[-1] == "reason if not" for row in rows]
    assert set(found) - {""} == {reason.name for reason in WireReason}


def test_the_page_knows_which_fields_must_agree() -> None:
    rows = tables()["offset", "bytes", "type", "field", "must agree", "meaning"]
    marked = {row[3] for row in rows if row[4]}
    own = {"rank", "letter", "overflow", "owing", "failure", "weight"}  # see test_records for what they do
    assert marked == {field.name for field in fields(Record)} - own


def test_the_page_has_the_limits() -> None:
    assert MAX_NUMEL == 2**40
    limits = dict(tables()["what", "limit"])
    assert limits["elements of a tensor"] == "2⁴⁰"


def test_fingerprints_are_made_as_the_page_says() -> None:
    def digest(text: str) -> bytes:
        return hashlib.blake2b(text.encode(), digest_size=8).digest()

    assert Layout.of({"größe": 3, "b": 4}).fingerprint == digest("größe 3\nb 4")
    plan = Plan(selector=TopK(density=0.25))
    assert plan.text == json.dumps(plan.describe(), sort_keys=True, separators=(",", ":"))
    assert plan.fingerprint == digest(plan.text)


def example(name: str) -> str:
    found = re.search(rf"<!-- example: {name} -->\n```text\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found.group(1)


def test_the_example_of_a_message_is_what_the_code_writes() -> None:
    data = example_message()
    parts = [(field.size, field.name, shown(field, data)) for field in MESSAGE]
    body = [(1, "coordinates", "parameter 3"), (2, "", "low parts"), (1, "", "high parts"), (8, "values", "4 in BF16")]
    assert example("message") == dump(data, parts + body)


def test_the_example_of_a_record_is_what_the_code_writes() -> None:
    data = example_record()
    assert example("record") == dump(data, [(field.size, field.name, shown(field, data)) for field in RECORD])
