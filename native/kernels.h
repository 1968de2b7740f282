// The kernels: plain functions on pointers, no Python, no allocation but scratch memory.
//
// Each declaration has one definition in the file of its name; faster variants for particular processors belong
// behind the same declarations. `Float` is float or double, `Index` is int32_t or int64_t. Selections are strictly
// increasing. The semantics are those of src/thinwire/kernels/reference.py, bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>

namespace thinwire {

// How a kernel ended. The numbers are known to native.py.
enum class Status : int {
  kOk = 0,
  kCoordinates = 1,  // an impossible length, parameter or count
  kPadding = 2,      // unused bits that are not zero, or whole unused bytes
  kRange = 3,        // an index lies outside the tensor
  kOrder = 4,        // indices that should increase do not
  kSpace = 5,        // the output is smaller than the result
};

// The k largest magnitudes, equal ones lowest index first. Needs 0 < k <= n; writes k indices. Linear time.
template <class Float, class Index>
void top_k(const Float* values, std::size_t n, std::size_t k, Index* out);

// How many magnitudes are not below the threshold.
template <class Float>
std::size_t count_at_least(const Float* values, std::size_t n, Float threshold);

// Their indices. Writes at most `room` of them and returns how many it wrote.
template <class Float, class Index>
std::size_t at_least(const Float* values, std::size_t n, Float threshold, Index* out, std::size_t room);

// out[indices[i]] += values[i] for i = 0, 1, ... kRange before anything is changed.
template <class Float, class Index>
Status scatter_add(Float* out, std::size_t n, const Index* indices, const Float* values, std::size_t count);

// What rice_write will do: the Rice parameter with the fewest bits, and the bytes of the whole section.
struct RicePlan {
  Status status;
  int bits;
  std::size_t bytes;
};

constexpr int kMaxRiceBits = 40;

// kRange or kOrder for indices that are not an increasing list below `units`.
template <class Index>
RicePlan rice_plan(const Index* indices, std::size_t count, std::size_t units);

// Writes parameter byte, low bits, unary quotients into exactly `size` bytes; kSpace if they do not fit.
template <class Index>
Status rice_write(const Index* indices, std::size_t count, int bits, std::uint8_t* out, std::size_t size);

// Trusts nothing: kCoordinates, kPadding or kRange, and then `out` holds nothing of use. `count` > 0.
template <class Index>
Status rice_read(const std::uint8_t* data, std::size_t size, std::size_t units, Index* out, std::size_t count);

// One bit for each unit. `size` must be the bytes of `units` bits.
template <class Index>
Status bitmap_write(const Index* indices, std::size_t count, std::size_t units, std::uint8_t* out, std::size_t size);

// Trusts nothing: kCoordinates or kPadding.
template <class Index>
Status bitmap_read(const std::uint8_t* data, std::size_t size, std::size_t units, Index* out, std::size_t count);

}  // namespace thinwire
