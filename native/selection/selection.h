// Which elements are worth sending. Selections are strictly increasing.
//
// `Float` is float or double, `Index` is int32_t or int64_t. The semantics are those of
// src/thinwire/kernels/reference/selection.py, bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>

namespace thinwire {

// The k largest magnitudes, equal ones lowest index first. Needs 0 < k <= n; writes k indices. Linear time.
template <class Float, class Index>
void top_k(const Float* values, std::size_t n, std::size_t k, Index* out);

}  // namespace thinwire
