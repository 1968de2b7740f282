// Division of sums, and stores past the caches.

#include "movement/means.h"

#include <cmath>
#include <cstdint>
#include <cstring>

#if THINWIRE_X86
#include <immintrin.h>
#endif

namespace thinwire {
namespace {

constexpr std::size_t kStreamFrom = std::size_t{16} << 20;  // bytes; less may stay in the caches for its reader

template <class Float>
[[gnu::always_inline]] inline void divide_each(Float* sums, std::size_t count, Float divisor) {
  for (std::size_t i = 0; i < count; ++i) sums[i] /= divisor;
}

template <class Float>
void divide(Float* sums, std::size_t count, Float divisor) {
  divide_each(sums, count, divisor);
}

template <class Float>
void multiply(Float* sums, std::size_t count, Float factor) {
  for (std::size_t i = 0; i < count; ++i) sums[i] *= factor;
}

#if THINWIRE_X86

// Divisions take so long that narrow vectors would be slower than memory.
template <class Float>
THINWIRE_AVX2 void divide_avx2(Float* sums, std::size_t count, Float divisor) {
  divide_each(sums, count, divisor);
}

template <class Float>
THINWIRE_AVX512 void divide_avx512(Float* sums, std::size_t count, Float divisor) {
  divide_each(sums, count, divisor);
}

#endif

template <class Float>
auto divide_on(Isa isa) {
#if THINWIRE_X86
  if (isa == Isa::kAvx512) return &divide_avx512<Float>;
  if (isa == Isa::kAvx2) return &divide_avx2<Float>;
#endif
  static_cast<void>(isa);
  return &divide<Float>;
}

// Whether 1 / divisor is exact and no denormal: then the product with it has the bits of the quotient.
template <class Float>
bool is_power_of_two(Float divisor) {
  int exponent;
  return std::frexp(divisor, &exponent) == Float{0.5} && std::isnormal(1 / divisor);
}

template <class Float>
void stream(Float* to, const Float* from, std::size_t count) {
  std::size_t i = 0;
#if THINWIRE_X86
  constexpr std::size_t kLane = 16 / sizeof(Float);
  for (; i < count && reinterpret_cast<std::uintptr_t>(to + i) % 64 != 0; ++i) to[i] = from[i];
  for (; i + kLane <= count; i += kLane) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
  }
#endif
  std::memcpy(to + i, from + i, (count - i) * sizeof(Float));
}

}  // namespace

template <class Float>
MeanWriter<Float>::MeanWriter(const Machine& machine, std::size_t n, Float divisor)
    : scale_(divide_on<Float>(machine.isa)), factor_(divisor), stream_(n * sizeof(Float) >= kStreamFrom) {
  if (!is_power_of_two(divisor)) return;
  scale_ = &multiply<Float>;
  factor_ = 1 / divisor;
}

template <class Float>
void MeanWriter<Float>::write(Float* to, Float* sums, std::size_t count) const {
  scale_(sums, count, factor_);
  if (stream_) {
    stream(to, sums, count);
  } else {
    std::memcpy(to, sums, count * sizeof(Float));
  }
}

template <class Float>
void MeanWriter<Float>::finish() const {
#if THINWIRE_X86
  if (stream_) _mm_sfence();
#endif
}

template class MeanWriter<float>;
template class MeanWriter<double>;

}  // namespace thinwire
