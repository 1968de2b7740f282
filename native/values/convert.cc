// Values in narrower types. The loops are plain; the compiler makes them as wide as the instruction set.

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "values/values.h"

#if THINWIRE_X86
#include <immintrin.h>
#endif

namespace thinwire {
namespace {

template <class T>
[[gnu::always_inline]] inline void store(std::uint8_t* out, std::size_t i, T value) {
  std::memcpy(out + i * sizeof(T), &value, sizeof(T));
}

template <class T>
[[gnu::always_inline]] inline T load(const std::uint8_t* data, std::size_t i) {
  T value;
  std::memcpy(&value, data + i * sizeof(T), sizeof(T));
  return value;
}

template <class Float>
[[gnu::always_inline]] inline Float within(Float value, Float limit) {
  value = value > -limit ? value : -limit;
  return value < limit ? value : limit;
}

// Each format: the type on the wire, and both ways for one value.

struct Bf16 {
  using Wire = std::uint16_t;
  template <class Float>
  [[gnu::always_inline]] static Wire pack(Float value, Float) {
    constexpr float kLargest = 0x1.fep127f;
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(within<Float>(value, kLargest)));
    return static_cast<Wire>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
  }
  template <class Float>
  [[gnu::always_inline]] static Float unpack(Wire wire, Float) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(wire) << 16);
  }
};

struct Int8 {
  using Wire = std::int8_t;
  template <class Float>
  [[gnu::always_inline]] static Wire pack(Float value, Float scale) {
    // Adding and taking away 1.5 * 2^(fraction bits) rounds to the nearest whole number, ties to even.
    constexpr Float kWhole = std::is_same_v<Float, float> ? Float(0x1.8p23) : Float(0x1.8p52);
    return static_cast<Wire>(static_cast<int>((within<Float>(value / scale, 127) + kWhole) - kWhole));
  }
  template <class Float>
  [[gnu::always_inline]] static Float unpack(Wire wire, Float scale) {
    return static_cast<Float>(wire) * scale;
  }
};

template <class T>
struct Same {
  using Wire = T;
  template <class Float>
  [[gnu::always_inline]] static Float unpack(T wire, Float) {
    return static_cast<Float>(wire);
  }
};

template <class Format, class Float>
[[gnu::always_inline]] inline void pack_loop(const Float* values, std::size_t n, Float scale, std::uint8_t* out) {
  for (std::size_t i = 0; i < n; ++i) store(out, i, Format::pack(values[i], scale));
}

template <class Format, class Float>
[[gnu::always_inline]] inline bool unpack_loop(const std::uint8_t* data, std::size_t n, Float scale, Float* out) {
  using Bits = std::conditional_t<sizeof(Float) == 4, std::uint32_t, std::uint64_t>;
  constexpr Bits kInfinity = std::bit_cast<Bits>(std::numeric_limits<Float>::infinity());
  Bits largest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const Float value = Format::template unpack<Float>(load<typename Format::Wire>(data, i), scale);
    out[i] = value;
    const Bits bits = std::bit_cast<Bits>(value) & ~(Bits{1} << (8 * sizeof(Float) - 1));
    largest = bits > largest ? bits : largest;
  }
  return largest < kInfinity;
}

template <class Float>
struct Loops {
  void (*pack_bf16)(const Float*, std::size_t, Float, std::uint8_t*);
  void (*pack_f16)(const Float*, std::size_t, Float, std::uint8_t*);
  void (*pack_int8)(const Float*, std::size_t, Float, std::uint8_t*);
  bool (*unpack_f32)(const std::uint8_t*, std::size_t, Float, Float*);
  bool (*unpack_f64)(const std::uint8_t*, std::size_t, Float, Float*);
  bool (*unpack_bf16)(const std::uint8_t*, std::size_t, Float, Float*);
  bool (*unpack_f16)(const std::uint8_t*, std::size_t, Float, Float*);
  bool (*unpack_int8)(const std::uint8_t*, std::size_t, Float, Float*);
};

template <class Format, class Float>
void pack_plain(const Float* values, std::size_t n, Float scale, std::uint8_t* out) {
  pack_loop<Format>(values, n, scale, out);
}

template <class Format, class Float>
bool unpack_plain(const std::uint8_t* data, std::size_t n, Float scale, Float* out) {
  return unpack_loop<Format>(data, n, scale, out);
}

#if THINWIRE_X86
template <class Format, class Float>
THINWIRE_AVX2 void pack_avx2(const Float* values, std::size_t n, Float scale, std::uint8_t* out) {
  pack_loop<Format>(values, n, scale, out);
}

template <class Format, class Float>
THINWIRE_AVX512 void pack_avx512(const Float* values, std::size_t n, Float scale, std::uint8_t* out) {
  pack_loop<Format>(values, n, scale, out);
}

template <class Format, class Float>
THINWIRE_AVX2 bool unpack_avx2(const std::uint8_t* data, std::size_t n, Float scale, Float* out) {
  return unpack_loop<Format>(data, n, scale, out);
}

template <class Format, class Float>
THINWIRE_AVX512 bool unpack_avx512(const std::uint8_t* data, std::size_t n, Float scale, Float* out) {
  return unpack_loop<Format>(data, n, scale, out);
}

constexpr std::size_t kBlock = 8;  // half-precision numbers are converted eight at a time

