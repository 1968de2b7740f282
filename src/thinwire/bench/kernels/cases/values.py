"""Values as bytes, and back."""

import zlib
from collections.abc import Callable

import torch
from torch import Tensor

from thinwire.bench.kernels.case import Case
from thinwire.bench.kernels.data import Task
from thinwire.bench.kernels.moved import nbytes
from thinwire.kernels import Kernels
from thinwire.kernels.reference.values import STEPS, bounds
from thinwire.types import ValueFormat

_FORMATS = {"": ValueFormat.BF16, "_f16": ValueFormat.F16, "_int8": ValueFormat.INT8}
_LEVELS = {"": 8, "_2bit": 2}
_READS = "reading refuses what is no finite number, torch's expression does not"


def _packing(format: ValueFormat) -> Callable[[Task], tuple[Tensor, ValueFormat, float, Tensor]]:
    def make(task: Task) -> tuple[Tensor, ValueFormat, float, Tensor]:
        values = task.gradient(task.k)
        scale = float(values.abs().max()) / STEPS or 1.0
        return values, format, scale, torch.empty(values.numel() * format.dtype.itemsize, dtype=torch.uint8)

    return make


def _unpacking(format: ValueFormat) -> Callable[[Task], tuple[Tensor, ValueFormat, float]]:
    def make(task: Task) -> tuple[Tensor, ValueFormat, float]:
        values, _, scale, out = _packing(format)(task)
        _pack(values, format, scale, out)
        return out, format, scale

    return make


def _pack(values: Tensor, format: ValueFormat, scale: float, out: Tensor) -> None:
    if format is ValueFormat.INT8:
        values = (values / scale).round_().clamp_(-STEPS, STEPS)
    out.view(format.dtype).copy_(values)


def _unpack(data: Tensor, format: ValueFormat, scale: float) -> Tensor:
    values = data.view(format.dtype).float()
    return values.mul_(scale) if format is ValueFormat.INT8 else values


def _leveling(count: int) -> Callable[[Task], tuple[Tensor, Tensor, Tensor]]:
    def make(task: Task) -> tuple[Tensor, Tensor, Tensor]:
        values = task.gradient(task.k)
        levels = torch.linspace(0.1, 1.0, count) * values.abs().max()
        each = _in_a_byte(levels)
        return values, levels, torch.empty(-(-values.numel() // each), dtype=torch.uint8)

    return make


def _unleveling(count: int) -> Callable[[Task], tuple[Tensor, int, Tensor]]:
    def make(task: Task) -> tuple[Tensor, int, Tensor]:
        values, levels, out = _leveling(count)(task)
        _pack_levels(values, levels, out)
        return out, values.numel(), levels

    return make


def _in_a_byte(levels: Tensor) -> int:
    return 8 // levels.numel().bit_length()


def _pack_levels(values: Tensor, levels: Tensor, out: Tensor) -> None:
    each = _in_a_byte(levels)
    codes = torch.bucketize(values.abs(), bounds(levels), out_int32=True).to(torch.uint8)
    codes.add_(values.signbit(), alpha=levels.numel())
    rows = torch.nn.functional.pad(codes, (0, -codes.numel() % each)).view(-1, each)
    out.copy_(rows[:, 0])
    for place in range(1, each):
        out.bitwise_or_(rows[:, place] << place * (8 // each))


def _unpack_levels(data: Tensor, count: int, levels: Tensor) -> Tensor:
    each = _in_a_byte(levels)
    codes = torch.stack([data >> place * (8 // each) for place in range(each)], dim=1).view(-1)[:count]
    return torch.cat([levels, -levels]).index_select(0, codes.bitwise_and_(2 * levels.numel() - 1).int())


def _pack_by(kernels: Kernels, values: Tensor, format: ValueFormat, scale: float, out: Tensor) -> None:
    kernels.pack_values(values, format, scale, out=out)


def _unpack_by(kernels: Kernels, data: Tensor, format: ValueFormat, scale: float) -> Tensor:
    return kernels.unpack_values(data, format, scale, torch.float32)


def _pack_levels_by(kernels: Kernels, values: Tensor, levels: Tensor, out: Tensor) -> None:
    kernels.pack_levels(values, levels, out=out)


def _of_format(ending: str, format: ValueFormat) -> tuple[Case, ...]:
    remark = f"as {format.name.lower()}"
    return (
        Case(
            name=f"pack_values{ending}",
            make=_packing(format),
            call=_pack_by,
            torch=_pack,
            moves=lambda values, format, scale, out: nbytes(values, out),
            changes=(3,),
            remark=remark,
        ),
        Case(
            name=f"unpack_values{ending}",
            make=_unpacking(format),
            call=_unpack_by,
            torch=_unpack,
            moves=lambda data, format, scale: nbytes(data) + 4 * (nbytes(data) // format.dtype.itemsize),
            remark=f"{remark}; {_READS}",
        ),
    )


def _of_levels(ending: str, count: int) -> tuple[Case, ...]:
    remark = f"a sign and one of {count} levels"
    return (
        Case(
            name=f"pack_levels{ending}",
            make=_leveling(count),
            call=_pack_levels_by,
            torch=_pack_levels,
            moves=lambda values, levels, out: nbytes(values, out),
            changes=(2,),
            remark=remark,
        ),
        Case(
            name=f"unpack_levels{ending}",
            make=_unleveling(count),
            call=lambda kernels, data, count, levels: kernels.unpack_levels(data, count, levels),
            torch=_unpack_levels,
            moves=lambda data, count, levels: nbytes(data) + 4 * count,
            remark=remark,
        ),
    )


def _crc32(data: Tensor) -> int:
    return zlib.crc32(data.numpy().data)


VALUES: tuple[Case, ...] = (
    *(case for ending, format in _FORMATS.items() for case in _of_format(ending, format)),
    *(case for ending, count in _LEVELS.items() for case in _of_levels(ending, count)),
    Case(
        name="crc32",
        make=lambda task: (task.gradient(task.k).view(torch.uint8),),
        torch=_crc32,
        moves=nbytes,
        remark="torch has none: beside it, that of zlib",
    ),
)
