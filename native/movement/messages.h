// Sparse messages, and what makes one sound: strictly increasing indices inside the tensor.
//
// Kernels that take several messages walk all of them together, one range of the tensor at a time, so that each cache
// line of the tensor is fetched once. Within a range they take the messages in the order of the list, so every sum is
// made in that order, whatever the ranges and threads are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

#include "core/machine.h"
#include "core/pool.h"
#include "core/status.h"
#include "movement/movement.h"

namespace thinwire {

constexpr std::size_t kPerPart = std::size_t{1} << 16;  // work that is worth waking a thread for

// How a list ends that is not known to be sound: one element after the other.
template <class Index>
Status judge(const Index* indices, std::size_t count, std::size_t n) {
  for (std::size_t i = 1; i < count; ++i) {
    if (indices[i - 1] >= indices[i]) return Status::kOrder;
  }
  const bool inside = count == 0 || (indices[0] >= 0 && static_cast<std::size_t>(indices[count - 1]) < n);
  return inside ? Status::kOk : Status::kRange;
}

// Whether indices[from..to) is not negative and increases, starting above indices[from - 1]. Without a branch, as all
// but hostile lists are sound: the differences of indices that are not negative have the right sign.
template <class Index>
bool increases(const Index* indices, std::size_t from, std::size_t to) {
  using Unsigned = std::make_unsigned_t<Index>;
  Unsigned falls = static_cast<Unsigned>(-1), negative = 0;
  if (from == 0 && to > 0) negative = static_cast<Unsigned>(indices[from++]);
  for (std::size_t i = from; i < to; ++i) {
    const Unsigned last = static_cast<Unsigned>(indices[i - 1]), next = static_cast<Unsigned>(indices[i]);
    falls &= last - next;
    negative |= next;
  }
  constexpr int kSign = 8 * sizeof(Index) - 1;
  return falls >> kSign != 0 && negative >> kSign == 0;
}

// kOrder or kRange for a list that is not strictly increasing or reaches outside of n elements.
template <class Index>
Status check_list(int threads, const Index* indices, std::size_t count, std::size_t n) {
  const int parts = threads == 1 ? 1 : static_cast<int>(std::min<std::size_t>(count / kPerPart + 1, threads));
  bool sound[kMostThreads];
  run_parts(threads, parts, [&](int part) {
    sound[part] = increases(indices, part_begin(count, part, parts, 16), part_begin(count, part + 1, parts, 16));
  });
  const bool inside = count == 0 || static_cast<std::size_t>(indices[count - 1]) < n;
  if (inside && std::all_of(sound, sound + parts, [](bool truth) { return truth; })) return Status::kOk;
  return judge(indices, count, n);
}

template <class Float, class Index>
Status check_messages(int threads, Messages<Float, Index> messages, std::size_t n) {
  for (const auto& message : messages) {
    const Status status = check_list(threads, message.indices, message.count, n);
    if (status != Status::kOk) return status;
  }
  return Status::kOk;
}

template <class Float, class Index>
std::size_t total(Messages<Float, Index> messages) {
  std::size_t sum = 0;
  for (const auto& message : messages) sum += message.count;
  return sum;
}

// How many indices of a sound list are below `bound`.
template <class Index>
std::size_t count_below(const Index* indices, std::size_t count, std::size_t bound) {
  const auto below = [](Index index, std::size_t limit) { return static_cast<std::size_t>(index) < limit; };
  return static_cast<std::size_t>(std::lower_bound(indices, indices + count, bound, below) - indices);
}

// Where each message stands in the part of the tensor that begins at `from`, for every part of it.
template <class Float, class Index>
class Cursors {
 public:
  Cursors(Messages<Float, Index> messages, int parts) : messages_(messages), at_(messages.size() * parts) {}

  // The cursors of one part, set to its first element.
  std::size_t* start(int part, std::size_t from) {
    std::size_t* at = at_.data() + messages_.size() * static_cast<std::size_t>(part);
    for (std::size_t m = 0; m < messages_.size(); ++m) {
      at[m] = from == 0 ? 0 : count_below(messages_[m].indices, messages_[m].count, from);
    }
    return at;
  }

 private:
  Messages<Float, Index> messages_;
  std::vector<std::size_t> at_;
};

}  // namespace thinwire
