"""The k-th largest magnitude by radix select, and what is not below it, in order.

The bits of a float without its sign, read as a whole number, are ordered as its magnitude is. A *state* is the number
found so far (its lower digits still zero), how many elements to take of those that begin with its digits, and behind
these two a table with one count for each value of the next digit.
"""

import triton
import triton.language as tl

from thinwire.kernels.triton.programs.blocks import places, ranks

HEAD = tl.constexpr(2)
"""Where the table of a state begins."""


@triton.jit
def magnitudes(values, at, n):
    """The magnitudes of some elements as whole numbers."""
    found = tl.load(values + at, mask=at < n, other=0.0)
    if values.dtype.element_ty == tl.float64:
        numbers = found.to(tl.int64, bitcast=True) & 0x7FFFFFFFFFFFFFFF
    else:
        numbers = found.to(tl.int32, bitcast=True) & 0x7FFFFFFF
    return numbers


@triton.jit
def tally(values, n, state, SHIFT: tl.constexpr, BINS: tl.constexpr):
    """Count the next digits of the magnitudes that begin as the state's number does."""
    at = places()
    numbers = magnitudes(values, at, n)
    digits = (numbers - tl.load(state).to(numbers.dtype)) >> SHIFT
    same = (at < n) & (digits >= 0) & (digits < BINS)
    counts = tl.histogram(tl.where(same, digits, 0).to(tl.int32), BINS, mask=same)
    bins = tl.arange(0, BINS)
    tl.atomic_add(state + HEAD + bins, counts.to(tl.int64), mask=counts > 0, sem="relaxed")


@triton.jit
def descend(state, following, SHIFT: tl.constexpr, BINS: tl.constexpr):
    """Find the digit at which, counted from the top, enough is taken. One instance; it writes the following state."""
    bins = tl.arange(0, BINS)
    counts = tl.load(state + HEAD + bins)
    wanted = tl.load(state + 1)
    from_top = tl.cumsum(counts, 0, reverse=True)
    digit = tl.sum((from_top >= wanted).to(tl.int64)) - 1
    above = tl.sum(tl.where(bins > digit, counts, 0))
    tl.store(following, tl.load(state) + (digit << SHIFT))
    tl.store(following + 1, wanted - above)


@triton.jit
def count(values, n, state, counts):
    """How many magnitudes of each block are above the state's number, and, in a second row, how many equal it."""
    at = places()
    numbers = magnitudes(values, at, n)
    floor = tl.load(state).to(numbers.dtype)
    block = tl.program_id(0)
    tl.store(counts + block, tl.sum(((at < n) & (numbers > floor)).to(tl.int32)))
    tl.store(counts + tl.num_programs(0) + block, tl.sum(((at < n) & (numbers == floor)).to(tl.int32)))


@triton.jit
def pick(values, n, state, before, indices):
    """Write the places of what is above the number, and of the first few that equal it; ``before`` sums `count`."""
    at = places()
    numbers = magnitudes(values, at, n)
    floor = tl.load(state).to(numbers.dtype)
    wanted = tl.load(state + 1)
    block = tl.program_id(0)
    above_before = tl.load(before + block)
    equal_before = tl.load(before + tl.num_programs(0) + block)
    equal = (at < n) & (numbers == floor)
    chosen = ((at < n) & (numbers > floor)) | (equal & (equal_before + ranks(equal) <= wanted))
    place = above_before + tl.minimum(equal_before, wanted) + ranks(chosen) - 1
    tl.store(indices + place, at.to(indices.dtype.element_ty), mask=chosen)


@triton.jit
def square(values, n, energies):
    """The sum of squares of each block, in float64: there the square of no float32 overflows or vanishes."""
    at = places()
    wide = tl.load(values + at, mask=at < n, other=0.0).to(tl.float64)
    tl.store(energies + tl.program_id(0), tl.sum(wide * wide))


@triton.jit
def owe(owed, gradient, out, energies, n):
    """Write the sum of two tensors, and the sum of squares of each block of it."""
    at = places()
    total = tl.load(owed + at, mask=at < n, other=0.0) + tl.load(gradient + at, mask=at < n, other=0.0)
    tl.store(out + at, total, mask=at < n)
    wide = total.to(tl.float64)
    tl.store(energies + tl.program_id(0), tl.sum(wide * wide))
