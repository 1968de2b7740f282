// Runs every kernel on odd sizes and on hostile bytes, every buffer exactly as long as it must be. Built with the
// address and undefined-behaviour sanitizers, which end it at the first byte read or written out of bounds.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "kernels.h"

using namespace thinwire;

namespace {

std::mt19937_64 dice(20260101);

std::size_t below(std::size_t n) { return n == 0 ? 0 : dice() % n; }

void require(bool truth, const char* what) {
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

template <class Float, class Index>
void select(std::size_t n, int distinct) {
  auto values = exactly<Float>(n);
  std::normal_distribution<Float> normal;
  for (std::size_t i = 0; i < n; ++i) {
    values[i] = distinct > 0 ? static_cast<Float>(below(distinct)) * Float(-0.5) : normal(dice);
  }
  for (const std::size_t k : {std::size_t{1}, n / 100 + 1, n / 2 + 1, n}) {
    auto out = exactly<Index>(k);
    top_k(values.get(), n, k, out.get());
    require(std::is_sorted(out.get(), out.get() + k), "top_k is in order");
    require(static_cast<std::size_t>(out[k - 1]) < n, "top_k is in range");
  }
  for (const Float threshold : {Float(0), Float(0.5), Float(2.5)}) {
    const std::size_t count = count_at_least(values.get(), n, threshold);
    auto out = exactly<Index>(count);
    require(at_least(values.get(), n, threshold, out.get(), count) == count, "at_least counts alike");
    auto few = exactly<Index>(count / 2);
    require(at_least(values.get(), n, threshold, few.get(), count / 2) == count / 2, "at_least stops");
  }
}

template <class Float, class Index>
void add(std::size_t n) {
  auto out = exactly<Float>(n);
  const auto list = random_list<Index>(n + n / 50, 60);  // now and then an index outside
  auto values = exactly<Float>(list.size());
  const bool inside = list.empty() || static_cast<std::size_t>(list.back()) < n;
  const Status status = scatter_add(out.get(), n, list.data(), values.get(), list.size());
  require((status == Status::kOk) == inside, "scatter_add refuses exactly what is outside");
}

template <class Index>
void check_list(const Index* list, std::size_t count, std::size_t units) {
  for (std::size_t i = 0; i < count; ++i) {
    require(list[i] >= 0 && static_cast<std::size_t>(list[i]) < units, "in range");
    require(i == 0 || list[i - 1] < list[i], "increasing");
  }
}

std::unique_ptr<std::uint8_t[]> damage(const std::uint8_t* data, std::size_t& size) {
  const std::size_t old = size;
  if (below(3) == 0) size = below(old + 9);
  auto copy = exactly<std::uint8_t>(size);
  for (std::size_t i = 0; i < size; ++i) copy[i] = i < old ? data[i] : static_cast<std::uint8_t>(dice());
  for (std::size_t flips = below(4); flips > 0 && size > 0; --flips) copy[below(size)] ^= 1u << below(8);
  return copy;
}

template <class Index>
void read_damaged(const std::uint8_t* data, std::size_t size, std::size_t units, std::size_t count, bool rice) {
  const auto bytes = damage(data, size);
  if (below(4) == 0) count = below(100);
  if (below(4) == 0) units = below(1000);
  if (count == 0) return;  // settled before the kernels are called
  auto out = exactly<Index>(count);
  const auto read = rice ? rice_read<Index> : bitmap_read<Index>;
  if (read(bytes.get(), size, units, out.get(), count) == Status::kOk) check_list(out.get(), count, units);
}

template <class Index>
void code(std::size_t units) {
  const auto list = random_list<Index>(units, 80);
  const auto plan = rice_plan(list.data(), list.size(), units);
  require(plan.status == Status::kOk, "rice_plan");
  auto section = exactly<std::uint8_t>(plan.bytes);
  if (!list.empty()) {
    require(rice_write(list.data(), list.size(), plan.bits, section.get(), plan.bytes) == Status::kOk, "rice_write");
    auto back = exactly<Index>(list.size());
    require(rice_read(section.get(), plan.bytes, units, back.get(), list.size()) == Status::kOk, "rice_read");
    require(std::equal(list.begin(), list.end(), back.get()), "rice comes back");
    const std::size_t small = below(plan.bytes);
    auto narrow = exactly<std::uint8_t>(small);
    require(rice_write(list.data(), list.size(), plan.bits, narrow.get(), small) == Status::kSpace, "rice_write fits");
  }
  for (int i = 0; i < 20; ++i) read_damaged<Index>(section.get(), plan.bytes, units, list.size(), true);
  if (units > 5000) return;
  const std::size_t size = (units + 7) / 8;
  auto bitmap = exactly<std::uint8_t>(size);
  require(bitmap_write(list.data(), list.size(), units, bitmap.get(), size) == Status::kOk, "bitmap_write");
  for (int i = 0; i < 20; ++i) read_damaged<Index>(bitmap.get(), size, units, list.size(), false);
}

}  // namespace

int main() {
  for (const std::size_t n : {1, 2, 15, 16, 17, 31, 33, 1000, 4097, 300'001}) {
    for (const int distinct : {0, 1, 3}) {
      select<float, std::int32_t>(n, distinct);
      select<double, std::int64_t>(n, distinct);
    }
  }
  for (int round = 0; round < 3000; ++round) {
    add<float, std::int32_t>(1 + below(100));
    add<double, std::int64_t>(1 + below(100));
    code<std::int32_t>(below(2000));
    code<std::int64_t>(std::size_t{1} << below(41));
  }
  std::puts("clean");
}
