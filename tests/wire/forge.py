"""Messages made by hand, right and wrong, always with a right checksum unless it is the checksum that is wrong.

Written from docs/wire-format.md and not with the writer of thinwire, so that both can be compared.
"""

import contextlib
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.wire import plain
from thinwire import kernels
from thinwire.kernels import Kernels
from thinwire.message import Expected, Kind, decode
from thinwire.types import Selection, Turn

TURN = Turn(step=6, group=7, rank=0, world=2, generation=5)

NAMES = [name for name, answer in kernels.available().items() if answer == "yes"]

each_kernel = pytest.mark.parametrize("kernel", [kernels.implementation(name) for name in NAMES], ids=NAMES)

_FUNCTIONS = (
    "rice_read", "rice_write", "bitmap_read", "bitmap_write",
    "pack_values", "unpack_values", "pack_levels", "unpack_levels", "crc32",
)  # fmt: skip


@contextlib.contextmanager
def using(kernel: Kernels) -> Iterator[None]:
    """Read and write messages with one implementation of the kernels, whichever is the active one."""
    before = {name: getattr(kernels, name) for name in _FUNCTIONS}
    try:
        for name in _FUNCTIONS:
            setattr(kernels, name, getattr(kernel, name))
        yield
    finally:
        for name, function in before.items():
            setattr(kernels, name, function)


@dataclass(frozen=True, kw_only=True)
class Forged:
    """A message, field by field. What is None is what it ought to be."""

    magic: bytes = b"TWM1"
    version: int = 1
    kind: int = plain.WHOLE
    codec: int = 1
    format: int = plain.F32
    width: int = 1
    numel: int = 10
    count: int = 3
    section: int | None = None
    scale: float = 1.0
    generation: int = 5
    step: int = 6
    group: int = 7
    checksum: int | None = None
    coordinates: bytes = b""
    values: bytes = b""

    def but(self, **fields: Any) -> "Forged":
        """The same with other fields."""
        return replace(self, **fields)

    @property
    def data(self) -> bytes:
        """The message as bytes."""
        section = len(self.coordinates) if self.section is None else self.section
        head = struct.pack("<4sBBBB", self.magic, self.version, self.kind, self.codec, self.format)
        head += struct.pack("<IQQQf", self.width, self.numel, self.count, section, self.scale)
        head += struct.pack("<IQI", self.generation, self.step, self.group)
        body = self.coordinates + self.values
        checksum = zlib.crc32(head + body) if self.checksum is None else self.checksum
        return head + struct.pack("<I", checksum) + body


@dataclass(frozen=True, kw_only=True)
class Reader:
    """What a reader knows beforehand, for both readers."""

    numel: int = 10
    width: int = 1
    dtype: torch.dtype = torch.float32
    turn: Turn = TURN
    kind: Kind = Kind.WHOLE
    known: Selection | None = None

    def read(self, data: bytes) -> Selection:
        """With the reader of thinwire."""
        expected = Expected(numel=self.numel, width=self.width, dtype=self.dtype, turn=self.turn)
        return decode(as_tensor(data), expected, known=self.known, kind=self.kind)

    def read_plainly(self, data: bytes) -> plain.Said:
        """With the plain reader."""
        agreed = plain.Agreed(
            numel=self.numel, width=self.width, double=self.dtype == torch.float64, kind=int(self.kind),
            generation=self.turn.generation, step=self.turn.step, group=self.turn.group,
            known=None if self.known is None else tuple(self.known.indices.tolist()),
        )  # fmt: skip
        return plain.read_message(data, agreed)


def as_tensor(data: bytes) -> Tensor:
    """Bytes as thinwire takes them."""
    return torch.frombuffer(bytearray(data), dtype=torch.uint8) if data else torch.empty(0, dtype=torch.uint8)


def bits_of(values: Tensor) -> list[int]:
    """The bit patterns of floats."""
    size, whole = (64, torch.int64) if values.dtype == torch.float64 else (32, torch.int32)
    return [pattern % 2**size for pattern in values.view(whole).tolist()]


def said_by(selection: Selection, *, values: bool = True) -> plain.Said:
    """A selection as the plain reader gives it."""
    return plain.Said(tuple(selection.indices.tolist()), tuple(bits_of(selection.values)) if values else ())
