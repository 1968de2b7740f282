"""The compiled kernels behind the signatures of `thinwire.kernels.reference`, equal to it bit for bit."""

import os

import torch

import thinwire._native as _native
from thinwire.errors import KernelError
from thinwire.kernels.native.coordinates import NativeCoordinates
from thinwire.kernels.native.movement import NativeMovement
from thinwire.kernels.native.selection import NativeSelection
from thinwire.kernels.native.statistics import NativeStatistics
from thinwire.kernels.native.values import NativeValues
from thinwire.kernels.reference import Reference

__all__ = ["INSTRUCTION_SETS", "THREADS", "Native"]

INSTRUCTION_SETS: tuple[str, ...] = tuple(_native.instruction_sets())
"""What this processor has, best first."""

THREADS = "THINWIRE_THREADS"
_MOST = 64
_USUAL_MOST = 4  # two threads saturate the memory of most machines; more only take cores away from training


class Native(NativeStatistics, NativeSelection, NativeMovement, NativeCoordinates, NativeValues, Reference):
    """The compiled kernels for one instruction set; what they cannot take goes down to the reference."""

    def __init__(self, instruction_set: str, threads: int | None = None) -> None:
        """Choose the machine.

        Args:
            instruction_set: One of `INSTRUCTION_SETS`.
            threads: How many threads a kernel may use; None for the environment variable ``THINWIRE_THREADS``, else
                as many as torch may use, four at the most.

        Raises:
            KernelError: There is no such instruction set here, or no such number of threads.
        """
        if instruction_set not in INSTRUCTION_SETS:
            raise KernelError(
                f"this processor has no {instruction_set!r} instructions; it has {', '.join(INSTRUCTION_SETS)}"
            )
        self.machine = _native.Machine(instruction_set, _threads() if threads is None else _checked(threads))


def _threads() -> int:
    """As many as the user said, or as torch may use: torchrun gives each rank its part that way."""
    text = os.environ.get(THREADS, "")
    if not text:
        return min(_USUAL_MOST, torch.get_num_threads())
    return _checked(int(text) if text.isdecimal() else text)


def _checked(threads: object) -> int:
    if isinstance(threads, int) and 1 <= threads <= _MOST:
        return threads
    raise KernelError(f"{threads!r} threads for the kernels; write a whole number from 1 to {_MOST} ({THREADS})")
