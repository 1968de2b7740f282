"""Values out of and into a dense tensor, at unique indices, so that no two instances meet."""

import triton
import triton.language as tl

from thinwire.kernels.triton.programs.blocks import places


@triton.jit
def lift(values, indices, taken, n):
    """Take the values at ``n`` indices out, and leave zeros."""
    at = places()
    there = tl.load(indices + at, mask=at < n, other=0).to(tl.int64)
    tl.store(taken + at, tl.load(values + there, mask=at < n), mask=at < n)
    # One thread may read a value and another one put the zero there: first all are to have read.
    tl.debug_barrier()
    tl.store(values + there, tl.zeros_like(there).to(values.dtype.element_ty), mask=at < n)


@triton.jit
def drop(out, indices, values, n):
    """Add ``n`` values at their indices."""
    at = places()
    there = tl.load(indices + at, mask=at < n, other=0).to(tl.int64)
    total = tl.load(out + there, mask=at < n) + tl.load(values + at, mask=at < n)
    tl.store(out + there, total, mask=at < n)
