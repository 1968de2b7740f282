// Increasing lists of indices as bytes, and back.
//
// `Float` is float or double, `Index` is int32_t or int64_t. The semantics are those of
// src/thinwire/kernels/reference/coordinates.py, bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/machine.h"
#include "core/status.h"

namespace thinwire {

// What rice_write will do: the Rice parameter with the fewest bits, and the bytes of the whole section.
struct RicePlan {
  Status status;
  int bits;
  std::size_t bytes;
};

constexpr int kMaxRiceBits = 40;

// kRange or kOrder for indices that are not an increasing list below `units`.
template <class Index>
RicePlan rice_plan(const Machine& machine, const Index* indices, std::size_t count, std::size_t units);

// Writes parameter byte, low bits, unary quotients into exactly `size` bytes; kSpace if they do not fit.
template <class Index>
Status rice_write(const Machine& machine, const Index* indices, std::size_t count, int bits, std::uint8_t* out,
                  std::size_t size);

// Trusts nothing: kCoordinates, kPadding or kRange, and then `out` holds nothing of use. `count` > 0.
template <class Index>
Status rice_read(const Machine& machine, const std::uint8_t* data, std::size_t size, std::size_t units, Index* out,
                 std::size_t count);

// The number of one bits in a byte stream.
std::size_t count_ones(const Machine& machine, const std::uint8_t* bytes, std::size_t size);

// One bit for each unit. `size` must be the bytes of `units` bits.
template <class Index>
Status bitmap_write(const Machine& machine, const Index* indices, std::size_t count, std::size_t units,
                    std::uint8_t* out, std::size_t size);

// Trusts nothing: kCoordinates or kPadding.
template <class Index>
Status bitmap_read(const Machine& machine, const std::uint8_t* data, std::size_t size, std::size_t units, Index* out,
                   std::size_t count);

// One bit for each of `size` members, a sorted list. Indices increase; kRange if one is no member. `out` has the bytes
// of `size` bits.
template <class Index>
Status members_write(const Machine& machine, const Index* indices, std::size_t count, const Index* members,
                     std::size_t size, std::uint8_t* out);

// Trusts the members and nothing else: kCoordinates or kPadding.
template <class Index>
Status members_read(const Machine& machine, const std::uint8_t* data, std::size_t bytes, const Index* members,
                    std::size_t size, Index* out, std::size_t count);

}  // namespace thinwire
