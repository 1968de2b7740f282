"""The inner loops, in interchangeable implementations that are equal bit for bit.

- ``reference``: plain torch and numpy; defines the semantics; runs everywhere and on every device.
- ``avx512``, ``avx2``, ``neon``, ``scalar``: compiled, for tensors in main memory, one for each instruction set.
- ``triton``: for tensors on a GPU, and loaded when the first of these comes. It lies above all others but a reference
  that was asked for by name, so it need not be chosen.

The implementation is chosen once, at import: the one that the environment variable ``THINWIRE_KERNELS`` names
(``native`` for the best compiled one), else the best that can run here, with one warning if that is the reference.
"""

import os
import warnings

from thinwire.errors import KernelError
from thinwire.kernels.reference import Reference
from thinwire.kernels.reference.selection import Taken
from thinwire.kernels.triton import TritonAnywhere, TritonKernels
from thinwire.kernels.triton import why_not as _why_not_triton

__all__ = [
    "Kernels",
    "Taken",
    "active",
    "at_least",
    "available",
    "bitmap_of_members_read",
    "bitmap_of_members_write",
    "bitmap_read",
    "bitmap_write",
    "corrected_threshold",
    "count_at_least",
    "crc32",
    "dense_mean_",
    "energy",
    "gather",
    "gaussian_threshold",
    "implementation",
    "importance",
    "importance_at_least",
    "index_at",
    "merge_sum",
    "moments",
    "multisplit",
    "owner_of",
    "pack_levels",
    "pack_values",
    "place_of",
    "rice_read",
    "rice_write",
    "sampled_spectrum",
    "sampled_threshold",
    "scatter_add_",
    "scatter_mean_",
    "scatter_sum_",
    "spectrum",
    "strength",
    "take_at",
    "take_top_k",
    "top_k",
    "top_k_segments",
    "unpack_levels",
    "unpack_values",
]

ENVIRONMENT = "THINWIRE_KERNELS"
NAMES = ("avx512", "avx2", "neon", "scalar", "triton", "reference")
NATIVE = "native"
TRITON = "triton"

Kernels = Reference
"""What every implementation offers: `thinwire.kernels.reference` documents each function."""


def implementation(name: str, threads: int | None = None) -> Kernels:
    """One implementation, whether it is the active one or not.

    Args:
        name: ``"reference"``, ``"triton"``, an instruction set, or ``"native"`` for the best one.
        threads: For compiled kernels: how many threads they may use; see `thinwire.kernels.native.Native`.

    Returns:
        An object with every function of `Kernels`.

    Raises:
        KernelError: There is no such implementation, or it cannot run here.
    """
    if name not in (*NAMES, NATIVE):
        raise KernelError(f"unknown kernels {name!r}; the known ones are {', '.join(NAMES)}, and native for the best")
    if name == "reference":
        return Reference()
    if name == TRITON:
        return _triton()
    try:
        from thinwire.kernels.layers import Layered
        from thinwire.kernels.native import INSTRUCTION_SETS
    except ImportError as error:
        raise KernelError(
            f"the {name} kernels are not available here ({error}); write {ENVIRONMENT}=reference, "
            "or reinstall thinwire where there is a C++20 compiler"
        ) from error
    return Layered(INSTRUCTION_SETS[0] if name == NATIVE else name, threads)


def available() -> dict[str, str]:
    """Every known implementation with ``"yes"``, or with the reason why it cannot run here."""
    return {name: _why_not(name) or "yes" for name in NAMES}


def active() -> str:
    """The name of the implementation in use."""
    return _active


def _triton() -> Kernels:
    """Triton's kernels for all that they can take, if they can run here."""
    if reason := _why_not_triton():
        raise KernelError(
            f"the triton kernels are not available here ({reason}); write {ENVIRONMENT}=native or leave it away: "
            "tensors on a GPU go to triton by themselves where they can"
        )
    return TritonAnywhere()


def _why_not(name: str) -> str:
    """Why an implementation cannot run here; empty if it can."""
    try:
        implementation(name, threads=1)
    except KernelError as error:
        return str(error)
    return ""


def _choose() -> str:
    """The implementation to use: the forced one, else the best that can run, with a warning if it is the slow one."""
    forced = os.environ.get(ENVIRONMENT)
    if forced and forced != NATIVE:
        return forced
    compiled = [name for name in NAMES if name not in (TRITON, "reference") and not _why_not(name)]
    if compiled or forced:
        return compiled[0] if compiled else NATIVE
    warnings.warn(
        f"thinwire is running on its reference kernels, which are several times slower: {_why_not(NATIVE)}. Reinstall "
        f"thinwire where there is a C++20 compiler, or set {ENVIRONMENT}=reference to accept this silently.",
        RuntimeWarning,
        stacklevel=2,
    )
    return "reference"


_active = _choose()
_kernels = implementation(_active) if os.environ.get(ENVIRONMENT) or _active != "reference" else TritonKernels()

energy = _kernels.energy
top_k = _kernels.top_k
take_top_k = _kernels.take_top_k
at_least = _kernels.at_least
gather = _kernels.gather
take_at = _kernels.take_at
count_at_least = _kernels.count_at_least
spectrum = _kernels.spectrum
sampled_spectrum = _kernels.sampled_spectrum
moments = _kernels.moments
gaussian_threshold = _kernels.gaussian_threshold
sampled_threshold = _kernels.sampled_threshold
corrected_threshold = _kernels.corrected_threshold
importance = _kernels.importance
importance_at_least = _kernels.importance_at_least
strength = _kernels.strength
top_k_segments = _kernels.top_k_segments
scatter_add_ = _kernels.scatter_add_
scatter_sum_ = _kernels.scatter_sum_
scatter_mean_ = _kernels.scatter_mean_
merge_sum = _kernels.merge_sum
dense_mean_ = _kernels.dense_mean_
owner_of = _kernels.owner_of
place_of = _kernels.place_of
index_at = _kernels.index_at
multisplit = _kernels.multisplit
rice_write = _kernels.rice_write
rice_read = _kernels.rice_read
bitmap_write = _kernels.bitmap_write
bitmap_read = _kernels.bitmap_read
bitmap_of_members_write = _kernels.bitmap_of_members_write
bitmap_of_members_read = _kernels.bitmap_of_members_read
pack_values = _kernels.pack_values
unpack_values = _kernels.unpack_values
pack_levels = _kernels.pack_levels
unpack_levels = _kernels.unpack_levels
crc32 = _kernels.crc32
