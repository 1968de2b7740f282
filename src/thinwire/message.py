"""A selection as bytes and back. The format is specified in ``docs/wire-format.md``; this file follows it.

The decoder is total: any bytes give a `Selection` or a `WireError`, in the order length, magic, version,
checksum, meaning. Nothing is allocated that the agreed size of the tensor does not bound.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum

import torch
from torch import Tensor

from thinwire import kernels
from thinwire.codecs import BY_NUMBER
from thinwire.errors import WireError, WireReason
from thinwire.protocols import Codec
from thinwire.types import Selection, Turn, ValueFormat, unit_count
from thinwire.value_section import read_values, write_values

MAGIC = b"TWM1"
VERSION = 1
HEADER = struct.Struct("<4sBBBBIQQQfIQII")
"""magic, version, kind, codec, format, width, numel, count, section, scale, generation, step, group, CRC-32."""
_CHECKSUM_AT = HEADER.size - 4


class Kind(IntEnum):
    """What a message carries."""

    WHOLE = 0
    COORDINATES = 1
    VALUES = 2


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What the receiver knows beforehand; a message about anything else is refused."""

    numel: int
    width: int
    dtype: torch.dtype
    turn: Turn


@dataclass(frozen=True, kw_only=True)
class _Header:
    kind: Kind
    codec: Codec
    format: ValueFormat
    count: int
    section: int
    scale: float


def encode(selection: Selection, codec: Codec | None, turn: Turn, *, kind: Kind = Kind.WHOLE) -> Tensor:
    """Write a selection.

    Args:
        selection: What to write.
        codec: How to write its coordinates; None for a message of values.
        turn: The exchange it belongs to.
        kind: Which half to write, or both.

    Returns:
        The message: uint8, on the CPU, in memory of its own.
    """
    codec = codec if codec is not None and kind is not Kind.VALUES else BY_NUMBER[0]
    section = codec.write(selection) if kind is not Kind.VALUES else _NOTHING
    values_at = HEADER.size + section.numel()
    size = selection.format.size(selection.values.numel()) if kind is not Kind.COORDINATES else 0
    out = torch.empty(values_at + size, dtype=torch.uint8)
    out[HEADER.size : values_at] = section
    if kind is not Kind.COORDINATES:
        write_values(selection, out[values_at:])
    numbers = (kind, codec.number, selection.format, selection.width, selection.numel, selection.count)
    turns = (turn.generation, turn.step, turn.group)
    scale = selection.scale if selection.format is ValueFormat.INT8 else 1.0
    header = HEADER.pack(MAGIC, VERSION, *numbers, section.numel(), scale, *turns, 0)
    raw = out.numpy()
    raw[: HEADER.size] = memoryview(header)
    raw[_CHECKSUM_AT : HEADER.size] = memoryview(struct.pack("<I", _checksum(out)))
    return out


_NOTHING = torch.empty(0, dtype=torch.uint8)


def _checksum(message: Tensor) -> int:
    """CRC-32 of the message, its own field left out."""
    return kernels.crc32(message[HEADER.size :], kernels.crc32(message[:_CHECKSUM_AT]))


def decode(
    message: Tensor, expected: Expected, *, known: Selection | None = None, kind: Kind | None = None
) -> Selection:
    """Read a message, trusting nothing.

    Args:
        message: uint8, on the CPU.
        expected: What it must be about.
        known: The common coordinates, for a message of values.
        kind: What it must carry; by default WHOLE, or VALUES where coordinates are known.

    Returns:
        The selection, bit for bit as it was written. Of a message of coordinates, the values are empty.

    Raises:
        WireError: Anything about the bytes is wrong.
    """
    wanted = kind if kind is not None else Kind.WHOLE if known is None else Kind.VALUES
    header = _read_header(message, expected, wanted)
    body = message[HEADER.size :]
    units = unit_count(expected.numel, expected.width)
    if known is not None:
        if header.count != known.count:
            raise WireError(WireReason.COUNT, f"{header.count} values for {known.count} known units")
        indices = None if known.is_full else known.indices
    else:
        indices = header.codec.read(body[: header.section], header.count, units)
    if header.kind is Kind.COORDINATES:
        read = read_values(_NOTHING, header.format, header.scale, 0, expected.dtype)
    else:
        count = header.count * expected.width
        read = read_values(body[header.section :], header.format, header.scale, count, expected.dtype)
    _check_padding(read.values, indices, expected)
    return Selection(
        indices, read.values, expected.numel, expected.width,
        format=header.format, scale=header.scale, levels=read.levels,
    )  # fmt: skip


