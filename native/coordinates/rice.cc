// Rice coding of increasing indices: parameter byte, low bits of every gap, unary quotients of every gap.
//
// The loops are written once and compiled for each instruction set: what they gain from one is wide registers for the
// measuring and shifts without flags for the rest.

#include <bit>
#include <type_traits>

#include "coordinates/coordinates.h"
#include "core/bits.h"

namespace thinwire {
namespace {

constexpr int kWindow = 4;

// What one pass over a list tells: whether it increases, and the sums of its quotients for `kWindow` parameters.
struct Measured {
  bool increasing;
  std::uint64_t sums[kWindow];
};

// Sums of quotients need no wider type than the indices: the gaps of an increasing list add up to less than its last
// index, and the sums of another list are not used.
template <class Index>
[[gnu::always_inline]] inline Measured measure_loop(const Index* indices, std::size_t count, int first) {
  using Bits = std::make_unsigned_t<Index>;
  const Bits gap = static_cast<Bits>(indices[0]);
  Bits falls = 0;
  Bits sum0 = gap >> first, sum1 = gap >> (first + 1), sum2 = gap >> (first + 2), sum3 = gap >> (first + 3);
  for (std::size_t i = 1; i < count; ++i) {
    const Index before = indices[i - 1], index = indices[i];
    falls |= static_cast<Bits>(index <= before);
    const Bits between = static_cast<Bits>(index) - static_cast<Bits>(before) - 1;
    sum0 += between >> first;
    sum1 += between >> (first + 1);
    sum2 += between >> (first + 2);
    sum3 += between >> (first + 3);
  }
  return {falls == 0, {sum0, sum1, sum2, sum3}};
}

// Where the two streams are written, and how much room each has.
struct Streams {
  std::uint8_t* low;
  std::size_t low_bytes;
  std::uint8_t* unary;  // zero before
  std::size_t unary_bytes;
};

// The two streams grow independently of each other, each in a register that is stored whole after every index.
template <class Index>
[[gnu::always_inline]] inline bool write_loop(const Index* indices, std::size_t count, int bits, Streams to) {
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  std::uint64_t next = 0;     // the smallest index the following one may be
  std::uint64_t pending = 0;  // low bits not yet final: fewer than 8 between two indices
  unsigned filled = 0;
  std::uint64_t end = 0;      // unary bits used
  std::uint64_t word = 0, ones = 0;  // the unary word in the making, and its number
  std::uint8_t* low = to.low;
  const std::uint8_t* const low_end = to.low + to.low_bytes;
  const std::uint64_t whole_words = to.unary_bytes / 8;
  std::size_t i = 0;
  const std::size_t roomy = bits == 0 ? 0 : to.low_bytes < 16 ? 0 : (to.low_bytes - 16) * 8 / bits;
  for (const std::size_t stop = roomy < count ? roomy : count; i < stop; ++i) {
    const std::uint64_t index = static_cast<std::uint64_t>(indices[i]);
    const std::uint64_t gap = index - next;
    const std::uint64_t place = end + (gap >> bits);
    if (place / 64 >= whole_words) break;
    next = index + 1;
    pending |= (gap & mask) << filled;
    filled += static_cast<unsigned>(bits);
    store_le(low, pending);
    low += filled / 8;
    pending >>= filled & 56;
    filled &= 7;
    ones = (place / 64 == word ? ones : 0) | std::uint64_t{1} << (place % 64);
    word = place / 64;
    store_le(to.unary + 8 * word, ones);
    end = place + 1;
  }
  for (const std::uint64_t unary_bits = 8 * static_cast<std::uint64_t>(to.unary_bytes); i < count; ++i) {
    const std::uint64_t index = static_cast<std::uint64_t>(indices[i]);
    const std::uint64_t gap = index - next;
    next = index + 1;
    pending |= (gap & mask) << filled;
    for (filled += static_cast<unsigned>(bits); filled >= 8; filled -= 8, pending >>= 8) {
      *low++ = static_cast<std::uint8_t>(pending);
    }
    if (gap >> bits >= unary_bits - end) return false;
    end += gap >> bits;
    to.unary[end / 8] |= static_cast<std::uint8_t>(1u << (end % 8));
    ++end;
  }
  if (filled > 0 && low < low_end) *low = static_cast<std::uint8_t>(pending);
  return true;
}

// What is read: checked for its lengths, its padding and the number of its ones.
struct Source {
  const std::uint8_t* low;
  std::size_t room;  // bytes from `low` to the end of the section
  const std::uint8_t* unary;
  std::size_t unary_bytes;
};

// False if an index lies outside. Looks once for each word of the unary stream, which is often enough: within a word
// the indices grow by less than 2^47.
template <class Index>
[[gnu::always_inline]] inline bool read_loop(Source from, int bits, std::uint64_t units, Index* out,
                                             std::size_t count) {
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  std::size_t done = 0;
  std::uint64_t start = 0;  // where this unary number begins
  std::uint64_t next = 0;   // the smallest index the following one may be
  for (std::size_t at = 0; at < from.unary_bytes; at += 8) {
    std::uint64_t word = load_le(from.unary + at, from.unary_bytes - at);
    const std::size_t ones = static_cast<std::size_t>(std::popcount(word));
    if (ones > count - done) return false;  // the stream changed since it was counted
    std::size_t bit = done * bits;
    const bool roomy = (bit + ones * bits) / 8 + 8 <= from.room;
    for (; word != 0; word &= word - 1, bit += bits) {
      const std::uint64_t end = 8 * at + static_cast<std::uint64_t>(std::countr_zero(word));
      const std::uint64_t low = load_le(from.low + bit / 8, roomy ? 8 : from.room - bit / 8) >> (bit % 8) & mask;
      next += ((end - start) << bits) + low;
      out[done++] = static_cast<Index>(next++);
      start = end + 1;
    }
    if (next > units) return false;
  }
  return done == count;
}

template <class Index>
struct Loops {
  Measured (*measure)(const Index*, std::size_t, int);
  bool (*write)(const Index*, std::size_t, int, Streams);
  bool (*read)(Source, int, std::uint64_t, Index*, std::size_t);
};

template <class Index>
Measured measure_plain(const Index* indices, std::size_t count, int first) {
  return measure_loop(indices, count, first);
}

template <class Index>
bool write_plain(const Index* indices, std::size_t count, int bits, Streams to) {
  return write_loop(indices, count, bits, to);
}

template <class Index>
bool read_plain(Source from, int bits, std::uint64_t units, Index* out, std::size_t count) {
  return read_loop(from, bits, units, out, count);
}

#if THINWIRE_X86
template <class Index>
THINWIRE_AVX2 Measured measure_avx2(const Index* indices, std::size_t count, int first) {
  return measure_loop(indices, count, first);
}

template <class Index>
THINWIRE_AVX512 Measured measure_avx512(const Index* indices, std::size_t count, int first) {
  return measure_loop(indices, count, first);
}

template <class Index>
THINWIRE_AVX2 bool write_avx2(const Index* indices, std::size_t count, int bits, Streams to) {
  return write_loop(indices, count, bits, to);
}

template <class Index>
THINWIRE_AVX2 bool read_avx2(Source from, int bits, std::uint64_t units, Index* out, std::size_t count) {
  return read_loop(from, bits, units, out, count);
}
#endif

template <class Index>
Loops<Index> loops_of(Isa isa) {
#if THINWIRE_X86
  if (isa == Isa::kAvx512) return {measure_avx512<Index>, write_avx2<Index>, read_avx2<Index>};
  if (isa == Isa::kAvx2) return {measure_avx2<Index>, write_avx2<Index>, read_avx2<Index>};
#endif
  static_cast<void>(isa);
  return {measure_plain<Index>, write_plain<Index>, read_plain<Index>};
}

}  // namespace

// One parameter bit more costs `count` low bits and saves about half of every quotient. The saving shrinks as the
// parameter grows, so the best parameter is the first that gains nothing by growing. It is close to log2 of the mean
// gap: a window there almost always holds it, so one pass over the indices is all it takes.
template <class Index>
RicePlan rice_plan(const Machine& machine, const Index* indices, std::size_t count, std::size_t units) {
  constexpr int kLastWindow = (8 * sizeof(Index) < 44 ? 8 * sizeof(Index) : 44) - kWindow;
  if (count == 0) return {Status::kOk, 0, 0};
  const auto measure = loops_of<Index>(machine.isa).measure;
  const std::uint64_t mean = static_cast<std::uint64_t>(indices[count - 1] < 0 ? 0 : indices[count - 1]) / count;
  const int guess = static_cast<int>(std::bit_width(mean)) - 3;
  int first = guess < 0 ? 0 : guess > kLastWindow ? kLastWindow : guess;
  int least = 0;  // smaller parameters gain by growing
  for (;;) {
    const Measured measured = measure(indices, count, first);
    if (!measured.increasing) return {indices[0] < 0 ? Status::kRange : Status::kOrder, 0, 0};
    if (indices[0] < 0 || static_cast<std::uint64_t>(indices[count - 1]) >= units) return {Status::kRange, 0, 0};
    int step = 0;
    while (step < kWindow - 1 && first + step < kMaxRiceBits &&
           measured.sums[step] - measured.sums[step + 1] > count) {
      ++step;
    }
    if (step == 0 && first > least) {
      first = first < kWindow - 1 ? 0 : first - (kWindow - 1);
    } else if (step == kWindow - 1 && first < kLastWindow) {
      least = first += kWindow - 1;
      first = first > kLastWindow ? kLastWindow : first;
    } else {
      const std::uint64_t unary = count + measured.sums[step];
      return {Status::kOk, first + step, 1 + bytes_for(count * (first + step)) + bytes_for(unary)};
    }
  }
}

template <class Index>
Status rice_write(const Machine& machine, const Index* indices, std::size_t count, int bits, std::uint8_t* out,
                  std::size_t size) {
  if (bits < 0 || bits > kMaxRiceBits || count == 0 || count > 8 * size) return Status::kSpace;
  const std::size_t low_bytes = bytes_for(count * bits);
  if (size < 1 + low_bytes) return Status::kSpace;
  out[0] = static_cast<std::uint8_t>(bits);
  const Streams to{out + 1, low_bytes, out + 1 + low_bytes, size - 1 - low_bytes};
  std::memset(to.unary, 0, to.unary_bytes);
  return loops_of<Index>(machine.isa).write(indices, count, bits, to) ? Status::kOk : Status::kSpace;
}

template <class Index>
Status rice_read(const Machine& machine, const std::uint8_t* data, std::size_t size, std::size_t units, Index* out,
                 std::size_t count) {
  if (size == 0 || data[0] > kMaxRiceBits || count / 8 > size) return Status::kCoordinates;
  const int bits = data[0];
  const std::size_t low_bytes = bytes_for(count * bits);
  if (size - 1 < low_bytes) return Status::kCoordinates;
  const Source from{data + 1, size - 1, data + 1 + low_bytes, size - 1 - low_bytes};
  const int spare = static_cast<int>(8 * low_bytes - count * bits);
  if (spare > 0 && (from.low[low_bytes - 1] >> (8 - spare)) != 0) return Status::kPadding;
  if (count_ones(machine, from.unary, from.unary_bytes) != count) return Status::kCoordinates;
  if (count == 0) return Status::kOk;
  const std::uint8_t last = from.unary[from.unary_bytes - 1];
  if (last == 0) return Status::kPadding;
  // All quotients together. Divided, not multiplied: a hostile one shifted left could wrap around and look harmless.
  const std::uint64_t quotients = 8 * static_cast<std::uint64_t>(from.unary_bytes - 1) + std::bit_width(last) - count;
  if (quotients > units >> bits) return Status::kRange;
  return loops_of<Index>(machine.isa).read(from, bits, units, out, count) ? Status::kOk : Status::kRange;
}

template RicePlan rice_plan(const Machine&, const std::int32_t*, std::size_t, std::size_t);
template RicePlan rice_plan(const Machine&, const std::int64_t*, std::size_t, std::size_t);
template Status rice_write(const Machine&, const std::int32_t*, std::size_t, int, std::uint8_t*, std::size_t);
template Status rice_write(const Machine&, const std::int64_t*, std::size_t, int, std::uint8_t*, std::size_t);
template Status rice_read(const Machine&, const std::uint8_t*, std::size_t, std::size_t, std::int32_t*, std::size_t);
template Status rice_read(const Machine&, const std::uint8_t*, std::size_t, std::size_t, std::int64_t*, std::size_t);

}  // namespace thinwire
