// Values as bytes, and back; and the checksum of a message.
//
// `Float` is float or double. The semantics are those of src/thinwire/kernels/reference/values.py, bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/machine.h"

namespace thinwire {

// The numbers of the wire format. Those not named here are written and read elsewhere.
enum class ValueFormat : int { kF32 = 0, kF64 = 1, kBf16 = 2, kF16 = 3, kInt8 = 4 };

// Bytes of one value; 0 for a format that is not handled on this machine.
std::size_t value_bytes(const Machine& machine, ValueFormat format);

// The nearest values that the format has, ties to even, saturating: n * value_bytes bytes. Not kF32 and kF64.
template <class Float>
void pack_values(const Machine& machine, const Float* values, std::size_t n, ValueFormat format, Float scale,
                 std::uint8_t* out);

// False if some value is not a finite number. `data` may lie at any address. kF64 needs Float to be double.
template <class Float>
bool unpack_values(const Machine& machine, const std::uint8_t* data, std::size_t n, ValueFormat format, Float scale,
                   Float* out);

constexpr int kMostLevels = 8;

// Codes of log2(count) + 1 bits: the number of the nearest of `count` (2 or 8) increasing levels, the lower one of
// equally near, and the sign. `bounds` are the count - 1 magnitudes above which the next level is nearer.
template <class Float>
void pack_levels(const Machine& machine, const Float* values, std::size_t n, const Float* bounds, int count,
                 std::uint8_t* out);

// The levels with their signs.
template <class Float>
void unpack_levels(const std::uint8_t* data, std::size_t n, const Float* levels, int count, Float* out);

// The CRC-32 of zlib, continued from `before`. Needs a machine that multiplies without carries: kAvx2 or kAvx512.
std::uint32_t crc32(const Machine& machine, const std::uint8_t* data, std::size_t size, std::uint32_t before);

}  // namespace thinwire
