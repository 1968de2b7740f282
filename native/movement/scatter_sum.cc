// Several messages added to a dense tensor, or averaged into one, tile by tile.

#include <algorithm>

#include "movement/means.h"
#include "movement/messages.h"
#include "movement/movement.h"

namespace thinwire {
namespace {

constexpr std::size_t kAhead = 128;               // entries: how early a line of the tensor is asked for
constexpr std::size_t kSumTileBytes = 256 << 10;  // a tile of the tensor itself stays in the second cache
constexpr int kPartsPerThread = 8;                // as messages may be crowded in a few places

// Adds what the message has below `to`, from entry `at` on; returns where it stopped. `out` is element 0.
template <class Float, class Index>
std::size_t add_below(const Message<Float, Index>& message, std::size_t at, Float* out, std::size_t to) {
  const auto [indices, values, count] = message;
  const std::size_t far = count > kAhead ? count - kAhead : 0;
  for (; at < far && static_cast<std::size_t>(indices[at]) < to; ++at) {
    __builtin_prefetch(out + indices[at + kAhead], 1);
    out[indices[at]] += values[at];
  }
  for (; at < count && static_cast<std::size_t>(indices[at]) < to; ++at) out[indices[at]] += values[at];
  return at;
}

// The same into a tile of its own that begins at `from`.
template <class Float, class Index>
std::size_t add_to_tile(const Message<Float, Index>& message, std::size_t at, Float* tile, std::size_t from,
                        std::size_t to) {
  const auto [indices, values, count] = message;
  for (; at < count && static_cast<std::size_t>(indices[at]) < to; ++at) {
    tile[static_cast<std::size_t>(indices[at]) - from] += values[at];
  }
  return at;
}

int parts_for(int threads, std::size_t n, std::size_t tile) {
  if (threads == 1) return 1;
  return static_cast<int>(std::min<std::size_t>(n / tile + 1, static_cast<std::size_t>(threads * kPartsPerThread)));
}

}  // namespace

template <class Float, class Index>
Status scatter_sum(const Machine& machine, Float* out, std::size_t n, Messages<Float, Index> messages) {
  constexpr std::size_t kTile = kSumTileBytes / sizeof(Float);
  const Status status = check_messages(machine.threads, messages, n);
  if (status != Status::kOk) return status;
  const int threads = total(messages) < kPerPart ? 1 : machine.threads;
  const int parts = parts_for(threads, n, kTile);
  Cursors<Float, Index> cursors(messages, parts);
  run_parts(threads, parts, [&](int part) {
    const std::size_t end = part_begin(n, part + 1, parts, kTile);
    std::size_t tile = part_begin(n, part, parts, kTile);
    std::size_t* at = cursors.start(part, tile);
    for (; tile < end; tile += kTile) {
      const std::size_t to = std::min(tile + kTile, end);
      for (std::size_t m = 0; m < messages.size(); ++m) at[m] = add_below(messages[m], at[m], out, to);
    }
  });
  return Status::kOk;
}

template <class Float, class Index>
Status scatter_mean(const Machine& machine, Float* out, std::size_t n, Messages<Float, Index> messages, Float divisor) {
  constexpr std::size_t kTile = kMeanTileBytes / sizeof(Float);
  const Status status = check_messages(machine.threads, messages, n);
  if (status != Status::kOk) return status;
  const int threads = n < kPerPart ? 1 : machine.threads;
  const int parts = parts_for(threads, n, kTile);
  Cursors<Float, Index> cursors(messages, parts);
  const MeanWriter<Float> writer(machine, n, divisor);
  run_parts(threads, parts, [&](int part) {
    alignas(64) Float sums[kTile];
    const std::size_t end = part_begin(n, part + 1, parts, kTile);
    std::size_t tile = part_begin(n, part, parts, kTile);
    std::size_t* at = cursors.start(part, tile);
    for (; tile < end; tile += kTile) {
      const std::size_t to = std::min(tile + kTile, end);
      std::fill(sums, sums + (to - tile), Float{0});
      for (std::size_t m = 0; m < messages.size(); ++m) at[m] = add_to_tile(messages[m], at[m], sums, tile, to);
      writer.write(out + tile, sums, to - tile);
    }
    writer.finish();
  });
  return Status::kOk;
}

#define THINWIRE_INSTANCES(Float, Index)                                                                \
  template Status scatter_sum(const Machine&, Float*, std::size_t, Messages<Float, Index>); \
  template Status scatter_mean(const Machine&, Float*, std::size_t, Messages<Float, Index>, Float);
THINWIRE_INSTANCES(float, std::int32_t)
THINWIRE_INSTANCES(float, std::int64_t)
THINWIRE_INSTANCES(double, std::int32_t)
THINWIRE_INSTANCES(double, std::int64_t)

}  // namespace thinwire
