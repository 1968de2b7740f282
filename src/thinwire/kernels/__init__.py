"""The inner loops, in interchangeable implementations that are equal bit for bit.

- ``reference``: plain torch and numpy; defines the semantics; runs everywhere and on every device.
- ``native``: compiled, for CPU tensors; hands everything else to the reference.

The implementation is chosen once, at import: the one that the environment variable ``THINWIRE_KERNELS`` names,
else ``native`` where it can be imported, else ``reference`` with one warning.
"""

import importlib
import os
import warnings
from typing import Protocol, cast

from torch import Tensor

from thinwire.errors import KernelError

__all__ = [
    "Kernels",
    "active",
    "at_least",
    "available",
    "bitmap_read",
    "bitmap_write",
    "implementation",
    "rice_read",
    "rice_write",
    "scatter_add_",
    "top_k",
]

ENVIRONMENT = "THINWIRE_KERNELS"
NAMES = ("native", "reference")


class Kernels(Protocol):
    """What every implementation offers. `thinwire.kernels.reference` documents each function."""

    def top_k(self, values: Tensor, k: int) -> Tensor:
        """Select the ``k`` largest magnitudes, exactly."""

    def at_least(self, values: Tensor, threshold: float) -> Tensor:
        """Select the magnitudes that are not below ``threshold``."""

    def scatter_add_(self, out: Tensor, indices: Tensor, values: Tensor) -> None:
        """Add values at their indices."""

    def rice_write(self, indices: Tensor, units: int) -> Tensor:
        """Write indices as Rice-coded gaps."""

    def rice_read(self, data: Tensor, count: int, units: int) -> Tensor:
        """Read Rice-coded gaps."""

    def bitmap_write(self, indices: Tensor, units: int) -> Tensor:
        """Write indices as a bitmap."""

    def bitmap_read(self, data: Tensor, count: int, units: int) -> Tensor:
        """Read a bitmap."""


def implementation(name: str) -> Kernels:
    """One implementation, whether it is the active one or not.

    Args:
        name: ``"native"`` or ``"reference"``.

    Returns:
        An object with every function of `Kernels`.

    Raises:
        KernelError: There is no such implementation, or it cannot run here.
    """
    if name not in NAMES:
        raise KernelError(f"unknown kernels {name!r}; the known ones are {', '.join(NAMES)}")
    try:
        return cast(Kernels, importlib.import_module(f"thinwire.kernels.{name}"))
    except ImportError as error:
        raise KernelError(
            f"the {name} kernels are not available here ({error}); write {ENVIRONMENT}=reference, "
            "or reinstall thinwire where there is a C++20 compiler"
        ) from error


def available() -> dict[str, str]:
    """Every known implementation with ``"yes"``, or with the reason why it cannot run here."""
    return {name: _why_not(name) or "yes" for name in NAMES}


def active() -> str:
    """The name of the implementation in use."""
    return _active


def _why_not(name: str) -> str:
    """Why an implementation cannot run here; empty if it can."""
    try:
        importlib.import_module(f"thinwire.kernels.{name}")
    except ImportError as error:
        return str(error) or type(error).__name__
    return ""


def _choose() -> str:
    """The implementation to use: the forced one, else the best that can run, with a warning if it is the slow one."""
    forced = os.environ.get(ENVIRONMENT)
    if forced:
        implementation(forced)
        return forced
    reason = _why_not("native")
    if not reason:
        return "native"
    warnings.warn(
        f"thinwire is running on its reference kernels, which are several times slower: {reason}. Reinstall "
        f"thinwire where there is a C++20 compiler, or set {ENVIRONMENT}=reference to accept this silently.",
        RuntimeWarning,
        stacklevel=2,
    )
    return "reference"


_active = _choose()
_kernels = implementation(_active)

top_k = _kernels.top_k
at_least = _kernels.at_least
scatter_add_ = _kernels.scatter_add_
rice_write = _kernels.rice_write
rice_read = _kernels.rice_read
bitmap_write = _kernels.bitmap_write
bitmap_read = _kernels.bitmap_read
