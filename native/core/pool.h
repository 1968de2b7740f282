// A few threads that sleep until a kernel has parts for them.
//
// They never spin, so torch's own threads lose nothing to them; the caller works along, so one thread needs none of them.
// Kernels cut their work into parts by the number of elements or of threads and write each part's results to a place of
// its own: which thread does which part does not show.
#pragma once

#include <cstddef>
#include <type_traits>

namespace thinwire {

constexpr int kMostThreads = 64;

namespace pool_detail {
void run(int threads, int parts, void (*work)(void* context, int part), void* context);
}

// Calls `work(part)` for every part from 0 to `parts`, on at most `threads` threads, and returns when all are done.
// `work` must not throw. Two callers at a time: the second one does its parts alone.
template <class Work>
void run_parts(int threads, int parts, Work&& work) {
  using Plain = std::remove_reference_t<Work>;
  if (threads <= 1 || parts <= 1) {
    for (int part = 0; part < parts; ++part) work(part);
    return;
  }
  pool_detail::run(
      threads, parts, [](void* context, int part) { (*static_cast<Plain*>(context))(part); },
      const_cast<void*>(static_cast<const void*>(&work)));
}

// Where part `part` of `parts` begins when n elements are cut evenly at multiples of `grain`.
constexpr std::size_t part_begin(std::size_t n, int part, int parts, std::size_t grain) {
  const std::size_t grains = (n + grain - 1) / grain;
  const std::size_t whole = grains / parts, rest = grains % parts;
  const std::size_t index = static_cast<std::size_t>(part);
  const std::size_t at = (index * whole + (index < rest ? index : rest)) * grain;
  return at < n ? at : n;
}

}  // namespace thinwire
