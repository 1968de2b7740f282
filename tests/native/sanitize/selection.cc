// Selections on odd sizes, every buffer exactly as long as it must be. Built with the address and
// undefined-behaviour sanitizers, which end it at the first byte read or written out of bounds.

#include <limits>

#include "common.h"
#include "selection/selection.h"
#include "selection/statistics.h"

using namespace thinwire;

namespace {

template <class Float, class Index>
void select(const Machine& machine, std::size_t n, int distinct) {
  auto values = exactly<Float>(n);
  std::normal_distribution<Float> normal;
  for (std::size_t i = 0; i < n; ++i) {
    values[i] = distinct > 0 ? static_cast<Float>(below(distinct)) * Float(-0.5) : normal(dice);
  }
  for (const std::size_t k : {std::size_t{1}, n / 100 + 1, n / 2 + 1, n}) {
    auto out = exactly<Index>(k);
    top_k(machine, values.get(), n, k, out.get());
    require(std::is_sorted(out.get(), out.get() + k), "top_k is in order");
    require(static_cast<std::size_t>(out[k - 1]) < n, "top_k is in range");
    auto zeros = exactly<Float>(n), rest = exactly<Float>(n), taken = exactly<Float>(k);
    auto places = exactly<Index>(k);
    const Taken found = take_top_k(machine, values.get(), zeros.get(), rest.get(), n, k, places.get(), taken.get());
    require(found.count == k && std::equal(places.get(), places.get() + k, out.get()), "take_top_k takes the top k");
    values[below(n)] = std::numeric_limits<Float>::quiet_NaN();
    top_k(machine, values.get(), n, k, out.get());  // anything in range, but nothing out of bounds
    const Taken none = take_top_k(machine, values.get(), zeros.get(), rest.get(), n, k, places.get(), taken.get());
    require(none.count == 0, "take_top_k takes nothing");
    std::replace_if(values.get(), values.get() + n, [](Float value) { return value != value; }, Float(1));
  }
  for (const Float threshold : {Float(0), Float(0.5), Float(2.5)}) {
    const std::size_t count = count_at_least(machine, values.get(), n, threshold);
    auto out = exactly<Index>(count);
    AtLeast found;
    require(found.find(machine, values.get(), n, threshold) == count, "at_least counts alike");
    found.write(out.get());
    require(std::is_sorted(out.get(), out.get() + count), "at_least is in order");
  }
}

}  // namespace

int main() {
  for (const Machine& machine : machines()) {
    for (const std::size_t n : {1, 2, 15, 16, 17, 31, 33, 1000, 4097, 300'001}) {
      for (const int distinct : {0, 1, 3}) {
        select<float, std::int32_t>(machine, n, distinct);
        select<float, std::int64_t>(machine, n, distinct);
        select<double, std::int64_t>(machine, n, distinct);
      }
    }
  }
  std::puts("clean");
}
