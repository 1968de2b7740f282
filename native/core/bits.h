// Small helpers for reading floats and byte streams as bits. The wire is little-endian, lowest bit first.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace thinwire {

// A float without its sign, as an integer. For finite floats the integers order exactly as the magnitudes
// do, denormals included, and both zeros become 0. Signed, because plain SSE2 compares no unsigned integers.
template <class Float>
using Magnitude = std::conditional_t<sizeof(Float) == 4, std::int32_t, std::int64_t>;

template <class Float>
constexpr int kMagnitudeBits = 8 * sizeof(Float) - 1;

template <class Float>
constexpr Magnitude<Float> magnitude(Float value) {
  using Bits = Magnitude<Float>;
  return std::bit_cast<Bits>(value) & static_cast<Bits>(~(std::uint64_t{1} << kMagnitudeBits<Float>));
}

// Up to eight bytes as a little-endian number; `available` may be more than eight.
inline std::uint64_t load_le(const std::uint8_t* bytes, std::size_t available) {
  std::uint64_t word = 0;
  if (std::endian::native == std::endian::little && available >= 8) {
    std::memcpy(&word, bytes, 8);
    return word;
  }
  const std::size_t count = available < 8 ? available : 8;
  for (std::size_t i = 0; i < count; ++i) word |= std::uint64_t{bytes[i]} << (8 * i);
  return word;
}

// A number as eight little-endian bytes.
inline void store_le(std::uint8_t* bytes, std::uint64_t word) {
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(bytes, &word, 8);
  } else {
    for (int i = 0; i < 8; ++i) bytes[i] = static_cast<std::uint8_t>(word >> (8 * i));
  }
}

// Whole bytes that hold `bits` bits.
constexpr std::size_t bytes_for(std::size_t bits) { return bits / 8 + (bits % 8 != 0); }

}  // namespace thinwire
