// CRC-32 (zlib, gzip, Ethernet) by multiplication without carries, after Gopal and others, "Fast CRC computation for
// generic polynomials using PCLMULQDQ" (2009).
//
// Four registers of 128 bits are multiplied ahead by 512 bits and the next 64 bytes added, until fewer are left; then
// the four are folded into one. Those 16 bytes have the same remainder as everything they stand for, so a table
// finishes them, and the rest of the data, byte by byte.

#include <array>

#include "values/values.h"

#if THINWIRE_X86
#include <immintrin.h>
#endif

namespace thinwire {
namespace {

constexpr std::array<std::uint32_t, 256> kTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ (rest & 1 ? 0xEDB88320u : 0);
    table[byte] = rest;
  }
  return table;
}();

inline std::uint32_t byte_by_byte(const std::uint8_t* data, std::size_t size, std::uint32_t rest) {
  for (std::size_t i = 0; i < size; ++i) rest = (rest >> 8) ^ kTable[(rest ^ data[i]) & 0xff];
  return rest;
}

#if THINWIRE_X86
#define THINWIRE_CLMUL __attribute__((target("avx2,bmi,bmi2,popcnt,sse4.2,pclmul")))

// x^(bits + 32) and x^(bits - 32) modulo the polynomial, reflected: what moves 128 bits ahead by `bits`.
constexpr long long kBy512Low = 0x154442bd4, kBy512High = 0x1c6e41596;
constexpr long long kBy128Low = 0x1751997d0, kBy128High = 0x0ccaa009e;

THINWIRE_CLMUL inline __m128i load(const std::uint8_t* data) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(data));
}

THINWIRE_CLMUL inline __m128i ahead(__m128i value, __m128i by, __m128i next) {
  const __m128i low = _mm_clmulepi64_si128(value, by, 0x00);
  const __m128i high = _mm_clmulepi64_si128(value, by, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

THINWIRE_CLMUL std::uint32_t folded(const std::uint8_t* data, std::size_t size, std::uint32_t rest) {
  if (size < 128) return byte_by_byte(data, size, rest);
  const __m128i by512 = _mm_set_epi64x(kBy512High, kBy512Low), by128 = _mm_set_epi64x(kBy128High, kBy128Low);
  __m128i a = _mm_xor_si128(load(data), _mm_cvtsi32_si128(static_cast<int>(rest)));
  __m128i b = load(data + 16), c = load(data + 32), d = load(data + 48);
  for (data += 64, size -= 64; size >= 64; data += 64, size -= 64) {
    a = ahead(a, by512, load(data));
    b = ahead(b, by512, load(data + 16));
    c = ahead(c, by512, load(data + 32));
    d = ahead(d, by512, load(data + 48));
  }
  std::uint8_t left[16];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(left), ahead(ahead(ahead(a, by128, b), by128, c), by128, d));
  return byte_by_byte(data, size, byte_by_byte(left, 16, 0));
}
#endif

}  // namespace

std::uint32_t crc32(const Machine& machine, const std::uint8_t* data, std::size_t size, std::uint32_t before) {
#if THINWIRE_X86
  if (machine.isa != Isa::kScalar) return ~folded(data, size, ~before);
#endif
  static_cast<void>(machine);
  return ~byte_by_byte(data, size, ~before);
}

}  // namespace thinwire
