"""The compiled kernels behind the signatures of `thinwire.kernels.reference`, equal to it bit for bit.

What the compiled code does not handle (other devices, other dtypes, strided tensors) goes to the reference.
Importing this module fails with `ImportError` where the compiled extension is missing.
"""

import torch
from torch import Tensor

import thinwire._native as _native
from thinwire.errors import WireError, WireReason
from thinwire.kernels import reference
from thinwire.types import index_dtype

_FLOATS = (torch.float32, torch.float64)
_INDICES = (torch.int32, torch.int64)

_OK = 0
# The other values of `Status` in native/kernels.h that bytes from a peer can lead to.
_REASONS = {1: WireReason.COORDINATES, 2: WireReason.PADDING, 3: WireReason.RANGE}


def top_k(values: Tensor, k: int) -> Tensor:
    """The indices of the ``k`` largest magnitudes, increasing; equal magnitudes go to the lowest index first."""
    if not 0 < k < values.numel() or not _fits(values, _FLOATS):
        return reference.top_k(values, k)
    out = torch.empty(k, dtype=index_dtype(values.numel()))
    _native.top_k(values, out)
    return out


def at_least(values: Tensor, threshold: float) -> Tensor:
    """The indices of all magnitudes that are not below ``threshold``, increasing."""
    if not _fits(values, _FLOATS):
        return reference.at_least(values, threshold)
    out = torch.empty(_native.count_at_least(values, threshold), dtype=index_dtype(values.numel()))
    _native.at_least(values, threshold, out)
    return out


def scatter_add_(out: Tensor, indices: Tensor, values: Tensor) -> None:
    """Add each value at its index, in the order of the list.

    Raises:
        IndexError: An index lies outside ``out``. Nothing was added.
    """
    fits = _fits(out, _FLOATS) and _fits(indices, _INDICES) and _fits(values, (out.dtype,))
    if not fits or indices.numel() != values.numel():
        reference.scatter_add_(out, indices, values)
        return
    if _native.scatter_add(out, indices, values) != _OK:
        raise IndexError(f"an index is outside the {out.numel()} elements to be added to; nothing was added")


def rice_write(indices: Tensor, units: int) -> Tensor:
    """Write increasing indices as Rice-coded gaps: parameter byte, low bits, unary quotients.

    Raises:
        ValueError: The indices are not a strictly increasing list below ``units``.
    """
    indices = indices.cpu()
    if not _fits(indices, _INDICES):
        return reference.rice_write(indices, units)
    status, bits, size = _native.rice_plan(indices, units)
    out = torch.empty(size, dtype=torch.uint8)
    if status == _OK and size:
        status = _native.rice_write(indices, bits, out)
    if status != _OK:
        raise ValueError(f"the indices to be written are not a strictly increasing list below {units}")
    return out


def rice_read(data: Tensor, count: int, units: int) -> Tensor:
    """Read what `rice_write` wrote, trusting nothing.

    Raises:
        WireError: COORDINATES, PADDING or RANGE.
    """
    if count == 0 or not _fits(data, (torch.uint8,)):
        return reference.rice_read(data, count, units)
    # Every index takes at least one bit: refuse an absurd count before there is memory for it.
    if not 0 < count <= 8 * data.numel():
        raise WireError(WireReason.COORDINATES, f"{count} indices in {data.numel()} bytes")
    out = torch.empty(count, dtype=index_dtype(units))
    _check(_native.rice_read(data, units, out), f"{count} Rice-coded indices below {units}")
    return out


def bitmap_write(indices: Tensor, units: int) -> Tensor:
    """One bit for each unit, lowest bit first.

    Raises:
        IndexError: An index is not below ``units``.
    """
    indices = indices.cpu()
    if not _fits(indices, _INDICES):
        return reference.bitmap_write(indices, units)
    out = torch.empty(-(-units // 8), dtype=torch.uint8)
    if _native.bitmap_write(indices, units, out) != _OK:
        raise IndexError(f"an index to be written is not below {units}")
    return out


def bitmap_read(data: Tensor, count: int, units: int) -> Tensor:
    """Read what `bitmap_write` wrote.

    Raises:
        WireError: COORDINATES or PADDING.
    """
    if not 0 <= count <= units or not _fits(data, (torch.uint8,)):
        return reference.bitmap_read(data, count, units)
    # A bitmap of another size is refused before there is memory for its indices.
    if data.numel() != -(-units // 8):
        raise WireError(WireReason.COORDINATES, f"a bitmap of {data.numel()} bytes for {units} units")
    out = torch.empty(count, dtype=index_dtype(units))
    _check(_native.bitmap_read(data, units, out), f"a bitmap of {count} indices below {units}")
    return out


def _fits(tensor: Tensor, dtypes: tuple[torch.dtype, ...]) -> bool:
    """Whether the compiled code can take the tensor as it lies in memory."""
    return (
        tensor.dtype in dtypes
        and tensor.device.type == "cpu"
        and tensor.dim() == 1
        and tensor.is_contiguous()
        and not tensor.requires_grad
        and tensor.data_ptr() % tensor.itemsize == 0
    )


def _check(status: int, what: str) -> None:
    """Turn the status of a reading kernel into the error that the reference raises."""
    if status != _OK:
        raise WireError(_REASONS[status], what)
