// Importance: magnitudes relative to weights.
//
// The ratios exist for one block at a time. Those that reach a floor, guessed from a sample, are kept, and the exact
// top k are chosen among them.

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/pool.h"
#include "core/scratch.h"
#include "selection/filters.h"
#include "selection/lots.h"
#include "selection/ratio.h"
#include "selection/selection.h"
#include "selection/statistics.h"

namespace thinwire {
namespace {

constexpr std::size_t kRun = 4096;
constexpr std::size_t kSample = std::size_t{1} << 14;
constexpr std::size_t kSampleFrom = 16 * kSample;
constexpr std::size_t kMostInAPart = std::size_t{1} << 31;
constexpr std::uint64_t kSeed = 0x5eed;

template <class Float>
inline __attribute__((always_inline)) void ratios(const Float* values, const Float* weights, std::size_t n,
                                                  Float epsilon, Float* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = std::fabs(values[i]) / (std::fabs(weights[i]) + epsilon);
}

template <class Float>
void scalar(const Float* values, const Float* weights, std::size_t n, Float epsilon, Float* __restrict out) {
  ratios(values, weights, n, epsilon, out);
}

#if THINWIRE_X86
template <class Float>
THINWIRE_AVX2 void avx2(const Float* values, const Float* weights, std::size_t n, Float epsilon,
                        Float* __restrict out) {
  ratios(values, weights, n, epsilon, out);
}

template <class Float>
THINWIRE_AVX512 void avx512(const Float* values, const Float* weights, std::size_t n, Float epsilon,
                            Float* __restrict out) {
  ratios(values, weights, n, epsilon, out);
}
#endif

// A magnitude that few more than k ratios are not below, with all but certainty; 0 where a guess would not pay.
template <class Float>
Float guess_floor(const Float* values, const Float* weights, std::size_t n, Float epsilon, std::size_t k) {
  if (n < kSampleFrom || k > n / 4) return 0;
  const double expected = static_cast<double>(k) / static_cast<double>(n) * kSample;
  const auto rank = static_cast<std::size_t>(expected + 4 * std::sqrt(expected) + 8);
  const std::size_t stride = n / kSample;
  if (rank >= kSample || stride >> 32 != 0) return 0;
  static thread_local Float sample[kSample];
  for (std::size_t i = 0; i < kSample; ++i) {
    const std::size_t at = i * stride + lot(kSeed, i, stride);
    sample[i] = std::fabs(values[at]) / (std::fabs(weights[at]) + epsilon);
    if (std::isnan(sample[i])) return 0;  // nothing to be ordered
  }
  std::nth_element(sample, sample + rank, sample + kSample, std::greater<>());
  return sample[rank];
}

struct OfPlaces;
struct OfRatios;

// What reaches the floor: places within parts, and ratios, both one part after the other.
template <class Float>
struct Candidates {
  int parts;
  std::uint32_t* places;
  Float* found;
  std::size_t begins[kMostThreads], starts[kMostThreads + 1];

  Candidates(const Machine& machine, const Float* values, const Float* weights, std::size_t n, Float epsilon,
             Float floor)
      : parts(machine.threads) {
    const std::size_t room = n + static_cast<std::size_t>(parts) * (kRun + kSlack);
    places = scratch<OfPlaces, std::uint32_t>(room);
    found = scratch<OfRatios, Float>(room);
    const auto filter = filters_for<Float>(machine.isa).places;
    const auto ratios = ratios_for<Float>(machine.isa);
    std::size_t counts[kMostThreads] = {};
    run_parts(machine.threads, parts, [&](int part) {
      const std::size_t begin = part_begin(n, part, parts, kRun), end = part_begin(n, part + 1, parts, kRun);
      const std::size_t shift = begin + static_cast<std::size_t>(part) * kSlack;
      begins[part] = begin;
      Float block[kRun];
      for (std::size_t at = begin; at < end; at += kRun) {
        const std::size_t length = std::min(kRun, end - at);
        ratios(values + at, weights + at, length, epsilon, block);
        std::uint32_t* const out = places + shift + counts[part];
        const std::size_t count = filter(block, length, floor, out);
        for (std::size_t i = 0; i < count; ++i) found[shift + counts[part] + i] = block[out[i]];
        for (std::size_t i = 0; i < count; ++i) out[i] += static_cast<std::uint32_t>(at - begin);
        counts[part] += count;
      }
    });
    starts[0] = 0;
    for (int part = 0; part < parts; ++part) {
      const std::size_t from = begins[part] + static_cast<std::size_t>(part) * kSlack;
      starts[part + 1] = starts[part] + counts[part];
      std::copy(places + from, places + from + counts[part], places + starts[part]);
      std::copy(found + from, found + from + counts[part], found + starts[part]);
    }
  }

  std::size_t count() const { return starts[parts]; }

  // Turns increasing positions among the candidates into places in the vector.
  template <class Index>
  void name(Index* positions, std::size_t k) const {
    int part = 0;
    for (std::size_t i = 0; i < k; ++i) {
      const auto position = static_cast<std::size_t>(positions[i]);
      while (position >= starts[part + 1]) ++part;
      positions[i] = static_cast<Index>(begins[part] + places[position]);
    }
  }
};

}  // namespace

template <class Float>
Ratios<Float> ratios_for(Isa isa) {
#if THINWIRE_X86
  if (isa == Isa::kAvx512) return avx512<Float>;
  if (isa == Isa::kAvx2) return avx2<Float>;
#endif
  static_cast<void>(isa);
  return scalar<Float>;
}

template <class Float, class Index>
void importance(const Machine& machine, const Float* values, const Float* weights, std::size_t n, Float epsilon,
                std::size_t k, Index* out) {
  const Float floor = guess_floor(values, weights, n, epsilon, k);
  if (floor > 0 && n / static_cast<std::size_t>(machine.threads) < kMostInAPart) {
    const Candidates<Float> candidates(machine, values, weights, n, epsilon, floor);
    if (candidates.count() >= k) {
      top_k(machine, candidates.found, candidates.count(), k, out);
      candidates.name(out, k);
      return;
    }
  }
  Float* const all = scratch<OfRatios, Float>(n);
  const auto ratios = ratios_for<Float>(machine.isa);
  run_parts(machine.threads, machine.threads, [&](int part) {
    const std::size_t begin = part_begin(n, part, machine.threads, kRun);
    const std::size_t end = part_begin(n, part + 1, machine.threads, kRun);
    ratios(values + begin, weights + begin, end - begin, epsilon, all + begin);
  });
  top_k(machine, all, n, k, out);
}

template Ratios<float> ratios_for(Isa);
template Ratios<double> ratios_for(Isa);
template void importance(const Machine&, const float*, const float*, std::size_t, float, std::size_t, std::int32_t*);
template void importance(const Machine&, const float*, const float*, std::size_t, float, std::size_t, std::int64_t*);
template void importance(const Machine&, const double*, const double*, std::size_t, double, std::size_t,
                         std::int32_t*);
template void importance(const Machine&, const double*, const double*, std::size_t, double, std::size_t,
                         std::int64_t*);

}  // namespace thinwire
