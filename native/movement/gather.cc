// Values out of a dense tensor, with or without leaving zeros behind.

#include <algorithm>
#include <atomic>
#include <limits>
#include <type_traits>

#include "core/pool.h"
#include "movement/messages.h"
#include "movement/movement.h"

namespace thinwire {
namespace {

constexpr std::size_t kBlock = 1024;  // indices that are still in the first cache after they have been checked
constexpr std::size_t kAhead = 64;

// Whether all are between 0 and `last`, without a branch.
template <class Index>
bool inside(const Index* indices, std::size_t count, Index last) {
  using Unsigned = std::make_unsigned_t<Index>;
  Unsigned outside = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Unsigned index = static_cast<Unsigned>(indices[i]);
    outside |= index | (static_cast<Unsigned>(last) - index);
  }
  return outside >> (8 * sizeof(Index) - 1) == 0;
}

int parts_for(int threads, std::size_t count) {
  return threads == 1 ? 1 : static_cast<int>(std::min<std::size_t>(count / kPerPart + 1, threads));
}

}  // namespace

template <class Float, class Index>
Status gather(const Machine& machine, const Float* values, std::size_t n, const Index* indices, std::size_t count,
              Float* out) {
  if (count == 0) return Status::kOk;
  if (n == 0) return Status::kRange;
  constexpr std::size_t kMost = static_cast<std::size_t>(std::numeric_limits<Index>::max());
  const Index last = static_cast<Index>(std::min(n - 1, kMost));
  const int parts = parts_for(machine.threads, count);
  std::atomic<bool> sound{true};
  run_parts(machine.threads, parts, [&](int part) {
    const std::size_t end = part_begin(count, part + 1, parts, kBlock);
    for (std::size_t block = part_begin(count, part, parts, kBlock); block < end; block += kBlock) {
      const std::size_t to = std::min(block + kBlock, end);
      if (!inside(indices + block, to - block, last)) {
        sound.store(false, std::memory_order_relaxed);
        return;
      }
      for (std::size_t i = block; i < to; ++i) out[i] = values[indices[i]];
    }
  });
  return sound.load() ? Status::kOk : Status::kRange;
}

template <class Float, class Index>
Status take_at(const Machine& machine, Float* values, std::size_t n, const Index* indices, std::size_t count,
               Float* out) {
  const Status status = check_list(machine.threads, indices, count, n);
  if (status != Status::kOk) return status;
  const int parts = parts_for(machine.threads, count);
  run_parts(machine.threads, parts, [&](int part) {
    const std::size_t end = part_begin(count, part + 1, parts, kBlock);
    for (std::size_t i = part_begin(count, part, parts, kBlock); i < end; ++i) {
      __builtin_prefetch(values + indices[std::min(i + kAhead, count - 1)], 1);
      out[i] = values[indices[i]];
      values[indices[i]] = 0;
    }
  });
  return Status::kOk;
}

#define THINWIRE_INSTANCES(Float, Index)                                                                       \
  template Status gather(const Machine&, const Float*, std::size_t, const Index*, std::size_t, Float*);        \
  template Status take_at(const Machine&, Float*, std::size_t, const Index*, std::size_t, Float*);
THINWIRE_INSTANCES(float, std::int32_t)
THINWIRE_INSTANCES(float, std::int64_t)
THINWIRE_INSTANCES(double, std::int32_t)
THINWIRE_INSTANCES(double, std::int64_t)

}  // namespace thinwire
