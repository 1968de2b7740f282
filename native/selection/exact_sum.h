// Sums of squares without any rounding until the end, so that no order of adding shows.
#pragma once

#include <array>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "core/bits.h"

namespace thinwire {

__extension__ typedef unsigned __int128 Uint128;

// A magnitude is mantissa * 2^exponent in units of the smallest denormal.
template <class Float>
struct Scaled {
  static constexpr int kFraction = sizeof(Float) == 4 ? 23 : 52;
  static constexpr int kUnit = sizeof(Float) == 4 ? -149 : -1074;  // log2 of the smallest denormal

  std::uint64_t mantissa;
  int exponent;

  explicit Scaled(Magnitude<Float> bits) {
    const auto field = static_cast<int>(bits >> kFraction);
    mantissa = static_cast<std::uint64_t>(bits) & ((std::uint64_t{1} << kFraction) - 1);
    if (field > 0) mantissa |= std::uint64_t{1} << kFraction;
    exponent = field > 0 ? field - 1 : 0;
  }
};

// A whole number of squares of the smallest denormal, wide enough for 2^40 of the largest squares.
template <class Float>
class ExactSum {
 public:
  // + amount * 2^shift
  void add(Uint128 amount, int shift) {
    auto at = static_cast<std::size_t>(shift / 64);
    const int inner = shift % 64;
    const Uint128 upper = amount >> (64 - inner);
    const std::uint64_t words[3] = {static_cast<std::uint64_t>(amount << inner), static_cast<std::uint64_t>(upper),
                                    static_cast<std::uint64_t>(upper >> 64)};
    Uint128 carry = 0;
    for (std::size_t i = 0; at < limbs_.size() && (i < 3 || carry != 0); ++i, ++at) {
      carry += Uint128{limbs_[at]} + (i < 3 ? words[i] : 0);
      limbs_[at] = static_cast<std::uint64_t>(carry);
      carry >>= 64;
    }
  }

  // + a * b * 2^shift
  void add_product(Uint128 a, std::uint64_t b, int shift) {
    add(Uint128{static_cast<std::uint64_t>(a)} * b, shift);
    add(Uint128{static_cast<std::uint64_t>(a >> 64)} * b, shift + 64);
  }

  // The nearest double, ties to even; the largest finite one for everything beyond.
  double rounded() const {
    std::size_t top = limbs_.size();
    while (top > 0 && limbs_[top - 1] == 0) --top;
    if (top == 0) return 0;
    const std::uint64_t high = limbs_[top - 1], below = top > 1 ? limbs_[top - 2] : 0;
    const int lead = std::countl_zero(high);
    std::uint64_t leading = lead == 0 ? high : (high << lead) | (below >> (64 - lead));
    bool more = lead == 0 ? below != 0 : (below << lead) != 0;
    for (std::size_t i = 0; i + 2 < top; ++i) more = more || limbs_[i] != 0;
    if (more) leading |= 1;  // only to break a tie: a double has but 53 of these bits
    const int exponent = 64 * (static_cast<int>(top) - 1) - lead + 2 * Scaled<Float>::kUnit;
    return std::fmin(std::ldexp(static_cast<double>(leading), exponent), DBL_MAX);
  }

 private:
  static constexpr int kLargestExponent = sizeof(Float) == 4 ? 254 : 2046;
  static constexpr int kBits = 2 * (kLargestExponent + Scaled<Float>::kFraction + 1) + 40;
  std::array<std::uint64_t, (kBits + 63) / 64 + 1> limbs_{};
};

}  // namespace thinwire
