"""How the elements of a tensor are dealt out to the instances of a program."""

import triton
import triton.language as tl

BLOCK = tl.constexpr(4096)
"""Elements of one block."""


@triton.jit
def places():
    """The places of this instance's elements."""
    return tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)


@triton.jit
def ranks(flags):
    """For every flag, how many are set up to and including it."""
    return tl.cumsum(flags.to(tl.int32), 0)
