"""Values on their way out of and into dense tensors, and between owners."""

from collections.abc import Sequence

import torch
from torch import Tensor

from thinwire import kernels
from thinwire.bench.kernels.case import Arguments, Case
from thinwire.bench.kernels.checks import of_the_same_form
from thinwire.bench.kernels.data import Task
from thinwire.bench.kernels.moved import index_bytes, line_bytes, nbytes
from thinwire.kernels.reference.movement import Message, owner_dtype

MESSAGES = 4
_OWNERS = 16
_OWNER = 3
_SEED = 7

Messages = tuple[Message, ...]

_FOUR = f"{MESSAGES} messages"
_OTHER_MAP = "torch's expression is another map, so that only the form of its result is checked"


def _messages(task: Task) -> Messages:
    return tuple((task.indices(), task.gradient(task.k)) for _ in range(MESSAGES))


def _all(messages: Messages) -> tuple[Tensor, Tensor]:
    """All indices and all values, one message behind the other."""
    return torch.cat([indices for indices, _ in messages]), torch.cat([values for _, values in messages])


def _sizes(messages: Messages) -> int:
    return sum(nbytes(*message) for message in messages)


def _touched(out: Tensor, messages: Messages) -> int:
    return line_bytes(out, _all(messages)[0].sort().values)


def _take_at(values: Tensor, indices: Tensor) -> Tensor:
    taken = values.index_select(0, indices)
    values.index_fill_(0, indices.long(), 0.0)
    return taken


def _scatter_sum(out: Tensor, messages: Messages) -> None:
    for indices, values in messages:
        out.index_add_(0, indices, values)


def _scatter_mean(out: Tensor, messages: Messages, divisor: float) -> None:
    out.zero_()
    _scatter_sum(out, messages)
    out.div_(divisor)


def _merge_sum(messages: Messages, numel: int) -> Message:
    indices, values = _all(messages)
    union, places = torch.unique(indices, return_inverse=True)
    return union, torch.zeros(union.numel()).index_add_(0, places, values)


def _dense_mean(out: Tensor, tensors: Sequence[Tensor]) -> None:
    out.copy_(tensors[0])
    for tensor in tensors[1:]:
        out.add_(tensor)
    out.div_(len(tensors))


def _hashed_owner(indices: Tensor, owners: int, seed: int) -> Tensor:
    mixed = (indices.long() + seed) * 0x5851F42D4C957F2D
    return ((mixed >> 33) & 0x7FFFFFFF).remainder_(owners).to(owner_dtype(owners))


def _owners(arguments: Arguments, expected: Tensor, got: Tensor) -> int:
    return abs(len(expected) - len(got)) + int(((got < 0) | (got >= arguments[1])).sum())


def _owned(task: Task) -> tuple[Tensor, Tensor, Tensor, int]:
    indices = task.indices()
    return indices, task.gradient(task.k), kernels.owner_of(indices, _OWNERS, _SEED), _OWNERS


def _multisplit(indices: Tensor, values: Tensor, owner_of_each: Tensor, owners: int) -> tuple[Tensor, ...]:
    order = owner_of_each.argsort(stable=True)
    return indices[order], values[order], torch.bincount(owner_of_each, minlength=owners)


MOVEMENT = (
    Case(
        name="gather",
        make=lambda task: (task.gradient(), task.indices()),
        torch=lambda values, indices: values.index_select(0, indices),
        moves=lambda values, indices: nbytes(indices) + line_bytes(values, indices) + len(indices) * values.itemsize,
    ),
    Case(
        name="take_at",
        make=lambda task: (task.gradient(), task.indices()),
        torch=_take_at,
        moves=lambda values, indices: (
            nbytes(indices) + 2 * line_bytes(values, indices) + len(indices) * values.itemsize
        ),
        changes=(0,),
    ),
    Case(
        name="scatter_add_",
        make=lambda task: (task.gradient(), task.indices(), task.gradient(task.k)),
        torch=lambda out, indices, values: out.index_add_(0, indices, values),
        moves=lambda out, indices, values: nbytes(indices, values) + 2 * line_bytes(out, indices),
        changes=(0,),
    ),
    Case(
        name="scatter_sum_",
        make=lambda task: (task.gradient(), _messages(task)),
        torch=_scatter_sum,
        moves=lambda out, messages: _sizes(messages) + 2 * _touched(out, messages),
        changes=(0,),
        remark=_FOUR,
    ),
    Case(
        name="scatter_mean_",
        make=lambda task: (task.gradient(), _messages(task), float(MESSAGES)),
        torch=_scatter_mean,
        moves=lambda out, messages, divisor: _sizes(messages) + nbytes(out),
        changes=(0,),
        remark=_FOUR,
    ),
    Case(
        name="merge_sum",
        make=lambda task: (_messages(task), task.size),
        torch=_merge_sum,
        moves=lambda messages, numel: (
            _sizes(messages) + (index_bytes(numel, 1) + 4) * torch.unique(_all(messages)[0]).numel()
        ),
        remark=_FOUR,
    ),
    Case(
        name="dense_mean_",
        make=lambda task: (task.gradient(), [task.gradient() for _ in range(MESSAGES)]),
        torch=_dense_mean,
        moves=lambda out, tensors: nbytes(out, *tensors),
        changes=(0,),
        densities=False,
        remark=f"{MESSAGES} tensors",
    ),
    Case(
        name="owner_of",
        make=lambda task: (task.indices(), _OWNERS, _SEED),
        torch=_hashed_owner,
        moves=lambda indices, owners, seed: nbytes(indices) + len(indices) * owner_dtype(owners).itemsize,
        torch_check=_owners,
        remark=_OTHER_MAP,
    ),
    Case(
        name="place_of",
        make=lambda task: (task.indices(), _OWNERS),
        torch=lambda indices, owners: indices // owners,
        moves=lambda indices, owners: 2 * nbytes(indices),
    ),
    Case(
        name="index_at",
        make=lambda task: (task.indices() // _OWNERS, _OWNER, _OWNERS, _SEED),
        torch=lambda places, owner, owners, seed: places * owners + owner,
        moves=lambda places, owner, owners, seed: 2 * nbytes(places),
        torch_check=of_the_same_form,
        remark=_OTHER_MAP,
    ),
    Case(
        name="multisplit",
        make=_owned,
        torch=_multisplit,
        moves=lambda indices, values, owner_of_each, owners: 2 * nbytes(indices, values) + nbytes(owner_of_each),
        remark=f"between {_OWNERS} owners",
    ),
)
