"""Which elements are worth sending."""

import numpy as np
import torch
from torch import Tensor

from thinwire.bench.kernels.case import Case
from thinwire.bench.kernels.checks import largest, taken
from thinwire.bench.kernels.data import Task
from thinwire.bench.kernels.moved import index_bytes, nbytes
from thinwire.kernels import Kernels


def _with_threshold(task: Task) -> tuple[Tensor, float]:
    """A gradient, and a threshold that as many of its elements reach as are wanted (of equal ones: as many more)."""
    values = task.gradient()
    position = task.size - task.k
    return values, float(np.partition(values.abs().numpy(), position)[position])


def _in_place(kernels: Kernels, owed: Tensor, gradient: Tensor, k: int) -> object:
    return kernels.take_top_k(owed, gradient, owed, k)


def _take_top_k(owed: Tensor, gradient: Tensor, k: int) -> tuple[Tensor, Tensor]:
    owed.add_(gradient)
    indices = owed.abs().topk(k, sorted=False).indices
    values = owed.gather(0, indices)
    owed.index_fill_(0, indices, 0.0)
    return indices, values


SELECTION = (
    Case(
        name="top_k",
        make=lambda task: (task.gradient(), task.k),
        torch=lambda values, k: values.abs().topk(k, sorted=False).indices,
        moves=lambda values, k: nbytes(values) + index_bytes(len(values), k),
        torch_check=largest,
    ),
    Case(
        name="take_top_k",
        make=lambda task: (task.gradient(), task.gradient(), task.k),
        call=_in_place,
        torch=_take_top_k,
        moves=lambda owed, gradient, k: (
            2 * nbytes(owed) + nbytes(gradient) + index_bytes(len(owed), k) + k * owed.itemsize
        ),
        changes=(0,),
        torch_check=taken,
    ),
    Case(
        name="at_least",
        make=_with_threshold,
        torch=lambda values, threshold: torch.nonzero(values.abs() >= threshold).squeeze(1),
        moves=lambda values, threshold: (
            nbytes(values) + index_bytes(len(values), int((values.abs() >= threshold).sum()))
        ),
    ),
)
"""``take_top_k`` works in place here, as `Tensor.add_` does beside it."""