THINWIRE_AVX2 inline __m128i halves_of(const float* values) {
  const __m256 limit = _mm256_set1_ps(65504);
  const __m256 low = _mm256_max_ps(_mm256_loadu_ps(values), _mm256_sub_ps(_mm256_setzero_ps(), limit));
  return _mm256_cvtps_ph(_mm256_min_ps(low, limit), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

THINWIRE_AVX2 inline __m128i halves_of(const double* values) {
  float narrow[kBlock];
  for (std::size_t i = 0; i < kBlock; ++i) narrow[i] = static_cast<float>(within<double>(values[i], 65504));
  return halves_of(narrow);
}

THINWIRE_AVX2 inline void store_wide(float* out, __m256 values) { _mm256_storeu_ps(out, values); }

THINWIRE_AVX2 inline void store_wide(double* out, __m256 values) {
  _mm256_storeu_pd(out, _mm256_cvtps_pd(_mm256_castps256_ps128(values)));
  _mm256_storeu_pd(out + 4, _mm256_cvtps_pd(_mm256_extractf128_ps(values, 1)));
}

template <class Float>
THINWIRE_AVX2 void pack_f16(const Float* values, std::size_t n, Float, std::uint8_t* out) {
  std::size_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 2 * i), halves_of(values + i));
  }
  if (i == n) return;
  Float rest[kBlock] = {};
  for (std::size_t j = 0; i + j < n; ++j) rest[j] = values[i + j];
  std::uint16_t halves[kBlock];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(halves), halves_of(rest));
  std::memcpy(out + 2 * i, halves, 2 * (n - i));
}

template <class Float>
THINWIRE_AVX2 bool unpack_f16(const std::uint8_t* data, std::size_t n, Float, Float* out) {
  const __m128i exponent = _mm_set1_epi16(0x7c00);
  __m128i infinite = _mm_setzero_si128();
  for (std::size_t i = 0; i < n; i += kBlock) {
    const bool whole = n - i >= kBlock;
    std::uint16_t rest[kBlock] = {};
    if (!whole) std::memcpy(rest, data + 2 * i, 2 * (n - i));
    const void* from = whole ? static_cast<const void*>(data + 2 * i) : rest;
    const __m128i halves = _mm_loadu_si128(static_cast<const __m128i*>(from));
    infinite = _mm_or_si128(infinite, _mm_cmpeq_epi16(_mm_and_si128(halves, exponent), exponent));
    Float wide[kBlock];
    store_wide(whole ? out + i : wide, _mm256_cvtph_ps(halves));
    if (!whole) std::memcpy(out + i, wide, sizeof(Float) * (n - i));
  }
  return _mm_movemask_epi8(infinite) == 0;
}
#endif

template <class Float>
Loops<Float> loops_of(Isa isa) {
#if THINWIRE_X86
  if (isa == Isa::kAvx512) {
    return {pack_avx512<Bf16, Float>,         pack_f16<Float>,
            pack_avx512<Int8, Float>,         unpack_avx512<Same<float>, Float>,
            unpack_avx512<Same<double>, Float>, unpack_avx512<Bf16, Float>,
            unpack_f16<Float>,                unpack_avx512<Int8, Float>};
  }
  if (isa == Isa::kAvx2) {
    return {pack_avx2<Bf16, Float>,         pack_f16<Float>,
            pack_avx2<Int8, Float>,         unpack_avx2<Same<float>, Float>,
            unpack_avx2<Same<double>, Float>, unpack_avx2<Bf16, Float>,
            unpack_f16<Float>,              unpack_avx2<Int8, Float>};
  }
#endif
  static_cast<void>(isa);
  return {pack_plain<Bf16, Float>,           nullptr,
          pack_plain<Int8, Float>,           unpack_plain<Same<float>, Float>,
          unpack_plain<Same<double>, Float>, unpack_plain<Bf16, Float>,
          nullptr,                           unpack_plain<Int8, Float>};
}

}  // namespace

std::size_t value_bytes(const Machine& machine, ValueFormat format) {
  switch (format) {
    case ValueFormat::kF32: return 4;
    case ValueFormat::kF64: return 8;
    case ValueFormat::kBf16: return 2;
    case ValueFormat::kF16: return loops_of<float>(machine.isa).pack_f16 == nullptr ? 0 : 2;
    case ValueFormat::kInt8: return 1;
  }
  return 0;
}

template <class Float>
void pack_values(const Machine& machine, const Float* values, std::size_t n, ValueFormat format, Float scale,
                 std::uint8_t* out) {
  const auto loops = loops_of<Float>(machine.isa);
  switch (format) {
    case ValueFormat::kBf16: return loops.pack_bf16(values, n, scale, out);
    case ValueFormat::kF16: return loops.pack_f16(values, n, scale, out);
    case ValueFormat::kInt8: return loops.pack_int8(values, n, scale, out);
    default: return;
  }
}

template <class Float>
bool unpack_values(const Machine& machine, const std::uint8_t* data, std::size_t n, ValueFormat format, Float scale,
                   Float* out) {
  const auto loops = loops_of<Float>(machine.isa);
  switch (format) {
    case ValueFormat::kF32: return loops.unpack_f32(data, n, scale, out);
    case ValueFormat::kF64: return loops.unpack_f64(data, n, scale, out);
    case ValueFormat::kBf16: return loops.unpack_bf16(data, n, scale, out);
    case ValueFormat::kF16: return loops.unpack_f16(data, n, scale, out);
    case ValueFormat::kInt8: return loops.unpack_int8(data, n, scale, out);
  }
  return false;
}

template void pack_values(const Machine&, const float*, std::size_t, ValueFormat, float, std::uint8_t*);
template void pack_values(const Machine&, const double*, std::size_t, ValueFormat, double, std::uint8_t*);
template bool unpack_values(const Machine&, const std::uint8_t*, std::size_t, ValueFormat, float, float*);
template bool unpack_values(const Machine&, const std::uint8_t*, std::size_t, ValueFormat, double, double*);

}  // namespace thinwire
