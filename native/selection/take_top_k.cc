// Error feedback and exact top-k in one pass: add, look for candidates, and leave zeros where they were; the few
// candidates that are not among the k largest are put back. See candidates.h.

#include <cmath>

#include "selection/candidates.h"
#include "selection/selection.h"

namespace thinwire {
namespace {

// From this size on a buffer written once does not fit into caches that have better uses.
constexpr std::size_t kStreamFrom = std::size_t{16} << 20;

template <class Float>
constexpr Magnitude<Float> kInfinite = magnitude(std::numeric_limits<Float>::infinity());

// The sum of squares where the squares themselves overflow.
template <class Float>
double wide_energy(const Float* values, std::size_t n) {
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  return std::min(sum, std::numeric_limits<double>::max() / 4);
}

}  // namespace

template <class Float, class Index>
Taken take_top_k(const Machine& machine, const Float* owed, const Float* gradient, Float* out, std::size_t n,
                 std::size_t k, Index* indices, Float* values) {
  struct Tag {};
  const auto guess =
      guess_bounds<Float>(n, std::max<std::size_t>(k, 1), [&](std::size_t i) { return magnitude(owed[i] + gradient[i]); });
  const bool stream = out != owed && n * sizeof(Float) >= kStreamFrom;
  const Tiles<Float>& tiles = tiles_of<Float>(machine.isa);
  double* const energies = scratch<Tag, double>(n / kTile + 1);
  Candidates<Float> candidates;
  candidates.cut(machine, n, guess.room);
  candidates.walk(machine, guess.room, [&](std::size_t at, std::size_t length, std::int32_t base, std::int32_t* places,
                                           Float* found, bool collecting, Magnitude<Float>& largest) {
    typename Tiles<Float>::Seen seen{0, largest};
    const auto floor = collecting && k > 0 ? guess.floor : std::numeric_limits<Magnitude<Float>>::max();
    const std::size_t count =
        tiles.stage(owed + at, gradient + at, out + at, length, floor, base, places, found, stream, seen);
    energies[at / kTile] = seen.energy;
    largest = seen.largest;
    return count;
  });
  const bool finite = candidates.largest < kInfinite<Float>;
  const bool found = finite && !candidates.overflowed && candidates.count >= k;
  using Verdict = typename Candidates<Float>::Verdict;
  const auto verdict = found && k > 0 ? candidates.keep_largest(machine, k, guess) : Verdict{};
  candidates.settle(machine, verdict, indices, values, out);
  if (!finite) return {std::numeric_limits<double>::quiet_NaN(), 0};
  if (!found && k > 0) {
    top_k(machine, out, n, k, indices);
    for (std::size_t i = 0; i < k; ++i) {
      values[i] = out[indices[i]];
      out[indices[i]] = Float(0);
    }
  }
  double energy = 0;
  for (std::size_t tile = 0; tile * kTile < n; ++tile) energy += energies[tile];
  if (!std::isfinite(energy)) energy = wide_energy(values, k) + wide_energy(out, n);
  return {energy, k};
}

template Taken take_top_k(const Machine&, const float*, const float*, float*, std::size_t, std::size_t, std::int32_t*,
                          float*);
template Taken take_top_k(const Machine&, const float*, const float*, float*, std::size_t, std::size_t, std::int64_t*,
                          float*);
template Taken take_top_k(const Machine&, const double*, const double*, double*, std::size_t, std::size_t,
                          std::int32_t*, double*);
template Taken take_top_k(const Machine&, const double*, const double*, double*, std::size_t, std::size_t,
                          std::int64_t*, double*);

}  // namespace thinwire
