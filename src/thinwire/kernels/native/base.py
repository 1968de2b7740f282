"""What the compiled kernels share: the machine they run on, what they can take, and what their answers mean.

Importing this module fails with `ImportError` where the compiled extension is missing.
"""

import torch
from torch import Tensor

import thinwire._native as _native
from thinwire.errors import WireError, WireReason

FLOATS = (torch.float32, torch.float64)
INDICES = (torch.int32, torch.int64)

OK = 0
# The other values of `Status` in native/core/status.h that bytes from a peer can lead to.
_REASONS = {1: WireReason.COORDINATES, 2: WireReason.PADDING, 3: WireReason.RANGE}


class OnMachine:
    """Kernels for one instruction set and a number of threads; their results depend on neither."""

    machine: _native.Machine


def fits(tensor: Tensor, dtypes: tuple[torch.dtype, ...]) -> bool:
    """Whether the compiled code can take the tensor as it lies in memory."""
    return (
        tensor.dtype in dtypes
        and tensor.device.type == "cpu"
        and tensor.dim() == 1
        and tensor.is_contiguous()
        and not tensor.requires_grad
        and tensor.data_ptr() % tensor.itemsize == 0
    )


def check(status: int, what: str) -> None:
    """Turn the status of a reading kernel into the error that the reference raises."""
    if status != OK:
        raise WireError(_REASONS[status], what)
