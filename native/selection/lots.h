// Places to look at, one in every stride: periodic data does not fool them, and a seed always gives the same ones.
#pragma once

#include <cstdint>

namespace thinwire {

// The place of lot `number` within its stride, which is below 2^32.
inline std::uint64_t lot(std::uint64_t seed, std::uint64_t number, std::uint64_t stride) {
  // The finaliser of splitmix64 over a counter: lots can be drawn in any order.
  std::uint64_t bits = seed + (number + 1) * 0x9e3779b97f4a7c15;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  bits ^= bits >> 31;
  return ((bits >> 32) * stride) >> 32;
}

}  // namespace thinwire
