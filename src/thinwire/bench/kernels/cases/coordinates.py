"""Lists of indices as bytes, and back.

Torch has no such formats, so that its expressions are what a user would write instead, which is less work for larger
messages. They are checked to lose nothing.
"""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from thinwire import kernels
from thinwire.bench.kernels.case import Arguments, Case
from thinwire.bench.kernels.checks import differences
from thinwire.bench.kernels.data import Task
from thinwire.bench.kernels.moved import index_bytes, nbytes
from thinwire.types import index_dtype

_APART = 4


def _gaps_undone(arguments: Arguments, expected: Any, got: Tensor) -> int:
    return differences(arguments[0], got.cumsum(0) - 1)


def _flags_undone(arguments: Arguments, expected: Any, got: Tensor) -> int:
    return differences(arguments[0], torch.nonzero(got).squeeze(1))


def _rice(task: Task) -> tuple[Tensor, int, int, Tensor]:
    indices = task.indices()
    return kernels.rice_write(indices, task.size), task.k, task.size, _gaps(indices)


def _bitmap(task: Task) -> tuple[Tensor, int, int, Tensor]:
    indices = task.indices()
    return kernels.bitmap_write(indices, task.size), task.k, task.size, _flags(indices, task.size)


def _members(task: Task) -> tuple[Tensor, Tensor]:
    """A quarter of all units, and a part of them."""
    members = torch.arange(0, task.size, _APART, dtype=index_dtype(task.size))
    return members[replace(task, size=members.numel()).indices().long()], members


def _bitmap_of_members(task: Task) -> tuple[Tensor, int, Tensor, Tensor]:
    indices, members = _members(task)
    flags = _flags(indices // _APART, members.numel())
    return kernels.bitmap_of_members_write(indices, members), indices.numel(), members, flags


def _members_undone(arguments: Arguments, expected: Any, got: Tensor) -> int:
    return differences(arguments[0], arguments[1][got])


def _gaps(indices: Tensor) -> Tensor:
    return torch.diff(indices, prepend=indices.new_full((1,), -1))


def _flags(indices: Tensor, units: int) -> Tensor:
    return torch.zeros(units, dtype=torch.bool).index_fill_(0, indices.long(), True)


_GAPS = "torch has no such format: beside it, differences of the indices, four to eight times larger"
_BOOLS = "torch has no such format: beside it, one bool for each element, eight times larger"

_MEMBERS = f"{_BOOLS}; members are one unit in {_APART}"

COORDINATES = (
    Case(
        name="rice_write",
        make=lambda task: (task.indices(), task.size),
        torch=lambda indices, units: _gaps(indices),
        moves=lambda indices, units: nbytes(indices, kernels.rice_write(indices, units)),
        torch_check=_gaps_undone,
        remark=_GAPS,
    ),
    Case(
        name="rice_read",
        make=_rice,
        call=lambda implementation, data, count, units, gaps: implementation.rice_read(data, count, units),
        torch=lambda data, count, units, gaps: gaps.cumsum(0, dtype=gaps.dtype).sub_(1),
        moves=lambda data, count, units, gaps: nbytes(data) + index_bytes(units, count),
        remark=_GAPS,
    ),
    Case(
        name="bitmap_write",
        make=lambda task: (task.indices(), task.size),
        torch=_flags,
        moves=lambda indices, units: nbytes(indices) + -(-units // 8),
        torch_check=_flags_undone,
        remark=_BOOLS,
    ),
    Case(
        name="bitmap_read",
        make=_bitmap,
        call=lambda implementation, data, count, units, flags: implementation.bitmap_read(data, count, units),
        torch=lambda data, count, units, flags: torch.nonzero(flags).squeeze(1),
        moves=lambda data, count, units, flags: nbytes(data) + index_bytes(units, count),
        remark=_BOOLS,
    ),
    Case(
        name="bitmap_of_members_write",
        make=_members,
        torch=lambda indices, members: _flags(torch.searchsorted(members, indices), members.numel()),
        moves=lambda indices, members: nbytes(indices, members) + -(-members.numel() // 8),
        torch_check=_members_undone,
        remark=_MEMBERS,
    ),
    Case(
        name="bitmap_of_members_read",
        make=_bitmap_of_members,
        call=lambda implementation, data, count, members, flags: implementation.bitmap_of_members_read(
            data, count, members
        ),
        torch=lambda data, count, members, flags: members[flags],
        moves=lambda data, count, members, flags: nbytes(data, members) + count * members.itemsize,
        remark=_MEMBERS,
    ),
)
