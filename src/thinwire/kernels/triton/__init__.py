"""Kernels for GPUs, written in Triton: the results of `thinwire.kernels.reference`, bit for bit.

They were compiled for GPUs and checked on the CPU by Triton's interpreter. They never ran on a GPU: see
``docs/kernels.md``.
"""

from thinwire.kernels.triton.base import INTERPRET, OnGpu, why_not
from thinwire.kernels.triton.coordinates import TritonCoordinates
from thinwire.kernels.triton.movement import TritonMovement
from thinwire.kernels.triton.selection import TritonSelection

__all__ = ["INTERPRET", "OnGpu", "TritonKernels", "why_not"]


class TritonKernels(TritonSelection, TritonMovement, TritonCoordinates):
    """The layer for tensors on a GPU; everything else goes on to the next layer."""

    def __init__(self, anywhere: bool = False) -> None:
        """Choose what is taken.

        Args:
            anywhere: Take tensors in main memory too, where Triton interprets its programs.
        """
        self.anywhere = anywhere
