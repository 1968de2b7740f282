"""Moving units in and out of flat tensors."""

import math

import torch
from torch import Tensor
from torch.nn import functional

from thinwire import kernels
from thinwire.types import Selection, unit_count


def accumulation_dtype(dtype: torch.dtype) -> torch.dtype:
    """The type in which gradients of ``dtype`` are owed and summed: float32, or float64 for float64."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def flatten(gradient: Tensor) -> Tensor:
    """Any gradient as a flat, contiguous tensor of its accumulation type (a view where that is possible)."""
    return gradient.detach().reshape(-1).to(accumulation_dtype(gradient.dtype)).contiguous()


def _memory_order(parameter: Tensor) -> list[int]:
    """Its dimensions in the order of its memory: the order in which DDP lays out its gradient.

    DDP keeps the strides of a parameter that fills its memory without gaps, for example channels last, and makes
    all others contiguous.
    """
    order = sorted(range(parameter.dim()), key=lambda d: (parameter.stride(d), parameter.shape[d]), reverse=True)
    return order if parameter.permute(order).is_contiguous() else list(range(parameter.dim()))


def logical(flat: Tensor, parameter: Tensor) -> Tensor:
    """A parameter's debt, which lies in the order of its memory, in the order of its indices: fit to be saved."""
    order = _memory_order(parameter)
    back = [order.index(d) for d in range(parameter.dim())]
    return flat.view([parameter.shape[d] for d in order]).permute(back).reshape(-1)


def physical(flat: Tensor, parameter: Tensor) -> Tensor:
    """The inverse of `logical`, for a parameter that may have other strides by now."""
    return flat.view(parameter.shape).permute(_memory_order(parameter)).reshape(-1)


def in_memory_order(parameter: Tensor) -> Tensor:
    """A parameter's values in the order in which DDP lays out its gradient; a view, unless its memory has gaps."""
    return parameter.detach().permute(_memory_order(parameter)).reshape(-1)


def memory_shape(parameter: Tensor) -> tuple[int, ...]:
    """A parameter's shape in the order of its memory."""
    return tuple(parameter.shape[d] for d in _memory_order(parameter))


def padded(flat: Tensor, width: int) -> Tensor:
    """``flat`` as a table of units, one row each; the last one filled up with zeros."""
    rows = unit_count(flat.numel(), width)
    return functional.pad(flat, (0, rows * width - flat.numel())).view(rows, width)


def take(flat: Tensor, indices: Tensor | None, width: int = 1) -> Tensor:
    """The values of some units (None: of all), flat, in a tensor of their own."""
    if width == 1:
        return flat.clone() if indices is None else flat.index_select(0, indices)
    table = padded(flat, width)
    return table.reshape(-1).clone() if indices is None else table.index_select(0, indices).reshape(-1)


def add_(out: Tensor, selection: Selection) -> None:
    """Add a selection into a flat tensor."""
    if selection.is_full:
        out.add_(selection.values[: selection.numel])
        return
    elements, values = _inside(selection)
    kernels.scatter_add_(out, elements, values.to(out.dtype))


def put_(out: Tensor, selection: Selection, values: Tensor) -> None:
    """Write one value for each of a selection's elements into a flat tensor."""
    if selection.is_full:
        out.copy_(values[: selection.numel])
        return
    elements, values = _inside(selection, values)
    out.index_copy_(0, elements.long(), values)


def _inside(selection: Selection, values: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Elements and values without the padding of a last, short unit."""
    elements, values = selection.elements(), selection.values if values is None else values
    if selection.width > 1 and selection.numel % selection.width:
        inside = elements < selection.numel
        return elements[inside], values[inside]
    return elements, values


def energy(values: Tensor) -> float:
    """The sum of squares; not a finite number exactly if some element is not."""
    return kernels.energy(values)


def is_finite(values: Tensor) -> bool:
    """Whether every element is a finite number."""
    return math.isfinite(energy(values))
