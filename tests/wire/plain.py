"""A second reader of the wire format, written from docs/wire-format.md alone: plain Python, one bit after the other.

It shares no code with thinwire, and it does not hurry. `read_message` gives what a message says, or the name of the
reason to refuse it, in the order of checks that the page gives.
"""

from dataclasses import dataclass
from fractions import Fraction

WHOLE, COORDINATES, VALUES = 0, 1, 2
F32, F64, BF16, F16, INT8, INT4, INT2 = 0, 1, 2, 3, 4, 5, 6
ITEMSIZE = {F32: 4, F64: 8, BF16: 2, F16: 2, INT8: 1}
CODES = {INT4: 4, INT2: 2}
"""Bits of a code."""
SHAPES = {F32: (8, 23), F64: (11, 52), BF16: (8, 7), F16: (5, 10)}
"""Exponent bits and fraction bits of the binary formats."""


class Refused(Exception):
    """Bytes that are no message; the argument is the reason."""


@dataclass(frozen=True, kw_only=True)
class Agreed:
    """What the reader knows beforehand."""

    numel: int
    width: int
    double: bool
    """Sums are in float64."""
    generation: int
    step: int
    group: int
    kind: int
    known: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Said:
    """What a message says: the units, and the bit patterns of their values in the type of the sums."""

    indices: tuple[int, ...]
    values: tuple[int, ...]


@dataclass(frozen=True)
class _Header:
    kind: int
    codec: int
    format: int
    width: int
    numel: int
    count: int
    section: int
    scale: int
    turn: tuple[int, int, int]


