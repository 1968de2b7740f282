// The loops of top-k for AVX2.

#include "selection/tiles.h"

#if THINWIRE_X86

#include <immintrin.h>

#include <algorithm>
#include <array>

namespace thinwire {
namespace {

constexpr std::size_t kWidth = 8;

// For every mask of eight lanes the order that brings the selected ones to the front: AVX2 has no compress.
constexpr auto kToFront = [] {
  std::array<std::array<std::int32_t, kWidth>, 256> table{};
  for (std::size_t mask = 0; mask < 256; ++mask) {
    std::size_t at = 0;
    for (std::int32_t lane = 0; lane < 8; ++lane) {
      if ((mask >> lane & 1) != 0) table[mask][at++] = lane;
    }
  }
  return table;
}();

struct Finds {
  std::int32_t* places;
  float* found;
  std::size_t count = 0;
};

THINWIRE_AVX2 inline void append(Finds& finds, unsigned mask, __m256i places, __m256 values) {
  const __m256i order = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kToFront[mask].data()));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(finds.places + finds.count), _mm256_permutevar8x32_epi32(places, order));
  _mm256_storeu_ps(finds.found + finds.count, _mm256_permutevar8x32_ps(values, order));
  finds.count += static_cast<std::size_t>(_mm_popcnt_u32(mask));
}

THINWIRE_AVX2 inline __m256i counting(std::int32_t base) {
  return _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(base));
}

THINWIRE_AVX2 inline __m256i magnitude_of(__m256 values) {
  return _mm256_and_si256(_mm256_castps_si256(values), _mm256_set1_epi32(0x7fffffff));
}

THINWIRE_AVX2 inline unsigned lanes_above(__m256i bits, __m256i below) {
  return static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(bits, below))));
}

THINWIRE_AVX2 inline std::int32_t largest_lane(__m256i bits) {
  alignas(32) std::int32_t lanes[kWidth];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), bits);
  return *std::max_element(lanes, lanes + kWidth);
}

constexpr std::size_t kGroup = 4;  // vectors that are looked at together for anything to take

template <bool kStream>
THINWIRE_AVX2 std::size_t stage_tile(const float* owed, const float* gradient, float* out, std::size_t n,
                                     std::int32_t floor, std::int32_t base, Finds finds, Tiles<float>::Seen& seen) {
  const __m256i below = _mm256_set1_epi32(floor - 1);  // there is no >=
  const __m256i next = _mm256_set1_epi32(kWidth);
  __m256i largest = _mm256_setzero_si256();
  alignas(32) float lanes[kLanes] = {};
  std::size_t i = 0;
  __m256i at = counting(base);
  for (; i + kGroup * kWidth <= n; i += kGroup * kWidth) {
    __m256 sum[kGroup];
    unsigned mask[kGroup];
    float* const lane = lanes + i % kLanes;
#pragma GCC unroll 4
    for (std::size_t j = 0; j < kGroup; ++j) {
      const std::size_t from = i + kWidth * j;
      sum[j] = _mm256_add_ps(_mm256_loadu_ps(owed + from), _mm256_loadu_ps(gradient + from));
      const __m256 squares = _mm256_add_ps(_mm256_load_ps(lane + kWidth * j), _mm256_mul_ps(sum[j], sum[j]));
      _mm256_store_ps(lane + kWidth * j, squares);
      const __m256i bits = magnitude_of(sum[j]);
      largest = _mm256_max_epi32(largest, bits);
      const __m256 taken = _mm256_castsi256_ps(_mm256_cmpgt_epi32(bits, below));
      mask[j] = static_cast<unsigned>(_mm256_movemask_ps(taken));
      const __m256 rest = _mm256_andnot_ps(taken, sum[j]);
      if constexpr (kStream) {
        _mm256_stream_ps(out + from, rest);
      } else {
        _mm256_storeu_ps(out + from, rest);
      }
    }
    if ((mask[0] | mask[1] | mask[2] | mask[3]) == 0) {
      at = _mm256_add_epi32(at, _mm256_set1_epi32(kGroup * kWidth));
      continue;
    }
#pragma GCC unroll 4
    for (std::size_t j = 0; j < kGroup; ++j, at = _mm256_add_epi32(at, next)) append(finds, mask[j], at, sum[j]);
  }
  std::int32_t most = largest_lane(largest);
  for (; i < n; ++i) {
    const float sum = owed[i] + gradient[i];
    lanes[i % kLanes] += sum * sum;
    const std::int32_t bits = magnitude(sum);
    most = std::max(most, bits);
    finds.places[finds.count] = base + static_cast<std::int32_t>(i);
    finds.found[finds.count] = sum;
    finds.count += bits >= floor;
    out[i] = bits >= floor ? 0.0f : sum;
  }
  seen.energy = sum_of_lanes(lanes);
  seen.largest = std::max(seen.largest, most);
  return finds.count;
}

