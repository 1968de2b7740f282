// Which elements are worth sending. Selections are strictly increasing.
//
// `Float` is float or double, `Index` is int32_t or int64_t. The semantics are those of
// src/thinwire/kernels/reference/selection.py, bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/machine.h"

namespace thinwire {

// The k largest magnitudes, equal ones lowest index first. Needs 0 < k <= n; writes k indices. Linear time.
template <class Float, class Index>
void top_k(const Machine& machine, const Float* values, std::size_t n, std::size_t k, Index* out);

struct Taken {
  double energy;      // sum of squares of the sums; no finite number exactly if some sum is none
  std::size_t count;  // k, or 0 where some sum is no finite number
};

// out = owed + gradient, of which the k largest go to `indices` and `values` and leave zeros behind. 0 <= k <= n; out
// may be owed. Where some sum is no finite number nothing is taken.
template <class Float, class Index>
Taken take_top_k(const Machine& machine, const Float* owed, const Float* gradient, Float* out, std::size_t n,
                 std::size_t k, Index* indices, Float* values);

}  // namespace thinwire
