// Comparisons give a mask; the mask moves what is left over to the front of a register, which is stored whole.
//
// That is without branches, as one element in a few dozen passes and none of them can be predicted.

#include "selection/filters.h"

#include <algorithm>
#include <array>
#include <cmath>

#if THINWIRE_X86
#include <immintrin.h>
#endif

namespace thinwire {
namespace {

constexpr std::size_t kBlock = 16;
constexpr std::size_t kRun = 4096;  // counted in 32 bits, the width of the comparison, so that it vectorises

// What the vector loops leave, and all of it where there are none.
template <class Float>
std::size_t rest_of_places(const Float* values, std::size_t from, std::size_t n, Float threshold, std::uint32_t* out,
                           std::size_t written) {
  for (std::size_t i = from; i < n; ++i) {
    out[written] = static_cast<std::uint32_t>(i);
    written += std::fabs(values[i]) >= threshold;
  }
  return written;
}

template <class Float>
std::size_t rest_of_magnitudes(const Float* values, std::size_t from, std::size_t n, Magnitude<Float> floor,
                               Magnitude<Float>* out, std::size_t written) {
  for (std::size_t i = from; i < n; ++i) {
    const auto bits = magnitude(values[i]);
    out[written] = bits;
    written += bits >= floor;
  }
  return written;
}

namespace scalar {

template <class Float>
std::size_t places(const Float* values, std::size_t n, Float threshold, std::uint32_t* out) {
  std::size_t written = 0, i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    int any = 0;
#pragma GCC unroll 1  // a loop that is unrolled first is not vectorised
    for (std::size_t j = 0; j < kBlock; ++j) any |= std::fabs(values[i + j]) >= threshold;
    if (any != 0) written = rest_of_places(values, i, i + kBlock, threshold, out, written);
  }
  return rest_of_places(values, i, n, threshold, out, written);
}

template <class Float>
std::size_t magnitudes(const Float* values, std::size_t n, Magnitude<Float> floor, Magnitude<Float>* out) {
  std::size_t written = 0, i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    Magnitude<Float> any = 0;
#pragma GCC unroll 1
    for (std::size_t j = 0; j < kBlock; ++j) any |= magnitude(values[i + j]) >= floor;
    if (any != 0) written = rest_of_magnitudes(values, i, i + kBlock, floor, out, written);
  }
  return rest_of_magnitudes(values, i, n, floor, out, written);
}

template <class Float>
std::size_t count(const Float* values, std::size_t n, Float threshold) {
  std::size_t total = 0;
  for (std::size_t from = 0; from < n; from += kRun) {
    const std::size_t to = std::min(n, from + kRun);
    std::uint32_t found = 0;
    for (std::size_t i = from; i < to; ++i) found += std::fabs(values[i]) >= threshold ? 1u : 0u;
    total += found;
  }
  return total;
}

}  // namespace scalar

#if THINWIRE_X86

