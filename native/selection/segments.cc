// Top-k of many segments. Short ones lie in the cache, where counting again and again is so fast that their thresholds
// are found by bisection, without a sample or a histogram; long ones are vectors of their own.

#include <algorithm>
#include <bit>
#include <vector>

#include "core/bits.h"
#include "core/pool.h"
#include "core/scratch.h"
#include "selection/filters.h"
#include "selection/selection.h"
#include "selection/statistics.h"

namespace thinwire {
namespace {

constexpr std::size_t kShort = std::size_t{1} << 15;
constexpr std::size_t kGrain = std::size_t{1} << 16;

struct OfPlaces;

// The largest threshold that at least k magnitudes reach, or any that exactly k do; 0 < k <= n.
template <class Float>
Float threshold_of(const Filters<Float>& filters, const Float* values, std::size_t n, std::size_t k) {
  using Bits = Magnitude<Float>;
  Bits largest = 0;
  for (std::size_t i = 0; i < n; ++i) largest = std::max(largest, magnitude(values[i]));
  Bits reached = 0, missed = largest + 1;  // as bits, in which the middle is found sooner than among the numbers
  while (missed - reached > 1) {
    const Bits middle = reached + (missed - reached) / 2;
    const std::size_t count = filters.count(values, n, std::bit_cast<Float>(middle));
    if (count == k) return std::bit_cast<Float>(middle);
    (count > k ? reached : missed) = middle;
  }
  return std::bit_cast<Float>(reached);
}

template <class Float, class Index>
void short_top_k(const Filters<Float>& filters, const Float* values, std::size_t n, std::size_t k, Index base,
                 Index* out) {
  auto* const places = scratch<OfPlaces, std::uint32_t>(kShort + kSlack);
  const Float threshold = threshold_of(filters, values, n, k);
  const std::size_t count = filters.places(values, n, threshold, places);
  if (count < k) {  // what is no number reaches no threshold
    top_k(Machine{}, values, n, k, out);
    for (std::size_t i = 0; i < k; ++i) out[i] += base;
    return;
  }
  // If there are too many, it is because of equals at the threshold itself: the last of them are left out.
  std::size_t larger = 0;
  if (count > k) {
    for (std::size_t i = 0; i < count; ++i) larger += magnitude(values[places[i]]) > magnitude(threshold);
  }
  std::size_t equals = count > k ? k - larger : count;
  for (std::size_t i = 0, written = 0; written < k; ++i) {
    const bool equal = magnitude(values[places[i]]) == magnitude(threshold);
    out[written] = static_cast<Index>(base + static_cast<Index>(places[i]));
    written += !equal || equals > 0;
    equals -= equal && equals > 0;
  }
}

}  // namespace

template <class Float, class Index>
void top_k_segments(const Machine& machine, const Float* values, const std::int64_t* bounds,
                    const std::int64_t* counts, std::size_t segments, Index* out) {
  std::vector<std::size_t> starts(segments + 1, 0);
  std::vector<std::size_t> cuts{0};  // between these segments there is work enough for one part
  for (std::size_t s = 0, work = 0; s < segments; ++s) {
    starts[s + 1] = starts[s] + static_cast<std::size_t>(counts[s]);
    work += static_cast<std::size_t>(bounds[s + 1] - bounds[s]);
    if (work < kGrain && s + 1 < segments) continue;
    cuts.push_back(s + 1);
    work = 0;
  }
  const Filters<Float>& filters = filters_for<Float>(machine.isa);
  const auto for_segments = [&](std::size_t from, std::size_t to, bool long_ones) {
    for (std::size_t s = from; s < to; ++s) {
      const auto n = static_cast<std::size_t>(bounds[s + 1] - bounds[s]), k = static_cast<std::size_t>(counts[s]);
      if (k == 0 || long_ones != (n > kShort)) continue;
      const Float* const segment = values + bounds[s];
      const auto base = static_cast<Index>(bounds[s]);
      if (!long_ones) {
        short_top_k(filters, segment, n, k, base, out + starts[s]);
        continue;
      }
      top_k(machine, segment, n, k, out + starts[s]);
      for (std::size_t i = starts[s]; i < starts[s + 1]; ++i) out[i] += base;
    }
  };
  const int parts = static_cast<int>(std::min<std::size_t>(cuts.size() - 1, 1 << 20));
  run_parts(machine.threads, parts, [&](int part) {
    const auto each = static_cast<std::size_t>(part);
    const std::size_t to = part + 1 == parts ? segments : cuts[each + 1];
    for_segments(cuts[each], to, false);
  });
  for_segments(0, segments, true);
}

template void top_k_segments(const Machine&, const float*, const std::int64_t*, const std::int64_t*, std::size_t,
                             std::int32_t*);
template void top_k_segments(const Machine&, const float*, const std::int64_t*, const std::int64_t*, std::size_t,
                             std::int64_t*);
template void top_k_segments(const Machine&, const double*, const std::int64_t*, const std::int64_t*, std::size_t,
                             std::int32_t*);
template void top_k_segments(const Machine&, const double*, const std::int64_t*, const std::int64_t*, std::size_t,
                             std::int64_t*);

}  // namespace thinwire