THINWIRE_AVX2 std::size_t stage(const float* owed, const float* gradient, float* out, std::size_t n,
                                std::int32_t floor, std::int32_t base, std::int32_t* places, float* found, bool stream,
                                Tiles<float>::Seen& seen) {
  const Finds finds{places, found};
  // A streamed vector must lie on its own width.
  if (stream && reinterpret_cast<std::uintptr_t>(out) % 32 == 0) {
    return stage_tile<true>(owed, gradient, out, n, floor, base, finds, seen);
  }
  return stage_tile<false>(owed, gradient, out, n, floor, base, finds, seen);
}

THINWIRE_AVX2 std::size_t collect(const float* values, std::size_t n, std::int32_t floor, std::int32_t base,
                                  std::int32_t* places, float* found) {
  const __m256i below = _mm256_set1_epi32(floor - 1);
  const __m256i next = _mm256_set1_epi32(kWidth);
  Finds finds{places, found};
  std::size_t i = 0;
  __m256i at = counting(base);
  for (; i + kGroup * kWidth <= n; i += kGroup * kWidth) {
    __m256 value[kGroup];
    unsigned mask[kGroup];
#pragma GCC unroll 4
    for (std::size_t j = 0; j < kGroup; ++j) {
      value[j] = _mm256_loadu_ps(values + i + kWidth * j);
      mask[j] = lanes_above(magnitude_of(value[j]), below);
    }
    if ((mask[0] | mask[1] | mask[2] | mask[3]) == 0) {
      at = _mm256_add_epi32(at, _mm256_set1_epi32(kGroup * kWidth));
      continue;
    }
#pragma GCC unroll 4
    for (std::size_t j = 0; j < kGroup; ++j, at = _mm256_add_epi32(at, next)) append(finds, mask[j], at, value[j]);
  }
  for (; i < n; ++i) {
    finds.places[finds.count] = base + static_cast<std::int32_t>(i);
    finds.found[finds.count] = values[i];
    finds.count += magnitude(values[i]) >= floor;
  }
  return finds.count;
}

THINWIRE_AVX2 std::size_t below(const float* found, std::size_t n, std::int32_t ceiling, std::int32_t* out) {
  const __m256i limit = _mm256_set1_epi32(ceiling);
  std::size_t count = 0;
  std::size_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    const __m256i bits = magnitude_of(_mm256_loadu_ps(found + i));
    const unsigned mask = lanes_above(limit, bits);
    const __m256i order = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kToFront[mask].data()));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + count), _mm256_permutevar8x32_epi32(bits, order));
    count += static_cast<std::size_t>(_mm_popcnt_u32(mask));
  }
  for (; i < n; ++i) {
    out[count] = magnitude(found[i]);
    count += out[count] < ceiling;
  }
  return count;
}

// Which of eight finds are kept; ties in order, as long as there are any left.
THINWIRE_AVX2 inline unsigned lanes_kept(__m256i bits, __m256i level, std::size_t& ties) {
  const unsigned above = lanes_above(bits, level);
  const auto equal =
      static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(bits, level))));
  if (equal == 0) return above;
  const auto there = static_cast<std::size_t>(_mm_popcnt_u32(equal));
  const std::size_t used = std::min(ties, there);
  ties -= used;
  return above | _pdep_u32((1u << used) - 1, equal);
}

THINWIRE_AVX2 void settle(const std::int32_t* places, const float* found, std::size_t n, std::int32_t level,
                          std::size_t ties, std::int32_t* places_out, float* values_out, std::size_t room, float* out) {
  const __m256i limit = _mm256_set1_epi32(level);
  std::size_t kept = 0;
  std::size_t i = 0;
  for (; i + kWidth <= n && kept + kWidth <= room; i += kWidth) {
    const __m256i place = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(places + i));
    const __m256 value = _mm256_loadu_ps(found + i);
    const unsigned keep = lanes_kept(magnitude_of(value), limit, ties);
    // First the rest: what is kept may be written over it.
    for (unsigned rest = out == nullptr ? 0 : ~keep & 0xff; rest != 0; rest &= rest - 1) {
      const auto lane = i + static_cast<std::size_t>(_tzcnt_u32(rest));
      out[places[lane]] = found[lane];
    }
    const __m256i order = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kToFront[keep].data()));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(places_out + kept), _mm256_permutevar8x32_epi32(place, order));
    if (values_out != nullptr) _mm256_storeu_ps(values_out + kept, _mm256_permutevar8x32_ps(value, order));
    kept += static_cast<std::size_t>(_mm_popcnt_u32(keep));
  }
  tiles_of<float>(Isa::kScalar)
      .settle(places + i, found + i, n - i, level, ties, places_out + kept,
              values_out == nullptr ? nullptr : values_out + kept, room - kept, out);
}

}  // namespace

const Tiles<float> kTilesAvx2{stage, collect, below, settle};

}  // namespace thinwire

#endif