namespace avx512 {

// Compressions are merged into a register that was just loaded: with one that is cleared, some processors wait for what it
// held before.

// Masks of 16 magnitudes; at is the place of the first.
THINWIRE_AVX512 inline __mmask16 passing(const float* at, __m512 threshold) {
  return _mm512_cmp_ps_mask(_mm512_abs_ps(_mm512_loadu_ps(at)), threshold, _CMP_GE_OQ);
}

THINWIRE_AVX512 inline __mmask16 passing(const double* at, __m512d threshold) {
  const __mmask8 low = _mm512_cmp_pd_mask(_mm512_abs_pd(_mm512_loadu_pd(at)), threshold, _CMP_GE_OQ);
  const __mmask8 high = _mm512_cmp_pd_mask(_mm512_abs_pd(_mm512_loadu_pd(at + 8)), threshold, _CMP_GE_OQ);
  return static_cast<__mmask16>(low | (high << 8));
}

// The same of fewer than 16.
THINWIRE_AVX512 inline __mmask16 passing(const float* at, __m512 threshold, unsigned count) {
  const __mmask16 there = static_cast<__mmask16>((1u << count) - 1);
  return _mm512_mask_cmp_ps_mask(there, _mm512_abs_ps(_mm512_maskz_loadu_ps(there, at)), threshold, _CMP_GE_OQ);
}

THINWIRE_AVX512 inline __mmask16 passing(const double* at, __m512d threshold, unsigned count) {
  const __mmask8 low = static_cast<__mmask8>((1u << count) - 1), high = static_cast<__mmask8>(((1u << count) - 1) >> 8);
  const __m512d first = _mm512_abs_pd(_mm512_maskz_loadu_pd(low, at));
  const __m512d second = _mm512_abs_pd(_mm512_maskz_loadu_pd(high, at + 8));
  return static_cast<__mmask16>(_mm512_mask_cmp_pd_mask(low, first, threshold, _CMP_GE_OQ) |
                                (_mm512_mask_cmp_pd_mask(high, second, threshold, _CMP_GE_OQ) << 8));
}

THINWIRE_AVX512 inline __m512 spread(float value) { return _mm512_set1_ps(value); }
THINWIRE_AVX512 inline __m512d spread(double value) { return _mm512_set1_pd(value); }

template <class Float>
THINWIRE_AVX512 std::size_t places(const Float* values, std::size_t n, Float threshold, std::uint32_t* out) {
  const auto limit = spread(threshold);
  const __m512i step = _mm512_set1_epi32(16);
  __m512i at = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  std::size_t written = 0, i = 0;
  for (; i + 16 <= n; i += 16) {
    const __mmask16 mask = passing(values + i, limit);
    _mm512_storeu_si512(out + written, _mm512_maskz_compress_epi32(mask, at));
    written += static_cast<std::size_t>(_mm_popcnt_u32(mask));
    at = _mm512_add_epi32(at, step);
  }
  return rest_of_places(values, i, n, threshold, out, written);
}

THINWIRE_AVX512 std::size_t magnitudes(const float* values, std::size_t n, std::int32_t floor, std::int32_t* out) {
  const __m512i limit = _mm512_set1_epi32(floor), unsign = _mm512_set1_epi32(0x7fffffff);
  std::size_t written = 0, i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m512i bits = _mm512_and_si512(_mm512_loadu_si512(values + i), unsign);
    const __mmask16 mask = _mm512_cmpge_epi32_mask(bits, limit);
    _mm512_storeu_si512(out + written, _mm512_mask_compress_epi32(bits, mask, bits));
    written += static_cast<std::size_t>(_mm_popcnt_u32(mask));
  }
  return rest_of_magnitudes(values, i, n, floor, out, written);
}

THINWIRE_AVX512 std::size_t magnitudes(const double* values, std::size_t n, std::int64_t floor, std::int64_t* out) {
  const __m512i limit = _mm512_set1_epi64(floor), unsign = _mm512_set1_epi64(0x7fffffffffffffff);
  std::size_t written = 0, i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m512i bits = _mm512_and_si512(_mm512_loadu_si512(values + i), unsign);
    const __mmask8 mask = _mm512_cmpge_epi64_mask(bits, limit);
    _mm512_storeu_si512(out + written, _mm512_mask_compress_epi64(bits, mask, bits));
    written += static_cast<std::size_t>(_mm_popcnt_u32(mask));
  }
  return rest_of_magnitudes(values, i, n, floor, out, written);
}

template <class Float>
THINWIRE_AVX512 std::size_t count(const Float* values, std::size_t n, Float threshold) {
  const auto limit = spread(threshold);
  std::size_t total = 0, i = 0;
  for (; i + 64 <= n; i += 64) {
    const std::uint64_t low = passing(values + i, limit) | (std::uint64_t{passing(values + i + 16, limit)} << 16);
    const std::uint64_t high = passing(values + i + 32, limit) | (std::uint64_t{passing(values + i + 48, limit)} << 16);
    total += static_cast<std::size_t>(_mm_popcnt_u64(low | (high << 32)));
  }
  for (; i + 16 <= n; i += 16) total += static_cast<std::size_t>(_mm_popcnt_u32(passing(values + i, limit)));
  const auto rest = static_cast<unsigned>(n - i);
  return total + (rest == 0 ? 0 : static_cast<std::size_t>(_mm_popcnt_u32(passing(values + i, limit, rest))));
}

}  // namespace avx512

namespace avx2 {

// For each mask of eight: the places of its ones, one byte each, lowest first.
constexpr auto kPlaces = [] {
  std::array<std::uint64_t, 256> table{};
  for (unsigned mask = 0; mask < 256; ++mask) {
    unsigned shift = 0;
    for (std::uint64_t bit = 0; bit < 8; ++bit) {
      if ((mask >> bit & 1) == 0) continue;
      table[mask] |= bit << shift;
      shift += 8;
    }
  }
  return table;
}();

THINWIRE_AVX2 inline __m256i places_in(unsigned mask) {
  return _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(kPlaces[mask])));
}

