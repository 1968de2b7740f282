// Movements on odd sizes, every buffer exactly as long as it must be. Built with the address and
// undefined-behaviour sanitizers, which end it at the first byte read or written out of bounds.

#include "common.h"
#include "movement/movement.h"

using namespace thinwire;

namespace {

template <class Float, class Index>
void add(std::size_t n) {
  auto out = exactly<Float>(n);
  const auto list = random_list<Index>(n + n / 50, 60);  // now and then an index outside
  auto values = exactly<Float>(list.size());
  const bool inside = list.empty() || static_cast<std::size_t>(list.back()) < n;
  const Status status = scatter_add(out.get(), n, list.data(), values.get(), list.size());
  require((status == Status::kOk) == inside, "scatter_add refuses exactly what is outside");
}

}  // namespace

int main() {
  for (int round = 0; round < 3000; ++round) {
    add<float, std::int32_t>(1 + below(100));
    add<double, std::int64_t>(1 + below(100));
  }
  std::puts("clean");
}
