// Rice coding of increasing indices: parameter byte, low bits of every gap, unary quotients of every gap.

#include <bit>

#include "core/bits.h"
#include "coordinates/coordinates.h"

namespace thinwire {
namespace {

// Calls `visit(gap)` for every gap of a list known to be increasing.
template <class Index, class Visit>
void for_each_gap(const Index* indices, std::size_t count, Visit visit) {
  std::uint64_t next = 0;  // the smallest index the following one may be
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t index = static_cast<std::uint64_t>(indices[i]);
    visit(index - next);
    next = index + 1;
  }
}

// Bits of all gaps at once with another parameter bit: `count` low bits more, half of every quotient less.
// The saving shrinks as the parameter grows, so the best parameter is the first that gains nothing by growing.
template <class Index>
bool gains_by_growing(const Index* indices, std::size_t count, int bits) {
  std::uint64_t saved = 0;
  for_each_gap(indices, count, [&](std::uint64_t gap) { saved += ((gap >> bits) + 1) >> 1; });
  return saved > count;
}

template <class Index>
int best_bits(const Index* indices, std::size_t count) {
  // The parameter is close to log2 of the mean gap: start there and walk.
  const std::uint64_t mean = static_cast<std::uint64_t>(indices[count - 1]) / count;
  int bits = mean == 0 ? 0 : static_cast<int>(std::bit_width(mean)) - 1;
  bits = bits > kMaxRiceBits ? kMaxRiceBits : bits;
  while (bits > 0 && !gains_by_growing(indices, count, bits - 1)) --bits;
  while (bits < kMaxRiceBits && gains_by_growing(indices, count, bits)) ++bits;
  return bits;
}

}  // namespace

template <class Index>
RicePlan rice_plan(const Index* indices, std::size_t count, std::size_t units) {
  if (count == 0) return {Status::kOk, 0, 0};
  if (indices[0] < 0) return {Status::kRange, 0, 0};
  for (std::size_t i = 1; i < count; ++i) {
    if (indices[i] <= indices[i - 1]) return {Status::kOrder, 0, 0};
  }
  if (static_cast<std::uint64_t>(indices[count - 1]) >= units) return {Status::kRange, 0, 0};
  const int bits = best_bits(indices, count);
  std::uint64_t unary = count;
  for_each_gap(indices, count, [&](std::uint64_t gap) { unary += gap >> bits; });
  return {Status::kOk, bits, 1 + bytes_for(count * bits) + bytes_for(unary)};
}

template <class Index>
Status rice_write(const Index* indices, std::size_t count, int bits, std::uint8_t* out, std::size_t size) {
  if (bits < 0 || bits > kMaxRiceBits || count == 0 || count > 8 * size) return Status::kSpace;
  const std::size_t low_bytes = bytes_for(count * bits);
  if (size < 1 + low_bytes) return Status::kSpace;
  out[0] = static_cast<std::uint8_t>(bits);
  std::uint8_t* low = out + 1;
  std::uint8_t* unary = low + low_bytes;
  const std::uint64_t unary_bits = 8 * static_cast<std::uint64_t>(size - 1 - low_bytes);
  std::memset(unary, 0, size - 1 - low_bytes);
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  std::uint64_t pending = 0;  // low bits not yet written: never more than 7 + kMaxRiceBits
  int filled = 0;
  std::uint64_t end = 0;  // unary bits used
  bool fits = true;
  for_each_gap(indices, count, [&](std::uint64_t gap) {
    pending |= (gap & mask) << filled;
    for (filled += bits; filled >= 8; filled -= 8, pending >>= 8) *low++ = static_cast<std::uint8_t>(pending);
    const std::uint64_t quotient = gap >> bits;
    fits = fits && quotient < unary_bits - end;
    if (!fits) return;
    end += quotient;
    unary[end / 8] |= static_cast<std::uint8_t>(1u << (end % 8));
    ++end;
  });
  if (filled > 0) *low = static_cast<std::uint8_t>(pending);
  return fits ? Status::kOk : Status::kSpace;
}

template <class Index>
Status rice_read(const std::uint8_t* data, std::size_t size, std::size_t units, Index* out, std::size_t count) {
  if (size == 0 || data[0] > kMaxRiceBits || count / 8 > size) return Status::kCoordinates;
  const int bits = data[0];
  const std::size_t low_bytes = bytes_for(count * bits);
  if (size - 1 < low_bytes) return Status::kCoordinates;
  const std::uint8_t* low = data + 1;
  const int spare = static_cast<int>(8 * low_bytes - count * bits);
  if (spare > 0 && (low[low_bytes - 1] >> (8 - spare)) != 0) return Status::kPadding;
  const std::uint8_t* unary = low + low_bytes;
  const std::size_t unary_bytes = size - 1 - low_bytes;
  if (count_ones(unary, unary_bytes) != count) return Status::kCoordinates;
  if (count > 0 && unary[unary_bytes - 1] == 0) return Status::kPadding;

  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  std::size_t done = 0;
  std::uint64_t start = 0;  // where this unary number begins
  std::uint64_t next = 0;   // the smallest index the following one may be; never beyond `units`
  const bool in_range = for_each_one(unary, unary_bytes, [&](std::uint64_t end) {
    const std::uint64_t quotient = end - start;
    start = end + 1;
    const std::size_t at = done * bits;
    const std::uint64_t remainder = (load_le(low + at / 8, size - 1 - at / 8) >> (at % 8)) & mask;
    // Divided, not multiplied: a hostile quotient shifted left could wrap around and look harmless.
    if (done == count || quotient > (units - next) >> bits) return false;
    const std::uint64_t gap = (quotient << bits) | remainder;
    if (gap >= units - next) return false;
    out[done++] = static_cast<Index>(next + gap);
    next += gap + 1;
    return true;
  });
  return in_range ? Status::kOk : Status::kRange;
}

template RicePlan rice_plan(const std::int32_t*, std::size_t, std::size_t);
template RicePlan rice_plan(const std::int64_t*, std::size_t, std::size_t);
template Status rice_write(const std::int32_t*, std::size_t, int, std::uint8_t*, std::size_t);
template Status rice_write(const std::int64_t*, std::size_t, int, std::uint8_t*, std::size_t);
template Status rice_read(const std::uint8_t*, std::size_t, std::size_t, std::int32_t*, std::size_t);
template Status rice_read(const std::uint8_t*, std::size_t, std::size_t, std::int64_t*, std::size_t);

}  // namespace thinwire
