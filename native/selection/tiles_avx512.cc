// The loops of top-k for AVX-512.

#include "selection/tiles.h"

#if THINWIRE_X86

// GCC takes the deliberately undefined operands of its own intrinsics for a mistake.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#include <algorithm>

namespace thinwire {
namespace {

constexpr std::size_t kWidth = 16;

struct Finds {
  std::int32_t* places;
  float* found;
  std::size_t count = 0;
};

// The selected elements of one vector behind those found so far. Compressing in the register and writing all of it is
// several times faster than the instruction that compresses into memory.
THINWIRE_AVX512 inline void append(Finds& finds, __mmask16 mask, __m512i places, __m512 values) {
  _mm512_storeu_si512(finds.places + finds.count, _mm512_maskz_compress_epi32(mask, places));
  _mm512_storeu_ps(finds.found + finds.count, _mm512_maskz_compress_ps(mask, values));
  finds.count += static_cast<std::size_t>(_mm_popcnt_u32(mask));
}

THINWIRE_AVX512 inline __m512i counting(std::int32_t base) {
  const __m512i steps = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  return _mm512_add_epi32(steps, _mm512_set1_epi32(base));
}

THINWIRE_AVX512 inline __m512i magnitude_of(__m512 values) {
  return _mm512_and_si512(_mm512_castps_si512(values), _mm512_set1_epi32(0x7fffffff));
}

template <bool kStream>
THINWIRE_AVX512 std::size_t stage_tile(const float* owed, const float* gradient, float* out, std::size_t n,
                                       std::int32_t floor, std::int32_t base, Finds finds, Tiles<float>::Seen& seen) {
  const __m512i least = _mm512_set1_epi32(floor);
  const __m512i next = _mm512_set1_epi32(kWidth);
  __m512i places = counting(base);
  __m512i largest = _mm512_setzero_si512();
  __m512 squares[4] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps()};
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    __m512 sum[4];
    __mmask16 mask[4];
#pragma GCC unroll 4
    for (std::size_t j = 0; j < 4; ++j) {
      sum[j] = _mm512_add_ps(_mm512_loadu_ps(owed + i + kWidth * j), _mm512_loadu_ps(gradient + i + kWidth * j));
      squares[j] = _mm512_add_ps(squares[j], _mm512_mul_ps(sum[j], sum[j]));
      const __m512i bits = magnitude_of(sum[j]);
      largest = _mm512_max_epi32(largest, bits);
      mask[j] = _mm512_cmpge_epi32_mask(bits, least);
      const __m512 rest = _mm512_maskz_mov_ps(_knot_mask16(mask[j]), sum[j]);
      if constexpr (kStream) {
        _mm512_stream_ps(out + i + kWidth * j, rest);
      } else {
        _mm512_storeu_ps(out + i + kWidth * j, rest);
      }
    }
    if ((mask[0] | mask[1] | mask[2] | mask[3]) != 0) {
      __m512i at = places;
#pragma GCC unroll 4
      for (std::size_t j = 0; j < 4; ++j, at = _mm512_add_epi32(at, next)) append(finds, mask[j], at, sum[j]);
    }
    places = _mm512_add_epi32(places, _mm512_set1_epi32(kLanes));
  }
  for (std::size_t j = 0; i < n; i += kWidth, ++j, places = _mm512_add_epi32(places, next)) {
    const __mmask16 inside = static_cast<__mmask16>(n - i >= kWidth ? 0xffff : (1u << (n - i)) - 1);
    const __m512 sum = _mm512_add_ps(_mm512_maskz_loadu_ps(inside, owed + i), _mm512_maskz_loadu_ps(inside, gradient + i));
    squares[j] = _mm512_add_ps(squares[j], _mm512_mul_ps(sum, sum));
    const __m512i bits = magnitude_of(sum);
    largest = _mm512_max_epi32(largest, bits);
    const __mmask16 mask = _mm512_mask_cmpge_epi32_mask(inside, bits, least);
    _mm512_mask_storeu_ps(out + i, inside, _mm512_maskz_mov_ps(_knot_mask16(mask), sum));
    append(finds, mask, places, sum);
  }
  float lanes[kLanes];
  for (std::size_t j = 0; j < 4; ++j) _mm512_storeu_ps(lanes + kWidth * j, squares[j]);
  seen.energy = sum_of_lanes(lanes);
  seen.largest = std::max(seen.largest, _mm512_reduce_max_epi32(largest));
  return finds.count;
}

THINWIRE_AVX512 std::size_t stage(const float* owed, const float* gradient, float* out, std::size_t n,
                                  std::int32_t floor, std::int32_t base, std::int32_t* places, float* found,
                                  bool stream, Tiles<float>::Seen& seen) {
  const Finds finds{places, found};
  // A streamed vector must lie on its own width.
  if (stream && reinterpret_cast<std::uintptr_t>(out) % 64 == 0) {
    return stage_tile<true>(owed, gradient, out, n, floor, base, finds, seen);
  }
  return stage_tile<false>(owed, gradient, out, n, floor, base, finds, seen);
}

