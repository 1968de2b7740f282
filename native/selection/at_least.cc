// Threshold selection in one pass: every part of the vector leaves its places in its part of the working memory.

#include <algorithm>

#include "core/pool.h"
#include "core/scratch.h"
#include "selection/filters.h"
#include "selection/ratio.h"
#include "selection/statistics.h"

namespace thinwire {
namespace {

constexpr std::size_t kRun = 4096;
constexpr std::size_t kPart = std::size_t{1} << 31;  // places in a part are written in 32 bits
constexpr std::size_t kWorthAThread = std::size_t{1} << 15;

struct Places;

}  // namespace

template <class Look>
std::size_t AtLeast::find_in_parts(const Machine& machine, std::size_t n, Look look) {
  threads_ = n < kWorthAThread ? 1 : machine.threads;
  parts_ = std::min(kMostParts, std::max(threads_, static_cast<int>((n + kPart - 1) / kPart)));
  // Room for everything, and a register more for each part. Pages that nothing is written to take no memory.
  places_ = scratch<Places, std::uint32_t>(n + kMostParts * kSlack);
  run_parts(threads_, parts_, [&](int part) {
    const std::size_t begin = part_begin(n, part, parts_, kRun), end = part_begin(n, part + 1, parts_, kRun);
    begins_[part] = begin;
    counts_[part] = look(begin, end, places_ + begin + static_cast<std::size_t>(part) * kSlack);
  });
  std::size_t total = 0;
  for (int part = 0; part < parts_; ++part) total += counts_[part];
  return total;
}

template <class Float>
std::size_t AtLeast::find(const Machine& machine, const Float* values, std::size_t n, Float threshold) {
  const auto filter = filters_for<Float>(machine.isa).places;
  return find_in_parts(machine, n, [=](std::size_t begin, std::size_t end, std::uint32_t* out) {
    return filter(values + begin, end - begin, threshold, out);
  });
}

template <class Float>
std::size_t AtLeast::find(const Machine& machine, const Float* values, const Float* weights, std::size_t n,
                          Float epsilon, Float threshold) {
  const auto filter = filters_for<Float>(machine.isa).places;
  const auto ratios = ratios_for<Float>(machine.isa);
  return find_in_parts(machine, n, [=](std::size_t begin, std::size_t end, std::uint32_t* out) {
    std::size_t written = 0;
    Float block[kRun];
    for (std::size_t at = begin; at < end; at += kRun) {
      const std::size_t length = std::min(kRun, end - at);
      ratios(values + at, weights + at, length, epsilon, block);
      const std::size_t count = filter(block, length, threshold, out + written);
      const auto shift = static_cast<std::uint32_t>(at - begin);
      for (std::size_t i = written; i < written + count; ++i) out[i] += shift;
      written += count;
    }
    return written;
  });
}

template <class Index>
void AtLeast::write(Index* out) const {
  std::size_t starts[kMostParts] = {};
  for (int part = 1; part < parts_; ++part) starts[part] = starts[part - 1] + counts_[part - 1];
  run_parts(threads_, parts_, [&](int part) {
    const std::uint32_t* from = places_ + begins_[part] + static_cast<std::size_t>(part) * kSlack;
    const Index begin = static_cast<Index>(begins_[part]);
    Index* to = out + starts[part];
    for (std::size_t i = 0; i < counts_[part]; ++i) to[i] = static_cast<Index>(begin + static_cast<Index>(from[i]));
  });
}

template <class Float>
std::size_t count_at_least(const Machine& machine, const Float* values, std::size_t n, Float threshold) {
  const auto count = filters_for<Float>(machine.isa).count;
  const int parts = n < kWorthAThread ? 1 : machine.threads;
  std::size_t counts[kMostThreads] = {};
  run_parts(machine.threads, parts, [&](int part) {
    const std::size_t begin = part_begin(n, part, parts, kRun);
    counts[part] = count(values + begin, part_begin(n, part + 1, parts, kRun) - begin, threshold);
  });
  std::size_t total = 0;
  for (int part = 0; part < parts; ++part) total += counts[part];
  return total;
}

template std::size_t AtLeast::find(const Machine&, const float*, std::size_t, float);
template std::size_t AtLeast::find(const Machine&, const double*, std::size_t, double);
template std::size_t AtLeast::find(const Machine&, const float*, const float*, std::size_t, float, float);
template std::size_t AtLeast::find(const Machine&, const double*, const double*, std::size_t, double, double);
template void AtLeast::write(std::int32_t*) const;
template void AtLeast::write(std::int64_t*) const;
template std::size_t count_at_least(const Machine&, const float*, std::size_t, float);
template std::size_t count_at_least(const Machine&, const double*, std::size_t, double);

}  // namespace thinwire
