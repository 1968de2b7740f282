"""Kernels for GPUs, written in Triton: the results of `thinwire.kernels.reference`, bit for bit.

They were compiled for GPUs and checked on the CPU by Triton's interpreter. They never ran on a GPU: see
``docs/kernels.md``.
"""

from thinwire.kernels.triton.base import INTERPRET, why_not
from thinwire.kernels.triton.coordinates import TritonCoordinates
from thinwire.kernels.triton.movement import TritonMovement
from thinwire.kernels.triton.selection import TritonSelection

__all__ = ["INTERPRET", "TritonAnywhere", "TritonKernels", "why_not"]


class TritonKernels(TritonSelection, TritonMovement, TritonCoordinates):
    """The layer for tensors on a GPU; everything else goes on to the next layer."""


class TritonAnywhere(TritonKernels):
    """The same for tensors in main memory too, where Triton interprets its programs."""

    anywhere = True
