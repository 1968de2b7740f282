"""Values as bytes, and checksums, on every implementation: exact bytes, round trips, range, hostile bytes."""

import itertools
import math
import struct
import zlib

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.native import oracle
from tests.native.oracle import NAMES, each_kernel
from thinwire import kernels
from thinwire.errors import WireError, WireReason
from thinwire.kernels import Kernels
from thinwire.types import ValueFormat

PLAIN = [format for format in ValueFormat if not format.levels]
FLOATS = [torch.float32, torch.float64]
each_float = pytest.mark.parametrize("dtype", FLOATS, ids=str)

floats32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
lists = st.lists(
    st.one_of(floats32, st.sampled_from([0.0, -0.0, 65504.0, 65519.9, 65520.0, 1e-45, -3.4028235e38, 127.5, -127.5])),
    max_size=70,
)


def packed(kernel: Kernels, values: Tensor, format: ValueFormat, scale: float = 1.0) -> bytes:
    out = torch.full((format.size(values.numel()),), 0xAA, dtype=torch.uint8)
    kernel.pack_values(values, format, scale, out=out)
    return out.numpy().tobytes()


def coded(kernel: Kernels, values: Tensor, levels: Tensor) -> bytes:
    out = torch.full((-(-values.numel() // (4 if levels.numel() == 2 else 2)),), 0xAA, dtype=torch.uint8)
    kernel.pack_levels(values, levels, out=out)
    return out.numpy().tobytes()


def as_tensor(data: bytes, lead: int = 0) -> Tensor:
    """At any address."""
    return torch.tensor([0xFF] * lead + list(data), dtype=torch.uint8)[lead:]


def bits_of(values: Tensor) -> bytes:
    return values.numpy().tobytes()


@each_kernel
@each_float
@given(values=lists, scale=st.sampled_from([1.0, 0.5, 0.37, 2.0**-140, 2.0**120]))
@example(values=[], scale=1.0)
@example(values=[0.5, 1.5, 2.5, -0.5, -1.5, 126.5, 127.4, 300.0], scale=1.0)
def test_the_nearest_values_are_written(kernel: Kernels, dtype: torch.dtype, values: list[float], scale: float) -> None:
    scale = float(torch.tensor(scale))
    exact = torch.tensor(values, dtype=dtype)
    for format in (ValueFormat.BF16, ValueFormat.F16):
        wanted = b"".join(struct.pack("<H", oracle.nearest_half(value, format.name)) for value in exact.tolist())
        assert packed(kernel, exact, format) == wanted, format
    assert packed(kernel, exact, ValueFormat.INT8, scale) == oracle.steps(exact, scale)


@each_kernel
@pytest.mark.parametrize("format", [ValueFormat.BF16, ValueFormat.F16], ids=lambda format: format.name)
@each_float
def test_every_pattern_of_the_narrow_formats_comes_back(
    kernel: Kernels, format: ValueFormat, dtype: torch.dtype
) -> None:
    patterns = torch.arange(-(2**15), 2**15, dtype=torch.int64).to(torch.int16)
    finite = patterns[patterns.view(format.dtype).isfinite()].contiguous()
    data = finite.view(torch.uint8)
    found = kernel.unpack_values(data, format, 1.0, dtype)
    assert bits_of(found) == bits_of(finite.view(format.dtype).to(dtype))
    assert packed(kernel, found, format) == data.numpy().tobytes()


@each_kernel
@each_float
@given(data=st.binary(max_size=120), lead=st.integers(0, 8))
def test_any_bytes_are_values_or_refused(kernel: Kernels, dtype: torch.dtype, data: bytes, lead: int) -> None:
    for format in PLAIN:
        if format is ValueFormat.F64 and dtype is torch.float32:
            continue
        whole = data[: len(data) // format.dtype.itemsize * format.dtype.itemsize]
        for scale in (1.0, 2.0**127):
            numbers = as_tensor(whole).view(format.dtype).to(dtype)
            numbers = numbers * scale if format is ValueFormat.INT8 else numbers
            if bool(numbers.isfinite().all()):
                assert bits_of(kernel.unpack_values(as_tensor(whole, lead), format, scale, dtype)) == bits_of(numbers)
            else:
                with pytest.raises(WireError) as refused:
                    kernel.unpack_values(as_tensor(whole, lead), format, scale, dtype)
                assert refused.value.reason is WireReason.VALUE


@each_kernel
@pytest.mark.parametrize("size", [1, 7, 8, 9, 31, 64, 65])
def test_one_value_that_is_not_finite_is_found_anywhere(kernel: Kernels, size: int) -> None:
    for format, at in itertools.product([ValueFormat.F32, ValueFormat.BF16, ValueFormat.F16], range(size)):
        values = torch.ones(size)
        values[at] = -math.inf if at % 2 else math.nan
        with pytest.raises(WireError):
            kernel.unpack_values(values.to(format.dtype).view(torch.uint8), format, 1.0, torch.float32)


@st.composite
def levelled(draw: st.DrawFn) -> tuple[list[float], list[float]]:
    """Levels, and values near and between them."""
    count = draw(st.sampled_from([2, 8]))
    patterns = sorted(draw(st.lists(st.integers(0, 0x7F7F), min_size=count, max_size=count)))
    levels = torch.tensor(patterns, dtype=torch.int16).view(torch.bfloat16).tolist()
    middles = [a / 2 + b / 2 for a, b in itertools.pairwise(levels)]
    near = st.sampled_from([sign * value for sign in (1, -1) for value in (*levels, *middles)])
    return levels, draw(st.lists(st.one_of(near, floats32), max_size=70))


@each_kernel
@each_float
@given(case=levelled())
def test_codes_name_the_nearest_level(
    kernel: Kernels, dtype: torch.dtype, case: tuple[list[float], list[float]]
) -> None:
    levels, values = torch.tensor(case[0], dtype=dtype), torch.tensor(case[1], dtype=dtype)
    data = coded(kernel, values, levels)
    assert data == oracle.codes(values.tolist(), levels)
    found = kernel.unpack_levels(as_tensor(data), values.numel(), levels)
    assert bits_of(found) == bits_of(oracle.levelled(data, values.numel(), levels))
    # What has once been rounded stays as it is.
    assert bits_of(kernel.unpack_levels(as_tensor(coded(kernel, found, levels)), values.numel(), levels)) == bits_of(
        found
    )


@each_kernel
@pytest.mark.parametrize("count", range(9))
@pytest.mark.parametrize("levels", [[1.0, 2.0], [0.0, 1, 2, 3, 4, 5, 6, 7]], ids=["2 bits", "4 bits"])
def test_unused_bits_behind_codes_must_be_zero(kernel: Kernels, count: int, levels: list[float]) -> None:
    bits = 2 if len(levels) == 2 else 4
    for spare in range(count * bits, -(-count * bits // 8) * 8):
        data = (1 << spare).to_bytes(-(-count * bits // 8), "little")
        with pytest.raises(WireError) as refused:
            kernel.unpack_levels(as_tensor(data), count, torch.tensor(levels))
        assert refused.value.reason is WireReason.PADDING


@each_kernel
def test_values_that_lie_elsewhere_or_in_steps_are_written_alike(kernel: Kernels) -> None:
    values = torch.linspace(-3, 3, 41)[::2]
    levels = torch.tensor([0.5, 2.0])
    for format in PLAIN:
        assert packed(kernel, values, format, 0.5) == packed(kernel, values.contiguous(), format, 0.5)
    assert coded(kernel, values, levels) == coded(kernel, values.contiguous(), levels)
    assert packed(kernel, torch.tensor(1.5).expand(1), ValueFormat.BF16) == b"\xc0\x3f"


@settings(max_examples=20)
@given(size=st.integers(2000, 5000), seed=st.integers(0, 99))
def test_all_agree_on_many_values(size: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(size, generator=generator) * 10.0 ** torch.randint(-3, 6, (size,), generator=generator)
    levels = torch.tensor([0.0, 0.5, 1, 2, 3, 4, 8, 1000])
    every = [kernels.implementation(name) for name in NAMES]
    for exact in (values, values.double()):
        for format in (ValueFormat.BF16, ValueFormat.F16, ValueFormat.INT8):
            assert len({packed(kernel, exact, format, 0.125) for kernel in every}) == 1
        for some in (levels, levels[1:3]):
            assert len({coded(kernel, exact, some.to(exact.dtype).clone()) for kernel in every}) == 1


@each_kernel
@given(data=st.binary(max_size=400), cut=st.integers(0, 400), lead=st.integers(0, 17))
@example(data=b"123456789", cut=0, lead=0)
@example(data=bytes(range(256)) * 2, cut=130, lead=3)
def test_the_checksum_is_that_of_zlib_and_goes_on_where_it_stopped(
    kernel: Kernels, data: bytes, cut: int, lead: int
) -> None:
    first = kernel.crc32(as_tensor(data[:cut], lead))
    assert first == zlib.crc32(data[:cut])
    assert kernel.crc32(as_tensor(data[cut:], lead), first) == zlib.crc32(data)


@each_kernel
def test_the_checksum_of_the_nine_characters(kernel: Kernels) -> None:
    assert kernel.crc32(as_tensor(b"123456789")) == 0xCBF43926
