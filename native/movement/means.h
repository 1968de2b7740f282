// Sums that become means, tile by tile, on their way to memory.
#pragma once

#include <cstddef>

#include "core/machine.h"

namespace thinwire {

constexpr std::size_t kMeanTileBytes = 16 << 10;  // sums in the making stay in the first cache

// Turns the sums in a tile into means, and writes them where they belong.
template <class Float>
class MeanWriter {
 public:
  // `n` is the length of the whole result: one that is too large for the caches is written past them, so that memory
  // is not read before it is written.
  MeanWriter(const Machine& machine, std::size_t n, Float divisor);

  // to[i] = sums[i] / divisor. What `sums` held is lost.
  void write(Float* to, Float* sums, std::size_t count) const;

  // To be called when everything is written, by the thread that wrote it and before others read it.
  void finish() const;

 private:
  void (*scale_)(Float* sums, std::size_t count, Float factor);
  Float factor_;
  bool stream_;
};

}  // namespace thinwire
