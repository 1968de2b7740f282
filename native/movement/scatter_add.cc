// Ordered scatter-add. All indices are checked before the first addition.

#include <type_traits>

#include "movement/movement.h"

namespace thinwire {

template <class Float, class Index>
Status scatter_add(Float* out, std::size_t n, const Index* indices, const Float* values, std::size_t count) {
  using Unsigned = std::make_unsigned_t<Index>;
  Unsigned largest = 0;  // a negative index becomes a huge one
  for (std::size_t i = 0; i < count; ++i) {
    const Unsigned index = static_cast<Unsigned>(indices[i]);
    largest = index > largest ? index : largest;
  }
  if (count > 0 && largest >= n) return Status::kRange;
  for (std::size_t i = 0; i < count; ++i) out[indices[i]] += values[i];
  return Status::kOk;
}

template Status scatter_add(float*, std::size_t, const std::int32_t*, const float*, std::size_t);
template Status scatter_add(float*, std::size_t, const std::int64_t*, const float*, std::size_t);
template Status scatter_add(double*, std::size_t, const std::int32_t*, const double*, std::size_t);
template Status scatter_add(double*, std::size_t, const std::int64_t*, const double*, std::size_t);

}  // namespace thinwire