def read_message(data: bytes, agreed: Agreed) -> Said:
    """Steps 1 to 18 of the page."""
    header = _header(data, agreed)
    units = -(-agreed.numel // agreed.width)
    body = data[60:]
    if header.kind == VALUES:
        assert agreed.known is not None
        must(header.count == len(agreed.known), "COUNT")
        indices = list(agreed.known)
    else:
        indices = _coordinates(body[: header.section], header.codec, header.count, units)
    values = _values(body[header.section :], header, agreed)
    if header.kind != COORDINATES and indices and indices[-1] == units - 1:
        beyond = units * agreed.width - agreed.numel
        must(not any(values[len(values) - beyond :]), "PADDING")
    return Said(tuple(indices), tuple(values))


def must(condition: bool, reason: str) -> None:
    """What the page calls MUST."""
    if not condition:
        raise Refused(reason)


def crc32(data: bytes) -> int:
    """One bit after the other."""
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0xEDB88320 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


def number(data: bytes, offset: int, size: int) -> int:
    """A little-endian number."""
    return sum(data[offset + place] * 256**place for place in range(size))


def _header(data: bytes, agreed: Agreed) -> _Header:
    must(len(data) >= 60, "TRUNCATED")
    must(data[:4] == bytes([0x54, 0x57, 0x4D, 0x31]), "MAGIC")
    must(data[4] == 1, "VERSION")
    must(number(data, 56, 4) == crc32(data[:56] + data[60:]), "CHECKSUM")
    header = _Header(
        kind=data[5], codec=data[6], format=data[7], width=number(data, 8, 4), numel=number(data, 12, 8),
        count=number(data, 20, 8), section=number(data, 28, 8), scale=number(data, 36, 4),
        turn=(number(data, 40, 4), number(data, 44, 8), number(data, 52, 4)),
    )  # fmt: skip
    must(header.codec <= 4 and header.kind == agreed.kind, "CODEC")
    must(header.kind != VALUES or header.codec == 0, "CODEC")
    must(header.format <= 6 and (header.format != F64 or agreed.double), "FORMAT")
    must((header.numel, header.width) == (agreed.numel, agreed.width), "SHAPE")
    must(header.turn == (agreed.generation, agreed.step, agreed.group), "TURN")
    must(header.count <= -(-agreed.numel // agreed.width), "COUNT")
    must(header.kind != VALUES or header.section == 0, "COORDINATES")
    values = 0 if header.kind == COORDINATES else _size(header.format, header.count * header.width)
    must(len(data) >= 60 + header.section + values, "TRUNCATED")
    must(len(data) <= 60 + header.section + values, "TRAILING")
    return header


def _size(format: int, values: int) -> int:
    if format not in CODES:
        return values * ITEMSIZE[format]
    table = 2 * 2 ** (CODES[format] - 1)
    return table + (values * CODES[format] + 7) // 8 if values else 0


def _coordinates(section: bytes, codec: int, count: int, units: int) -> list[int]:
    if codec == 4:
        must(len(section) > 0, "COORDINATES")
        must(section[0] <= 3, "CODEC")
        return _coordinates(section[1:], section[0], count, units)
    return [_dense, _index_value, _bitmap, _delta][codec](section, count, units)


def _dense(section: bytes, count: int, units: int) -> list[int]:
    must(not section, "COORDINATES")
    must(count == units, "COUNT")
    return list(range(units))


def _index_value(section: bytes, count: int, units: int) -> list[int]:
    size = 4 if units <= 2**31 - 1 else 8
    must(len(section) == size * count, "COORDINATES")
    indices = []
    for at in range(count):
        index = number(section, at * size, size)
        indices.append(index - 2 ** (8 * size) if index >= 2 ** (8 * size - 1) else index)
    must(not indices or (indices[0] >= 0 and max(indices) < units), "RANGE")
    for at in range(1, count):
        must(indices[at] > indices[at - 1], "ORDER")
    return indices


def _bits(data: bytes) -> list[int]:
    return [byte >> place & 1 for byte in data for place in range(8)]


def _bitmap(section: bytes, count: int, units: int) -> list[int]:
    must(len(section) == (units + 7) // 8, "COORDINATES")
    bits = _bits(section)
    must(1 not in bits[units:], "PADDING")
    must(sum(bits) == count, "COORDINATES")
    return [unit for unit in range(units) if bits[unit]]


def _delta(section: bytes, count: int, units: int) -> list[int]:
    must((count == 0) == (not section), "COORDINATES")
    if count == 0:
        return []
    parameter = section[0]
    low_end = 1 + (count * parameter + 7) // 8
    must(parameter <= 40 and low_end <= len(section), "COORDINATES")
    low, high = _bits(section[1:low_end]), _bits(section[low_end:])
    must(1 not in low[count * parameter :], "PADDING")
    must(sum(high) == count, "COORDINATES")
    must(section[-1] != 0, "PADDING")
    indices, previous, at = [], -1, 0
    for entry in range(count):
        quotient = 0
        while high[at] == 0:
            quotient, at = quotient + 1, at + 1
        at += 1
        gap = quotient * 2**parameter
        for place in range(parameter):
            gap += low[entry * parameter + place] * 2**place
        previous += 1 + gap
        indices.append(previous)
    must(indices[-1] < units, "RANGE")
    return indices


def _values(section: bytes, header: _Header, agreed: Agreed) -> list[int]:
    scale = exact(header.scale, F32)
    if scale is None or scale <= 0 or (scale != 1 and header.format != INT8):
        raise Refused("VALUE")
    target = F64 if agreed.double else F32
    if header.format in CODES:
        count = 0 if header.kind == COORDINATES else header.count * header.width
        return _levelled(section, CODES[header.format], count, target)
    size = ITEMSIZE[header.format]
    values = []
    for at in range(0, len(section), size):
        pattern = number(section, at, size)
        if header.format == INT8:
            values.append(nearest((pattern - 256 if pattern >= 128 else pattern) * scale, target))
        else:
            values.append(_converted(pattern, header.format, target))
        must(exact(values[-1], target) is not None, "VALUE")
    return values


def _levelled(section: bytes, bits: int, count: int, target: int) -> list[int]:
    if count == 0:
        return []
    number_of_levels = 2 ** (bits - 1)
    levels = [number(section, 2 * level, 2) for level in range(number_of_levels)]
    for level in range(number_of_levels):
        must(levels[level] < 0x7F80, "VALUE")
        must(level == 0 or levels[level - 1] <= levels[level], "VALUE")
    codes = _bits(section[2 * number_of_levels :])
    must(1 not in codes[count * bits :], "PADDING")
    values = []
    for at in range(count):
        code = codes[at * bits : (at + 1) * bits]
        level = sum(code[place] * 2**place for place in range(bits - 1))
        magnitude = _converted(levels[level], BF16, target)
        values.append(magnitude | code[bits - 1] << sum(SHAPES[target]))
    return values


def _converted(pattern: int, source: int, target: int) -> int:
    """The same number in a format that has it: every source is exact in its target."""
    if source == target:
        return pattern
    value = exact(pattern, source)
    exponent, fraction = SHAPES[target]
    if value is None:
        return (1 << exponent) - 1 << fraction
    sign = pattern >> (sum(SHAPES[source]))
    converted = nearest(value, target)
    assert exact(converted, target) == value
    return converted | sign << (exponent + fraction)


def exact(pattern: int, format: int) -> Fraction | None:
    """The number that a bit pattern stands for; None for infinities and NaN."""
    exponent_bits, fraction_bits = SHAPES[format]
    fraction = pattern % (1 << fraction_bits)
    exponent = (pattern >> fraction_bits) % (1 << exponent_bits)
    sign = -1 if pattern >> (fraction_bits + exponent_bits) else 1
    if exponent == (1 << exponent_bits) - 1:
        return None
    if exponent == 0:
        exponent = 1
    else:
        fraction += 1 << fraction_bits
    return sign * fraction * _power(exponent - (1 << exponent_bits - 1) + 1 - fraction_bits)


def _power(exponent: int) -> Fraction:
    """A power of two."""
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def nearest(value: Fraction, format: int) -> int:
    """The pattern of the nearest number, ties to the even pattern; zero is positive."""
    exponent_bits, fraction_bits = SHAPES[format]
    negative = (1 if value < 0 else 0) << (exponent_bits + fraction_bits)
    lowest, beyond = 0, (1 << exponent_bits) - 1 << fraction_bits
    # Patterns without a sign are ordered as their numbers, so the one below the value is found by halving.
    while beyond - lowest > 1:
        middle = (lowest + beyond) // 2
        at_middle = exact(middle, format)
        assert at_middle is not None
        lowest, beyond = (middle, beyond) if at_middle <= abs(value) else (lowest, middle)
    below = exact(lowest, format)
    step = _power(max(lowest >> fraction_bits, 1) - (1 << exponent_bits - 1) + 1 - fraction_bits)
    assert below is not None
    rest = (abs(value) - below) / step
    up = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and lowest % 2 == 1)
    return negative | (lowest + up)