THINWIRE_AVX2 inline unsigned passing(const float* at, __m256 threshold) {
  const __m256 unsign = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
  const __m256 values = _mm256_and_ps(_mm256_loadu_ps(at), unsign);
  return static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(values, threshold, _CMP_GE_OQ)));
}

THINWIRE_AVX2 inline unsigned passing(const double* at, __m256d threshold) {
  const __m256d unsign = _mm256_castsi256_pd(_mm256_set1_epi64x(0x7fffffffffffffff));
  const __m256d low = _mm256_and_pd(_mm256_loadu_pd(at), unsign);
  const __m256d high = _mm256_and_pd(_mm256_loadu_pd(at + 4), unsign);
  const int first = _mm256_movemask_pd(_mm256_cmp_pd(low, threshold, _CMP_GE_OQ));
  const int second = _mm256_movemask_pd(_mm256_cmp_pd(high, threshold, _CMP_GE_OQ));
  return static_cast<unsigned>(first | (second << 4));
}

THINWIRE_AVX2 inline __m256 spread(float value) { return _mm256_set1_ps(value); }
THINWIRE_AVX2 inline __m256d spread(double value) { return _mm256_set1_pd(value); }

template <class Float>
THINWIRE_AVX2 std::size_t places(const Float* values, std::size_t n, Float threshold, std::uint32_t* out) {
  const auto limit = spread(threshold);
  std::size_t written = 0, i = 0;
  for (; i + 8 <= n; i += 8) {
    const unsigned mask = passing(values + i, limit);
    const __m256i at = _mm256_add_epi32(places_in(mask), _mm256_set1_epi32(static_cast<int>(i)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + written), at);
    written += static_cast<std::size_t>(_mm_popcnt_u32(mask));
  }
  return rest_of_places(values, i, n, threshold, out, written);
}

THINWIRE_AVX2 std::size_t magnitudes(const float* values, std::size_t n, std::int32_t floor, std::int32_t* out) {
  const __m256i below = _mm256_set1_epi32(floor - 1), unsign = _mm256_set1_epi32(0x7fffffff);
  std::size_t written = 0, i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256i bits = _mm256_and_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(values + i)), unsign);
    const __m256i over = _mm256_cmpgt_epi32(bits, below);  // floors are not negative
    const unsigned mask = static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(over)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + written), _mm256_permutevar8x32_epi32(bits, places_in(mask)));
    written += static_cast<std::size_t>(_mm_popcnt_u32(mask));
  }
  return rest_of_magnitudes(values, i, n, floor, out, written);
}

template <class Float>
THINWIRE_AVX2 std::size_t count(const Float* values, std::size_t n, Float threshold) {
  const auto limit = spread(threshold);
  std::size_t total = 0, i = 0;
  for (; i + 32 <= n; i += 32) {
    const unsigned low = passing(values + i, limit) | (passing(values + i + 8, limit) << 8);
    const unsigned high = passing(values + i + 16, limit) | (passing(values + i + 24, limit) << 8);
    total += static_cast<std::size_t>(_mm_popcnt_u32(low | (high << 16)));
  }
  for (; i + 8 <= n; i += 8) total += static_cast<std::size_t>(_mm_popcnt_u32(passing(values + i, limit)));
  return total + scalar::count(values + i, n - i, threshold);
}

}  // namespace avx2

#endif

}  // namespace

template <class Float>
const Filters<Float>& filters_for(Isa isa) {
  static constexpr Filters<Float> plain{scalar::places<Float>, scalar::magnitudes<Float>, scalar::count<Float>};
#if THINWIRE_X86
  static constexpr Filters<Float> wide{avx512::places<Float>, avx512::magnitudes, avx512::count<Float>};
  if (isa == Isa::kAvx512) return wide;
  if constexpr (sizeof(Float) == 4) {
    static constexpr Filters<Float> narrow{avx2::places<Float>, avx2::magnitudes, avx2::count<Float>};
    if (isa == Isa::kAvx2) return narrow;
  } else {
    static constexpr Filters<Float> narrow{avx2::places<Float>, scalar::magnitudes<Float>, avx2::count<Float>};
    if (isa == Isa::kAvx2) return narrow;
  }
#endif
  static_cast<void>(isa);
  return plain;
}

template const Filters<float>& filters_for(Isa);
template const Filters<double>& filters_for(Isa);

}  // namespace thinwire
