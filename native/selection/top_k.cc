// Exact top-k in linear time, without sorting; see candidates.h.

#include "selection/candidates.h"
#include "selection/selection.h"

namespace thinwire {
namespace {

// The lowest magnitude that shares its leading bits with the k-th largest, and how many are not below it.
template <class Float>
Guess<Float> safe_floor(const Float* values, std::size_t n, std::size_t k) {
  constexpr int shift = kMagnitudeBits<Float> - kDigitBits;
  // Two tables, as equal neighbours would wait for each other.
  std::array<std::array<std::size_t, kDigits>, 2> tables{};
  for (std::size_t i = 0; i < n; ++i) ++tables[i % 2][static_cast<std::size_t>(magnitude(values[i]) >> shift)];
  auto& histogram = tables[0];
  for (std::size_t digit = 0; digit < kDigits; ++digit) histogram[digit] += tables[1][digit];
  std::size_t rank = k;
  const std::size_t digit = find_digit(histogram, rank);
  return {.floor = static_cast<Magnitude<Float>>(digit) << shift, .room = k - rank + histogram[digit]};
}

// Whether at least k candidates reach the guessed floor, and no more than there is room for.
template <class Float>
bool find(const Machine& machine, const Float* values, std::size_t n, const Guess<Float>& guess,
          Candidates<Float>& candidates) {
  candidates.cut(machine, n, guess.room);
  const Tiles<Float>& tiles = tiles_of<Float>(machine.isa);
  candidates.walk(machine, guess.room, [&](std::size_t at, std::size_t length, std::int32_t base, std::int32_t* places,
                                           Float* found, bool collecting, Magnitude<Float>&) {
    return collecting ? tiles.collect(values + at, length, guess.floor, base, places, found) : 0;
  });
  return !candidates.overflowed;
}

}  // namespace

template <class Float, class Index>
void top_k(const Machine& machine, const Float* values, std::size_t n, std::size_t k, Index* out) {
  auto guess = guess_bounds<Float>(n, k, [&](std::size_t i) { return magnitude(values[i]); });
  Candidates<Float> candidates;
  if (!find(machine, values, n, guess, candidates) || candidates.count < k) {
    guess = safe_floor(values, n, k);
    candidates = {};
    find(machine, values, n, guess, candidates);
  }
  const auto verdict = candidates.keep_largest(machine, k, guess);
  candidates.settle(machine, verdict, out, static_cast<Float*>(nullptr), static_cast<Float*>(nullptr));
}

template void top_k(const Machine&, const float*, std::size_t, std::size_t, std::int32_t*);
template void top_k(const Machine&, const float*, std::size_t, std::size_t, std::int64_t*);
template void top_k(const Machine&, const double*, std::size_t, std::size_t, std::int32_t*);
template void top_k(const Machine&, const double*, std::size_t, std::size_t, std::int64_t*);

}  // namespace thinwire
