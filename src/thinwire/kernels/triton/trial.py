"""A trial on a device: every kernel once, against the reference on the CPU."""

import torch
from torch import Tensor

from thinwire.kernels.reference import Reference

_LENGTH = 10_000
_SHARE = 700


def trial(kernels: Reference, device: torch.device) -> str:
    """Run every kernel on a few values on a device.

    A program may fail to compile on a device, or to load. Whoever asks falls back then, so nothing may be raised here.

    Args:
        kernels: What is to be tried.
        device: Where.

    Returns:
        What went wrong: a kernel raised, or did not give what the reference gives. Empty if nothing did.
    """
    try:
        for name, expected, found in zip(_NAMES, _results(Reference(), _CPU), _results(kernels, device), strict=True):
            if not torch.equal(expected, found.cpu()):
                return f"{name} by Triton differs from the reference on it; please report this"
    except Exception as error:
        return f"Triton's kernels do not run on it ({type(error).__name__}: {error})"
    return ""


_CPU = torch.device("cpu")
_NAMES = ("top_k", "at_least", "energy", "take_top_k", "take_top_k", "scatter_add_", "rice", "rice", "bitmap", "bitmap")


def _results(kernels: Reference, device: torch.device) -> list[Tensor]:
    """What the kernels make of the same values everywhere; many of these are equal."""
    ramp = torch.arange(_LENGTH) * 7919 % 1009
    values = (ramp.float() - 500.0).to(device)
    out = torch.empty_like(values)
    top = kernels.top_k(values, _SHARE)
    taken = kernels.take_top_k(values, values, out, _SHARE)
    kernels.scatter_add_(out, top, taken.values)
    rice, bitmap = kernels.rice_write(top, _LENGTH), kernels.bitmap_write(top, _LENGTH)
    threes = torch.full((100,), 3.0, device=device)  # whose norm is 30: no way to compute it rounds
    return [
        top,
        kernels.at_least(values, 321.0),
        torch.tensor(kernels.energy(threes)),
        taken.indices,
        taken.values,
        out,
        rice,
        kernels.rice_read(rice.to(device), _SHARE, _LENGTH),
        bitmap,
        kernels.bitmap_read(bitmap.to(device), _SHARE, _LENGTH),
    ]
