// Top-k of many segments. Short ones are selected in working memory that is set up once; long ones are vectors of their
// own.

#include <algorithm>
#include <array>
#include <functional>
#include <vector>

#include "core/bits.h"
#include "core/pool.h"
#include "core/scratch.h"
#include "selection/selection.h"
#include "selection/statistics.h"

namespace thinwire {
namespace {

constexpr std::size_t kShort = std::size_t{1} << 15;
constexpr std::size_t kFew = 48;  // so few are sorted out at once
constexpr std::size_t kGrain = std::size_t{1} << 16;

struct OfMagnitudes;

// The k-th largest of n magnitudes, eight bits at a time; destroys them.
template <class Bits>
Bits kth_largest(Bits* magnitudes, std::size_t n, std::size_t k) {
  for (int shift = 8 * sizeof(Bits) - 8; shift >= 0 && n > kFew; shift -= 8) {
    std::array<std::uint32_t, 256> histogram{};
    for (std::size_t i = 0; i < n; ++i) ++histogram[(magnitudes[i] >> shift) & 255];
    std::size_t digit = 255;
    while (k > histogram[digit]) k -= histogram[digit--];
    if (histogram[digit] == n) continue;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const Bits bits = magnitudes[i];
      magnitudes[kept] = bits;
      kept += static_cast<std::size_t>((bits >> shift) & 255) == digit;
    }
    n = kept;
  }
  std::nth_element(magnitudes, magnitudes + (k - 1), magnitudes + n, std::greater<>());
  return magnitudes[k - 1];
}

template <class Float, class Index>
void short_top_k(const Float* values, std::size_t n, std::size_t k, Index base, Index* out) {
  auto* const magnitudes = scratch<OfMagnitudes, Magnitude<Float>>(kShort);
  for (std::size_t i = 0; i < n; ++i) magnitudes[i] = magnitude(values[i]);
  const auto floor = kth_largest(magnitudes, n, k);
  std::size_t larger = 0;
  for (std::size_t i = 0; i < n; ++i) larger += magnitude(values[i]) > floor;
  std::size_t ties = k - larger;
  for (std::size_t i = 0, written = 0; written < k; ++i) {
    const auto bits = magnitude(values[i]);
    const bool tie = bits == floor && ties > 0;
    out[written] = static_cast<Index>(base + static_cast<Index>(i));
    written += bits > floor || tie;
    ties -= tie;
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
  const auto for_segments = [&](std::size_t from, std::size_t to, bool long_ones) {
    for (std::size_t s = from; s < to; ++s) {
      const auto n = static_cast<std::size_t>(bounds[s + 1] - bounds[s]), k = static_cast<std::size_t>(counts[s]);
      if (k == 0 || long_ones != (n > kShort)) continue;
      const Float* const segment = values + bounds[s];
      const auto base = static_cast<Index>(bounds[s]);
      if (!long_ones) {
        short_top_k(segment, n, k, base, out + starts[s]);
        continue;
      }
      top_k(segment, n, k, out + starts[s]);
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
