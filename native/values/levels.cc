// Values as a sign and the number of a level: two or four of them in a byte, the first one lowest.

#include <bit>

#include "core/bits.h"
#include "values/values.h"

namespace thinwire {
namespace {

constexpr std::size_t kBlock = 256;

// Codes of up to kBlock values, one byte each.
template <class Float, int kCount>
[[gnu::always_inline]] inline void code_block(const Float* values, std::size_t n, const Float* bounds,
                                              std::uint8_t* codes) {
  using Bits = std::conditional_t<sizeof(Float) == 4, std::uint32_t, std::uint64_t>;
  Bits bound[kCount - 1];
  for (int level = 0; level < kCount - 1; ++level) bound[level] = std::bit_cast<Bits>(bounds[level]);
  for (std::size_t i = 0; i < n; ++i) {
    // Magnitudes order as the integers of their bits, and only the signed ones are compared by every processor.
    using Signed = Magnitude<Float>;
    const Signed size = magnitude(values[i]);
    Signed code = 0;
#pragma GCC unroll 7
    for (int level = 0; level < kCount - 1; ++level) code += size > static_cast<Signed>(bound[level]);
    const Bits sign = std::bit_cast<Bits>(values[i]) >> kMagnitudeBits<Float>;
    codes[i] = static_cast<std::uint8_t>(static_cast<Bits>(code) | sign * kCount);
  }
}

template <class Float, int kCount>
[[gnu::always_inline]] inline void pack_loop(const Float* values, std::size_t n, const Float* bounds,
                                             std::uint8_t* out) {
  constexpr std::size_t kEach = kCount == 2 ? 4 : 2;  // codes in a byte
  constexpr int kBits = 8 / kEach;
  std::uint8_t codes[kBlock];
  for (std::size_t from = 0; from < n; from += kBlock) {
    const std::size_t here = n - from < kBlock ? n - from : kBlock;
    code_block<Float, kCount>(values + from, here, bounds, codes);
    for (std::size_t i = here; i % kEach != 0; ++i) codes[i] = 0;
    for (std::size_t byte = 0; byte * kEach < here; ++byte) {
      unsigned packed = 0;
      for (std::size_t i = 0; i < kEach; ++i) packed |= static_cast<unsigned>(codes[byte * kEach + i]) << (kBits * i);
      out[from / kEach + byte] = static_cast<std::uint8_t>(packed);
    }
  }
}

template <class Float>
using Pack = void (*)(const Float*, std::size_t, const Float*, std::uint8_t*);

template <class Float, int kCount>
void pack_plain(const Float* values, std::size_t n, const Float* bounds, std::uint8_t* out) {
  pack_loop<Float, kCount>(values, n, bounds, out);
}

#if THINWIRE_X86
template <class Float, int kCount>
THINWIRE_AVX2 void pack_avx2(const Float* values, std::size_t n, const Float* bounds, std::uint8_t* out) {
  pack_loop<Float, kCount>(values, n, bounds, out);
}

template <class Float, int kCount>
THINWIRE_AVX512 void pack_avx512(const Float* values, std::size_t n, const Float* bounds, std::uint8_t* out) {
  pack_loop<Float, kCount>(values, n, bounds, out);
}
#endif

template <class Float, int kCount>
Pack<Float> pack_of(Isa isa) {
#if THINWIRE_X86
  if (isa == Isa::kAvx512) return pack_avx512<Float, kCount>;
  if (isa == Isa::kAvx2) return pack_avx2<Float, kCount>;
#endif
  static_cast<void>(isa);
  return pack_plain<Float, kCount>;
}

// A table of what each byte stands for, so that a byte takes one copy.
template <class Float, int kCount>
void unpack_loop(const std::uint8_t* data, std::size_t n, const Float* levels, Float* out) {
  constexpr std::size_t kEach = kCount == 2 ? 4 : 2;
  constexpr int kBits = 8 / kEach;
  Float table[256][kEach];
  for (unsigned byte = 0; byte < 256; ++byte) {
    for (std::size_t i = 0; i < kEach; ++i) {
      const unsigned code = byte >> (kBits * i) & (2 * kCount - 1);
      const Float level = levels[code % kCount];
      table[byte][i] = code >= kCount ? -level : level;
    }
  }
  std::size_t i = 0;
  for (; i + kEach <= n; i += kEach) std::memcpy(out + i, table[data[i / kEach]], sizeof(table[0]));
  for (std::size_t j = 0; i + j < n; ++j) out[i + j] = table[data[i / kEach]][j];
}

}  // namespace

template <class Float>
void pack_levels(const Machine& machine, const Float* values, std::size_t n, const Float* bounds, int count,
                 std::uint8_t* out) {
  const auto pack = count == 2 ? pack_of<Float, 2>(machine.isa) : pack_of<Float, kMostLevels>(machine.isa);
  pack(values, n, bounds, out);
}

template <class Float>
void unpack_levels(const std::uint8_t* data, std::size_t n, const Float* levels, int count, Float* out) {
  count == 2 ? unpack_loop<Float, 2>(data, n, levels, out) : unpack_loop<Float, kMostLevels>(data, n, levels, out);
}

template void pack_levels(const Machine&, const float*, std::size_t, const float*, int, std::uint8_t*);
template void pack_levels(const Machine&, const double*, std::size_t, const double*, int, std::uint8_t*);
template void unpack_levels(const std::uint8_t*, std::size_t, const float*, int, float*);
template void unpack_levels(const std::uint8_t*, std::size_t, const double*, int, double*);

}  // namespace thinwire
