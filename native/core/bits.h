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

// Whole bytes that hold `bits` bits.
constexpr std::size_t bytes_for(std::size_t bits) { return bits / 8 + (bits % 8 != 0); }

// The number of one bits in a byte stream.
inline std::size_t count_ones(const std::uint8_t* bytes, std::size_t size) {
  std::size_t ones = 0;
  for (std::size_t at = 0; at < size; at += 8) ones += std::popcount(load_le(bytes + at, size - at));
  return ones;
}

// Calls `visit(position)` for every one bit, lowest first. The caller bounds the number of calls by counting
// the ones before; a stream that changes meanwhile is the caller's fault but `visit` may still stop it by
// returning false.
template <class Visit>
inline bool for_each_one(const std::uint8_t* bytes, std::size_t size, Visit visit) {
  for (std::size_t at = 0; at < size; at += 8) {
    for (std::uint64_t word = load_le(bytes + at, size - at); word != 0; word &= word - 1) {
      if (!visit(8 * at + static_cast<std::size_t>(std::countr_zero(word)))) return false;
    }
  }
  return true;
}

}  // namespace thinwire
