// Exact top-k in linear time, without sorting.
//
// A floor that lets few more than k magnitudes through is guessed from a sample; one pass collects what reaches it;
// a radix selection among those finds the exact k-th magnitude; they are filtered in index order. A guess that lets
// too few or too many through costs time only: a histogram of the leading bits then gives a floor that is safe.

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "core/bits.h"
#include "selection/selection.h"

namespace thinwire {
namespace {

constexpr int kDigitBits = 11;
constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;
constexpr std::size_t kBlock = 16;
constexpr std::size_t kSample = std::size_t{1} << 16;
constexpr std::size_t kSampleFrom = 4 * kSample;  // below this a sample saves nothing

using Histogram = std::array<std::size_t, kDigits>;

// The digit in which the rank-th largest lies. Leaves in `rank` its rank among the equal digits.
std::size_t find_digit(const Histogram& histogram, std::size_t& rank) {
  std::size_t digit = kDigits - 1;
  while (digit > 0 && rank > histogram[digit]) rank -= histogram[digit--];
  return digit;
}

// Keeps the magnitudes that have `digit` at `shift`; returns how many. `to` may be `from`, and needs room for one more.
template <class Bits>
std::size_t keep_digit(const Bits* from, std::size_t n, Bits* to, Bits digit, int shift, Bits mask) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const Bits value = from[i];
    to[kept] = value;
    kept += ((value >> shift) & mask) == digit;
  }
  return kept;
}

// The rank-th largest of n magnitudes; rank counts from 1 to n.
template <class Bits>
Bits nth_largest(const Bits* magnitudes, std::size_t n, std::size_t rank) {
  std::unique_ptr<Bits[]> scratch;
  Bits prefix = 0;
  int next;
  for (int shift = 8 * sizeof(Bits) - 1; shift > 0; shift = next) {
    next = std::max(0, shift - kDigitBits);
    const Bits mask = static_cast<Bits>((Bits{1} << (shift - next)) - 1);
    Histogram histogram{};
    for (std::size_t i = 0; i < n; ++i) ++histogram[(magnitudes[i] >> next) & mask];
    const Bits digit = static_cast<Bits>(find_digit(histogram, rank));
    if (!scratch) scratch = std::make_unique_for_overwrite<Bits[]>(histogram[digit] + 1);
    n = keep_digit(magnitudes, n, scratch.get(), digit, next, mask);
    magnitudes = scratch.get();
    prefix |= digit << next;
  }
  return prefix;
}

// What may belong to the top k: in index order, everything that is not below `floor`.
template <class Bits, class Index>
struct Candidates {
  Bits floor;
  std::size_t room;
  std::size_t count = 0;
  // One block more than `room`: a block is written before it is known how much of it counts.
  std::unique_ptr<Index[]> indices = std::make_unique_for_overwrite<Index[]>(room + kBlock);
  std::unique_ptr<Bits[]> magnitudes = std::make_unique_for_overwrite<Bits[]>(room + kBlock);

  Candidates(Bits floor, std::size_t room) : floor(floor), room(room) {}

  template <class Float>
  void take(const Float* values, std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) {
      const Bits bits = magnitude(values[i]);
      indices[count] = static_cast<Index>(i);
      magnitudes[count] = bits;
      count += bits >= floor;
    }
  }

  // False if there are more than `room`.
  template <class Float>
  bool collect(const Float* values, std::size_t n) {
    std::size_t i = 0;
    for (; i + kBlock <= n && count <= room; i += kBlock) {
      Bits any = 0;
#pragma GCC unroll 1  // a loop that is unrolled first is not vectorised
      for (std::size_t j = 0; j < kBlock; ++j) any |= magnitude(values[i + j]) >= floor;
      if (any != 0) take(values, i, i + kBlock);
    }
    if (count > room) return false;
    take(values, i, n);
    return count <= room;
  }
};

