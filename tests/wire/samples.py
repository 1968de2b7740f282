"""Selections of every shape and value format, with the values that are easiest to spoil."""

import struct

import torch
from hypothesis import strategies as st
from torch import Tensor

from thinwire.types import Selection, ValueFormat, index_dtype, unit_count


def _awkward(format: ValueFormat) -> list[float]:
    """Both zeros, the smallest and the largest denormal, and both ends."""
    limits = torch.finfo(format.dtype)
    least = limits.smallest_normal * limits.eps
    most = limits.max
    return [0.0, -0.0, least, least - limits.smallest_normal, most, -most]


def _bf16(pattern: int) -> float:
    value: float = struct.unpack("<f", struct.pack("<I", pattern << 16))[0]
    return value


def value_lists(format: ValueFormat, size: int) -> st.SearchStrategy[list[float]]:
    """Finite values that the format can write: every bit pattern is possible, the awkward ones are likely."""
    if format is ValueFormat.BF16:
        patterns = st.integers(0, 2**16 - 1).filter(lambda pattern: pattern >> 7 & 255 != 255)
        usual: st.SearchStrategy[float] = patterns.map(_bf16)
    else:
        width = 64 if format is ValueFormat.F64 else 16 if format is ValueFormat.F16 else 32
        most = torch.finfo(format.dtype).max
        usual = st.floats(-most, most, width=width)  # type: ignore[arg-type]
    return st.lists(st.one_of(usual, st.sampled_from(_awkward(format))), min_size=size, max_size=size)


SCALES = st.one_of(
    st.sampled_from([1.0, 2.0**-149, 1.1754943508222875e-38, 2.0**120]),
    st.floats(2.0**-126, 2.0**120, width=32),
)


@st.composite
def selections(draw: st.DrawFn, *, full: bool = False, max_numel: int = 150) -> Selection:
    """Any selection that can be written: any numel, width, number of units, value format and type of sums."""
    numel = draw(st.one_of(st.sampled_from([0, 1, 8, 9]), st.integers(0, max_numel)))
    width = draw(st.sampled_from([1, 1, 2, 3, 8, 200]))
    units = unit_count(numel, width)
    if full or draw(st.integers(0, 5)) == 0:
        chosen = list(range(units))
    else:
        most = units if units < 40 else draw(st.sampled_from([units, 12]))
        chosen = sorted(draw(st.sets(st.integers(0, units - 1), max_size=most))) if units else []
    format = draw(st.sampled_from(list(ValueFormat)))
    dtype = torch.float64 if format is ValueFormat.F64 else draw(st.sampled_from([torch.float32, torch.float64]))
    spare = units * width - numel if chosen and chosen[-1] == units - 1 else 0
    levels = _levels(draw, format, dtype, from_zero=spare > 0)
    scale, values = _values(draw, format, len(chosen) * width, dtype, levels)
    if spare:
        values[values.numel() - spare :] = 0.0
    indices = torch.tensor(chosen, dtype=index_dtype(units))
    every_unit = len(chosen) == units and draw(st.booleans())
    return Selection(
        None if every_unit else indices, values, numel, width, format=format, scale=scale,
        levels=levels if values.numel() else None,
    )  # fmt: skip


def _levels(draw: st.DrawFn, format: ValueFormat, dtype: torch.dtype, *, from_zero: bool) -> Tensor | None:
    """Any magnitudes of bfloat16, the same one twice included."""
    if not format.levels:
        return None
    patterns = sorted(draw(st.lists(st.integers(0, 0x7F7F), min_size=format.levels, max_size=format.levels)))
    if from_zero:
        patterns[0] = 0
    return torch.tensor(patterns, dtype=torch.int16).view(torch.bfloat16).to(dtype)


def _values(
    draw: st.DrawFn, format: ValueFormat, size: int, dtype: torch.dtype, levels: Tensor | None
) -> tuple[float, Tensor]:
    if levels is not None:
        codes = draw(st.lists(st.integers(0, 2 * levels.numel() - 1), min_size=min(size, 24), max_size=min(size, 24)))
        drawn_values = torch.cat([levels, -levels])[torch.tensor(codes, dtype=torch.int64)]
        return 1.0, drawn_values.repeat(size // 24 + 1)[:size].clone()
    if format is not ValueFormat.INT8:
        # Drawing long lists is slow; what matters are the patterns, so a short list is repeated.
        drawn = draw(value_lists(format, min(size, 24)))
        return 1.0, torch.tensor(drawn, dtype=dtype).repeat(size // 24 + 1)[:size].clone()
    scale = draw(SCALES)
    steps = draw(st.lists(st.integers(-127, 127), min_size=min(size, 24), max_size=min(size, 24)))
    return scale, (torch.tensor(steps, dtype=dtype) * scale).repeat(size // 24 + 1)[:size].clone()


@st.composite
def far_selections(draw: st.DrawFn) -> Selection:
    """A few units of a tensor of up to the largest size: indices of 64 bits, wide gaps."""
    width = draw(st.sampled_from([1, 64, 1000]))
    units = draw(st.sampled_from([2**20 + 1, 2**31 - 1, 2**31, 2**33 + 5, 2**40 // width]))
    chosen = sorted(draw(st.sets(st.integers(0, units - 1), max_size=12)))
    values = torch.arange(len(chosen) * width, dtype=torch.float32)
    return Selection(torch.tensor(chosen, dtype=index_dtype(units)), values, units * width, width)
