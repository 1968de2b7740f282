// A sample spread over a whole vector. Nearly every place is in a cache line of its own, so they are asked for ahead.

#include <algorithm>

#include "selection/lots.h"
#include "selection/statistics.h"

namespace thinwire {

template <class Float>
std::size_t sample(const Float* values, std::size_t n, std::size_t stride, std::uint64_t seed, Float* out) {
  constexpr std::size_t kAhead = 64;
  std::size_t places[kAhead];
  const std::size_t strides = n / stride;  // the whole ones
  for (std::size_t from = 0; from < strides; from += kAhead) {
    const std::size_t count = std::min(kAhead, strides - from);
    for (std::size_t i = 0; i < count; ++i) {
      places[i] = (from + i) * stride + lot(seed, from + i, stride);
      __builtin_prefetch(values + places[i]);
    }
    for (std::size_t i = 0; i < count; ++i) out[from + i] = values[places[i]];
  }
  const std::size_t last = strides * stride + (strides * stride < n ? lot(seed, strides, stride) : 0);
  if (strides * stride >= n || last >= n) return strides;
  out[strides] = values[last];
  return strides + 1;
}

template std::size_t sample(const float*, std::size_t, std::size_t, std::uint64_t, float*);
template std::size_t sample(const double*, std::size_t, std::size_t, std::uint64_t, double*);

}  // namespace thinwire