def _read_header(message: Tensor, expected: Expected, wanted: Kind) -> _Header:
    """Check everything that the header can be checked for, the checksum before any meaning."""
    if message.numel() < HEADER.size:
        raise WireError(WireReason.TRUNCATED, f"{message.numel()} bytes, a header has {HEADER.size}")
    fields = HEADER.unpack(message[: HEADER.size].numpy().tobytes())
    magic, version, kind, codec, format_, width, numel, count, section, scale, *turn, checksum = fields
    if magic != MAGIC:
        raise WireError(WireReason.MAGIC, repr(magic))
    if version != VERSION:
        raise WireError(WireReason.VERSION, f"version {version}, this build reads {VERSION}")
    if checksum != _checksum(message):
        raise WireError(WireReason.CHECKSUM)
    if codec not in BY_NUMBER or kind != wanted or (kind == Kind.VALUES and codec != 0):
        raise WireError(WireReason.CODEC, f"codec {codec}, kind {kind}")
    # Sums in float32 cannot take float64 bit for bit.
    if format_ not in list(ValueFormat) or (format_ == ValueFormat.F64 and expected.dtype != torch.float64):
        raise WireError(WireReason.FORMAT, f"format {format_} for sums in {expected.dtype}")
    if (numel, width) != (expected.numel, expected.width):
        agreed = f"{expected.numel} elements in units of {expected.width}"
        raise WireError(WireReason.SHAPE, f"{numel} elements in units of {width} instead of {agreed}")
    if tuple(turn) != (expected.turn.generation, expected.turn.step, expected.turn.group):
        raise WireError(WireReason.TURN, f"generation, step and group {tuple(turn)}")
    header = _Header(
        kind=Kind(kind),
        codec=BY_NUMBER[codec],
        format=ValueFormat(format_),
        count=count,
        section=section,
        scale=scale,
    )
    _check_lengths(message.numel(), header, expected)
    return header


def _check_lengths(length: int, header: _Header, expected: Expected) -> None:
    """Check count and sections against each other, before anything is allocated for them."""
    units = unit_count(expected.numel, expected.width)
    if header.count > units:
        raise WireError(WireReason.COUNT, f"{header.count} of {units} units")
    if header.kind is Kind.VALUES and header.section:
        raise WireError(WireReason.COORDINATES, "coordinates in a message of values")
    values = 0 if header.kind is Kind.COORDINATES else header.format.size(header.count * expected.width)
    wanted = HEADER.size + header.section + values
    if length != wanted:
        reason = WireReason.TRUNCATED if length < wanted else WireReason.TRAILING
        raise WireError(reason, f"{length} bytes instead of {wanted}")


def _check_padding(values: Tensor, indices: Tensor | None, expected: Expected) -> None:
    """Where the last unit sticks out of the tensor, nothing may hide in the part that nobody reads."""
    spare = -expected.numel % expected.width
    if not spare or not values.numel():
        return
    has_last = indices is None or int(indices[-1]) == unit_count(expected.numel, expected.width) - 1
    # As bytes: zeros have signs.
    if has_last and bool(values[-spare:].view(torch.uint8).any()):
        raise WireError(WireReason.PADDING, "behind the last element")
