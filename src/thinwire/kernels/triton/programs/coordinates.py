"""Bits to places and places to bits; the gaps of Rice sections.

Sections are written as words of 32 or 64 bits, lowest bit first, into which the instances put their bits by atomic OR.
They are read bit by bit, at any alignment.
"""

import triton
import triton.language as tl

from thinwire.kernels.triton.programs.blocks import places, ranks

ROWS = tl.constexpr(64)
"""Gaps that are shifted by all 64 distances at once."""
ROUNDS = tl.constexpr(64)
"""How many times an instance does that: `BLOCK` gaps together."""
LOW_BYTES = tl.constexpr(6)
"""Bytes that hold 40 low bits wherever they begin."""


@triton.jit
def gaps_at(indices, at, n):
    """The gaps in front of some indices; zero behind the last."""
    here = tl.load(indices + at, mask=at < n, other=0).to(tl.int64)
    there = tl.load(indices + at - 1, mask=(at > 0) & (at < n), other=-1).to(tl.int64)
    return tl.where(at < n, here - there - 1, 0)


@triton.jit
def shift_gaps(indices, n, sums):
    """For every distance from 0 to 63, add up the gaps shifted by it. The last counts, negatively, negative gaps."""
    distances = tl.arange(0, 64)
    total = tl.zeros([ROWS, 64], dtype=tl.int64)
    for turn in range(ROUNDS):
        at = (tl.program_id(0).to(tl.int64) * ROUNDS + turn) * ROWS + tl.arange(0, ROWS)
        total += gaps_at(indices, at, n)[:, None] >> distances[None, :]
    tl.atomic_add(sums + distances, tl.sum(total, 0), sem="relaxed")


@triton.jit
def split_gaps(indices, n, bits, words, lengths):
    """Put the ``bits`` low bits of every gap into 64-bit words, and write the length of its unary rest."""
    at = places()
    gaps = gaps_at(indices, at, n)
    low = gaps & ((tl.full([], 1, tl.int64) << bits) - 1)
    word, bit = (at * bits) >> 6, (at * bits) & 63
    over = (low >> 1) >> (63 - bit)  # in two steps: no shift may be 64 wide
    tl.atomic_or(words + word, low << bit, mask=(at < n) & (low > 0), sem="relaxed")
    tl.atomic_or(words + word + 1, over, mask=(at < n) & (over > 0), sem="relaxed")
    tl.store(lengths + at, (gaps >> bits) + 1, mask=at < n)


@triton.jit
def mark(positions, n, words):
    """Set the bits at ``n`` places in 32-bit words."""
    at = places()
    there = tl.load(positions + at, mask=at < n, other=0).to(tl.int64)
    bit = tl.full([], 1, tl.int32) << (there & 31).to(tl.int32)
    tl.atomic_or(words + (there >> 5), bit, mask=at < n, sem="relaxed")


@triton.jit
def bits_at(data, at, n):
    """Some bits out of bytes."""
    octets = tl.load(data + (at >> 3), mask=at < n, other=0).to(tl.int32)
    return (octets >> (at & 7).to(tl.int32)) & 1


@triton.jit
def count_ones(data, n, counts):
    """How many of each block's bits are set."""
    tl.store(counts + tl.program_id(0), tl.sum(bits_at(data, places(), n)))


@triton.jit
def find_ones(data, n, before, positions):
    """Write the places of the bits that are set; ``before`` sums `count_ones`."""
    at = places()
    ones = bits_at(data, at, n)
    place = tl.load(before + tl.program_id(0)) + ranks(ones) - 1
    tl.store(positions + place, at.to(positions.dtype.element_ty), mask=ones > 0)


@triton.jit
def join_gaps(data, n, bits, ends, steps):
    """From low bits and the ends of the unary numbers, how far each index lies behind the one before.

    A step of 2**42 and more is cut there: it is refused anyway, and no sum of such steps comes back into range unseen.
    """
    at = places()
    one = tl.full([], 1, tl.int64)
    first, last = (at * bits) >> 3, (one * n * bits + 7) >> 3
    low = tl.zeros_like(at)
    for octet in tl.static_range(LOW_BYTES):
        inside = (at < n) & (first + octet < last)
        low |= tl.load(data + first + octet, mask=inside, other=0).to(tl.int64) << (8 * octet)
    low = (low >> ((at * bits) & 7)) & ((one << bits) - 1)
    quotients = tl.minimum(gaps_at(ends, at, n), (one << 42) >> bits)
    tl.store(steps + at, (quotients << bits) + low + 1, mask=at < n)
