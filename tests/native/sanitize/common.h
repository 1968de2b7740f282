// What the programs under the sanitizers share: dice, buffers exactly as long as they must be, and damaged bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "core/machine.h"

inline std::mt19937_64 dice(20260101);

inline std::size_t below(std::size_t n) { return n == 0 ? 0 : dice() % n; }

inline void require(bool truth, const char* what) {
  if (truth) return;
  std::fprintf(stderr, "failed: %s\n", what);
  std::exit(1);
}

// On the heap and exactly `n` long, so that one step too far is seen.
template <class T>
std::unique_ptr<T[]> exactly(std::size_t n) {
  return std::make_unique<T[]>(n);
}

template <class Index>
std::vector<Index> random_list(std::size_t units, std::size_t most) {
  std::vector<Index> list;
  for (std::size_t i = below(most + 1); i > 0 && units > 0; --i) list.push_back(static_cast<Index>(below(units)));
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

template <class Index>
void check_list(const Index* list, std::size_t count, std::size_t units) {
  for (std::size_t i = 0; i < count; ++i) {
    require(list[i] >= 0 && static_cast<std::size_t>(list[i]) < units, "in range");
    require(i == 0 || list[i - 1] < list[i], "increasing");
  }
}

inline std::unique_ptr<std::uint8_t[]> damage(const std::uint8_t* data, std::size_t& size) {
  const std::size_t old = size;
  if (below(3) == 0) size = below(old + 9);
  auto copy = exactly<std::uint8_t>(size);
  for (std::size_t i = 0; i < size; ++i) copy[i] = i < old ? data[i] : static_cast<std::uint8_t>(dice());
  for (std::size_t flips = below(4); flips > 0 && size > 0; --flips) copy[below(size)] ^= 1u << below(8);
  return copy;
}

// Every instruction set of this processor, with one thread and with three.
inline std::vector<thinwire::Machine> machines() {
  std::vector<thinwire::Machine> all;
  for (const thinwire::Isa isa : thinwire::usable_isas()) {
    for (const int threads : {1, 3}) all.push_back({isa, threads});
  }
  return all;
}