THINWIRE_AVX512 std::size_t collect(const float* values, std::size_t n, std::int32_t floor, std::int32_t base,
                                    std::int32_t* places, float* found) {
  const __m512i least = _mm512_set1_epi32(floor);
  const __m512i next = _mm512_set1_epi32(kWidth);
  __m512i at = counting(base);
  Finds finds{places, found};
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    __m512 value[4];
    __mmask16 mask[4];
#pragma GCC unroll 4
    for (std::size_t j = 0; j < 4; ++j) {
      value[j] = _mm512_loadu_ps(values + i + kWidth * j);
      mask[j] = _mm512_cmpge_epi32_mask(magnitude_of(value[j]), least);
    }
    if ((mask[0] | mask[1] | mask[2] | mask[3]) == 0) {
      at = _mm512_add_epi32(at, _mm512_set1_epi32(kLanes));
      continue;
    }
#pragma GCC unroll 4
    for (std::size_t j = 0; j < 4; ++j, at = _mm512_add_epi32(at, next)) append(finds, mask[j], at, value[j]);
  }
  for (; i < n; i += kWidth, at = _mm512_add_epi32(at, next)) {
    const __mmask16 inside = static_cast<__mmask16>(n - i >= kWidth ? 0xffff : (1u << (n - i)) - 1);
    const __m512 value = _mm512_maskz_loadu_ps(inside, values + i);
    append(finds, _mm512_mask_cmpge_epi32_mask(inside, magnitude_of(value), least), at, value);
  }
  return finds.count;
}

THINWIRE_AVX512 std::size_t below(const float* found, std::size_t n, std::int32_t ceiling, std::int32_t* out) {
  const __m512i limit = _mm512_set1_epi32(ceiling);
  std::size_t count = 0;
  for (std::size_t i = 0; i < n; i += kWidth) {
    const __mmask16 inside = static_cast<__mmask16>(n - i >= kWidth ? 0xffff : (1u << (n - i)) - 1);
    const __m512i bits = magnitude_of(_mm512_maskz_loadu_ps(inside, found + i));
    const __mmask16 mask = _mm512_mask_cmplt_epi32_mask(inside, bits, limit);
    _mm512_storeu_si512(out + count, _mm512_maskz_compress_epi32(mask, bits));
    count += static_cast<std::size_t>(_mm_popcnt_u32(mask));
  }
  return count;
}

// Which of the lanes that equal the level are among the first `ties` of them.
THINWIRE_AVX512 inline __mmask16 first_ties(__mmask16 equal, std::size_t& ties) {
  const auto there = static_cast<std::size_t>(_mm_popcnt_u32(equal));
  const std::size_t used = std::min(ties, there);
  ties -= used;
  return used == there ? equal : static_cast<__mmask16>(_pdep_u32((1u << used) - 1, equal));
}

THINWIRE_AVX512 void settle(const std::int32_t* places, const float* found, std::size_t n, std::int32_t level,
                            std::size_t ties, std::int32_t* places_out, float* values_out, std::size_t, float* out) {
  const __m512i limit = _mm512_set1_epi32(level);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < n; i += kWidth) {
    const __mmask16 inside = static_cast<__mmask16>(n - i >= kWidth ? 0xffff : (1u << (n - i)) - 1);
    const __m512 value = _mm512_maskz_loadu_ps(inside, found + i);
    const __m512i place = _mm512_maskz_loadu_epi32(inside, places + i);
    const __m512i bits = magnitude_of(value);
    __mmask16 keep = _mm512_mask_cmpgt_epi32_mask(inside, bits, limit);
    const __mmask16 equal = _mm512_mask_cmpeq_epi32_mask(inside, bits, limit);
    if (equal != 0) keep |= first_ties(equal, ties);
    // First the rest: what is kept may be written over it.
    for (unsigned rest = out == nullptr ? 0 : inside & ~keep; rest != 0; rest &= rest - 1) {
      const auto lane = i + static_cast<std::size_t>(_tzcnt_u32(rest));
      out[places[lane]] = found[lane];
    }
    const auto count = static_cast<std::size_t>(_mm_popcnt_u32(keep));
    const __mmask16 written = static_cast<__mmask16>((1u << count) - 1);
    _mm512_mask_storeu_epi32(places_out + kept, written, _mm512_maskz_compress_epi32(keep, place));
    if (values_out != nullptr) {
      _mm512_mask_storeu_ps(values_out + kept, written, _mm512_maskz_compress_ps(keep, value));
    }
    kept += count;
  }
}

}  // namespace

const Tiles<float> kTilesAvx512{stage, collect, below, settle};

}  // namespace thinwire

#endif