// A floor guessed from a sample, so that with all but certainty at least k reach it and few more.
// A room of 0 means that k is too large a part for a guess to pay.
template <class Float>
std::pair<Magnitude<Float>, std::size_t> guess_floor(const Float* values, std::size_t n, std::size_t k) {
  const double expected = static_cast<double>(k) / static_cast<double>(n) * kSample;
  const double rank = std::ceil(expected + 4 * std::sqrt(expected) + 8);
  const double most = (rank + 4 * std::sqrt(rank) + 8) / kSample;
  if (most >= 0.5) return {0, 0};
  auto sample = std::make_unique_for_overwrite<Magnitude<Float>[]>(kSample);
  const std::size_t stride = n / kSample;
  std::uint64_t state = 0x9e3779b97f4a7c15;
  for (std::size_t i = 0; i < kSample; ++i) {
    // A place of its own in every stride, so that periodic data does not fool the sample.
    state = state * 6364136223846793005 + 1442695040888963407;
    sample[i] = magnitude(values[i * stride + (state >> 33) % stride]);
  }
  const auto floor = nth_largest(sample.get(), kSample, static_cast<std::size_t>(rank));
  return {floor, static_cast<std::size_t>(most * static_cast<double>(n))};
}

// The lowest magnitude that shares its leading bits with the k-th largest, and how many are not below it.
template <class Float>
std::pair<Magnitude<Float>, std::size_t> safe_floor(const Float* values, std::size_t n, std::size_t k) {
  constexpr int shift = kMagnitudeBits<Float> - kDigitBits;
  auto tables = std::make_unique<std::array<Histogram, 2>>();  // two, as equal neighbours would wait for each other
  std::size_t i = 0;
  for (; i + 2 <= n; i += 2) {
    ++(*tables)[0][magnitude(values[i]) >> shift];
    ++(*tables)[1][magnitude(values[i + 1]) >> shift];
  }
  if (i < n) ++(*tables)[0][magnitude(values[i]) >> shift];
  Histogram& histogram = (*tables)[0];
  for (std::size_t digit = 0; digit < kDigits; ++digit) histogram[digit] += (*tables)[1][digit];
  std::size_t rank = k;
  const std::size_t digit = find_digit(histogram, rank);
  return {static_cast<Magnitude<Float>>(digit) << shift, k - rank + histogram[digit]};
}

template <class Float, class Index>
Candidates<Magnitude<Float>, Index> find_candidates(const Float* values, std::size_t n, std::size_t k) {
  using Found = Candidates<Magnitude<Float>, Index>;
  if (n >= kSampleFrom) {
    const auto [floor, room] = guess_floor(values, n, k);
    if (room >= k) {
      Found found(floor, room);
      if (found.collect(values, n) && found.count >= k) return found;
    }
  }
  const auto [floor, room] = safe_floor(values, n, k);
  Found found(floor, room);
  found.collect(values, n);
  return found;
}

}  // namespace

template <class Float, class Index>
void top_k(const Float* values, std::size_t n, std::size_t k, Index* out) {
  const auto found = find_candidates<Float, Index>(values, n, k);
  const auto floor = nth_largest(found.magnitudes.get(), found.count, k);
  std::size_t larger = 0;
  for (std::size_t i = 0; i < found.count; ++i) larger += found.magnitudes[i] > floor;
  std::size_t ties = k - larger;
  for (std::size_t i = 0, written = 0; i < found.count && written < k; ++i) {
    const bool tie = found.magnitudes[i] == floor && ties > 0;
    out[written] = found.indices[i];
    written += found.magnitudes[i] > floor || tie;
    ties -= tie;
  }
}

template void top_k(const float*, std::size_t, std::size_t, std::int32_t*);
template void top_k(const float*, std::size_t, std::size_t, std::int64_t*);
template void top_k(const double*, std::size_t, std::size_t, std::int32_t*);
template void top_k(const double*, std::size_t, std::size_t, std::int64_t*);

}  // namespace thinwire
