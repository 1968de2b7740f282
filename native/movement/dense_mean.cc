// The mean of dense tensors in one pass.

#include <algorithm>
#include <vector>

#include "core/pool.h"
#include "movement/means.h"
#include "movement/movement.h"

namespace thinwire {
namespace {

constexpr std::size_t kPart = std::size_t{1} << 18;  // elements

template <class Float>
void add(Float* sums, const Float* more, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) sums[i] += more[i];
}

template <class Float>
void add(Float* sums, const Float* first, const Float* second, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) sums[i] = first[i] + second[i];
}

}  // namespace

template <class Float>
void dense_mean(const Machine& machine, Float* out, std::size_t n, std::span<const Float* const> tensors) {
  constexpr std::size_t kTile = kMeanTileBytes / sizeof(Float);
  const MeanWriter<Float> writer(machine, n, static_cast<Float>(tensors.size()));
  const int parts = machine.threads == 1 ? 1 : static_cast<int>(std::min<std::size_t>(n / kPart + 1, 1024));
  run_parts(machine.threads, parts, [&](int part) {
    alignas(64) Float sums[kTile];
    const std::size_t end = part_begin(n, part + 1, parts, kTile);
    for (std::size_t tile = part_begin(n, part, parts, kTile); tile < end; tile += kTile) {
      const std::size_t count = std::min(kTile, end - tile);
      if (tensors.size() == 1) std::copy_n(tensors[0] + tile, count, sums);
      if (tensors.size() > 1) add(sums, tensors[0] + tile, tensors[1] + tile, count);
      for (std::size_t t = 2; t < tensors.size(); ++t) add(sums, tensors[t] + tile, count);
      writer.write(out + tile, sums, count);
    }
    writer.finish();
  });
}

template void dense_mean(const Machine&, float*, std::size_t, std::span<const float* const>);
template void dense_mean(const Machine&, double*, std::size_t, std::span<const double* const>);

}  // namespace thinwire
