// The loops of top-k in plain C++, for every processor and for double; compilers vectorise what is regular in them.

#include <algorithm>

#include "selection/tiles.h"

namespace thinwire {
namespace {

template <class Float>
std::size_t stage(const Float* owed, const Float* gradient, Float* out, std::size_t n, Magnitude<Float> floor,
                  std::int32_t base, std::int32_t* places, Float* found, bool, typename Tiles<Float>::Seen& seen) {
  using Bits = Magnitude<Float>;
  Float lanes[kLanes] = {};
  Bits largest = 0;
  std::size_t count = 0;
  for (std::size_t from = 0; from < n; from += kLanes) {
    const std::size_t width = std::min(kLanes, n - from);
    Float sum[kLanes];
    Bits most = 0;
    for (std::size_t i = 0; i < width; ++i) {
      sum[i] = owed[from + i] + gradient[from + i];
      lanes[i] += sum[i] * sum[i];
      most = std::max(most, magnitude(sum[i]));
    }
    for (std::size_t i = 0; i < width; ++i) out[from + i] = sum[i];
    largest = std::max(largest, most);
    if (most < floor) continue;
    for (std::size_t i = 0; i < width; ++i) {
      // No branch: whether an element is taken cannot be foreseen.
      const bool take = magnitude(sum[i]) >= floor;
      places[count] = base + static_cast<std::int32_t>(from + i);
      found[count] = sum[i];
      count += take;
      out[from + i] = take ? Float(0) : sum[i];
    }
  }
  seen.energy = sum_of_lanes(lanes);
  seen.largest = std::max(seen.largest, largest);
  return count;
}

template <class Float>
std::size_t collect(const Float* values, std::size_t n, Magnitude<Float> floor, std::int32_t base,
                    std::int32_t* places, Float* found) {
  std::size_t count = 0;
  for (std::size_t from = 0; from < n; from += kLanes) {
    const std::size_t width = std::min(kLanes, n - from);
    Magnitude<Float> most = 0;
    for (std::size_t i = 0; i < width; ++i) most = std::max(most, magnitude(values[from + i]));
    if (most < floor) continue;
    for (std::size_t i = 0; i < width; ++i) {
      places[count] = base + static_cast<std::int32_t>(from + i);
      found[count] = values[from + i];
      count += magnitude(values[from + i]) >= floor;
    }
  }
  return count;
}

template <class Float>
std::size_t below(const Float* found, std::size_t n, Magnitude<Float> ceiling, Magnitude<Float>* out) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < n; ++i) {
    out[count] = magnitude(found[i]);
    count += out[count] < ceiling;
  }
  return count;
}

template <class Float>
void settle(const std::int32_t* places, const Float* found, std::size_t n, Magnitude<Float> level, std::size_t ties,
            std::int32_t* places_out, Float* values_out, std::size_t room, Float* out) {
  std::size_t kept = 0;
  std::size_t i = 0;
  while (i < n && kept < room) {
    // Two lists and no branch: whether an element is kept cannot be foreseen.
    std::int32_t rest_places[kLanes];
    Float rest_values[kLanes];
    std::size_t rests = 0;
    for (const std::size_t end = std::min(n, i + kLanes); i < end && kept < room; ++i) {
      const std::int32_t place = places[i];
      const Float value = found[i];
      const Magnitude<Float> bits = magnitude(value);
      const bool tie = bits == level && ties > 0;
      ties -= tie;
      const bool keep = bits > level || tie;
      places_out[kept] = rest_places[rests] = place;
      if (values_out != nullptr) values_out[kept] = value;
      rest_values[rests] = value;
      kept += keep;
      rests += !keep;
    }
    for (std::size_t rest = 0; out != nullptr && rest < rests; ++rest) out[rest_places[rest]] = rest_values[rest];
  }
  for (; out != nullptr && i < n; ++i) out[places[i]] = found[i];
}

template <class Float>
constexpr Tiles<Float> kPlain{stage<Float>, collect<Float>, below<Float>, settle<Float>};

}  // namespace

template <>
const Tiles<float>& tiles_of(Isa isa) {
  switch (isa) {
#if THINWIRE_X86
    case Isa::kAvx2: return kTilesAvx2;
    case Isa::kAvx512: return kTilesAvx512;
#endif
    default: return kPlain<float>;
  }
}

template <>
const Tiles<double>& tiles_of(Isa) {
  return kPlain<double>;
}

}  // namespace thinwire
