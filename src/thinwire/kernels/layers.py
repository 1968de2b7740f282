"""The layers of kernels, one on top of the other: each takes what it is for and hands everything else down.

Importing this module fails with `ImportError` where the compiled extension is missing.
"""

from thinwire.kernels.native import Native
from thinwire.kernels.triton import TritonKernels

__all__ = ["Layered"]


class Layered(TritonKernels, Native):
    """Triton's kernels for tensors on a GPU, compiled ones for main memory, the reference for the rest.

    The GPU's layer lies above, as the compiled coordinate kernels copy any indices to main memory: which is what should
    happen to indices on a GPU where the layer above did not take them.
    """
