// The tight loops that leave few of many elements: one table for each instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/bits.h"
#include "core/machine.h"

namespace thinwire {

// Both write in order and return how many they wrote. Registers are stored whole: `out` needs room for kSlack more than
// can be left over. n is below 2^32.
template <class Float>
struct Filters {
  // The places of the magnitudes that are not below the threshold.
  std::size_t (*places)(const Float* values, std::size_t n, Float threshold, std::uint32_t* out);
  // The magnitudes that are not below the floor.
  std::size_t (*magnitudes)(const Float* values, std::size_t n, Magnitude<Float> floor, Magnitude<Float>* out);
  // How many magnitudes are not below the threshold.
  std::size_t (*count)(const Float* values, std::size_t n, Float threshold);
};

constexpr std::size_t kSlack = 16;

template <class Float>
const Filters<Float>& filters_for(Isa isa);

}  // namespace thinwire
