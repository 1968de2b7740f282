// Threshold selection: one pass to count, one to write.

#include <algorithm>
#include <cmath>

#include "selection/selection.h"

namespace thinwire {
namespace {

constexpr std::size_t kBlock = 16;

}  // namespace

template <class Float>
std::size_t count_at_least(const Float* values, std::size_t n, Float threshold) {
  std::size_t total = 0;
  constexpr std::size_t kRun = 4096;  // counted in 32 bits, the width of the comparison, so that it vectorises
  for (std::size_t from = 0; from < n; from += kRun) {
    const std::size_t to = std::min(n, from + kRun);
    std::uint32_t count = 0;
    for (std::size_t i = from; i < to; ++i) count += std::fabs(values[i]) >= threshold ? 1u : 0u;
    total += count;
  }
  return total;
}

template <class Float, class Index>
std::size_t at_least(const Float* values, std::size_t n, Float threshold, Index* out, std::size_t room) {
  std::size_t written = 0;
  std::size_t i = 0;
  for (; i + kBlock <= n && written + kBlock <= room; i += kBlock) {
    int any = 0;
#pragma GCC unroll 1  // a loop that is unrolled first is not vectorised
    for (std::size_t j = 0; j < kBlock; ++j) any |= std::fabs(values[i + j]) >= threshold;
    if (any == 0) continue;
    for (std::size_t j = i; j < i + kBlock; ++j) {
      out[written] = static_cast<Index>(j);
      written += std::fabs(values[j]) >= threshold;
    }
  }
  for (; i < n && written < room; ++i) {
    if (std::fabs(values[i]) >= threshold) out[written++] = static_cast<Index>(i);
  }
  return written;
}

template std::size_t count_at_least(const float*, std::size_t, float);
template std::size_t count_at_least(const double*, std::size_t, double);
template std::size_t at_least(const float*, std::size_t, float, std::int32_t*, std::size_t);
template std::size_t at_least(const float*, std::size_t, float, std::int64_t*, std::size_t);
template std::size_t at_least(const double*, std::size_t, double, std::int32_t*, std::size_t);
template std::size_t at_least(const double*, std::size_t, double, std::int64_t*, std::size_t);

}  // namespace thinwire
