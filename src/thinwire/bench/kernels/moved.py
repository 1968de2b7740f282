"""How many bytes there are to be moved."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from thinwire.types import index_dtype

_LINE = 64


def nbytes(*tensors: Tensor) -> int:
    """Bytes of some tensors together."""
    return sum(tensor.numel() * tensor.itemsize for tensor in tensors)


def tensors_in(part: Any) -> Iterator[Tensor]:
    """The tensors of an argument, or of a list of arguments, however deep.

    Args:
        part: The argument.
    """
    if isinstance(part, Tensor):
        yield part
    elif isinstance(part, list | tuple):
        for inner in part:
            yield from tensors_in(inner)


def index_bytes(units: int, count: int) -> int:
    """Bytes of ``count`` indices of ``units`` units."""
    return count * index_dtype(units).itemsize


def line_bytes(dense: Tensor, indices: Tensor) -> int:
    """Bytes of the cache lines that some elements lie in, as memory moves nothing smaller. The indices increase."""
    lines = indices // (_LINE // dense.itemsize)
    touched: int = torch.unique_consecutive(lines).numel()
    return _LINE * touched
