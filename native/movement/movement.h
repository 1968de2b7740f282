// Values on their way out of and into dense tensors.
//
// `Float` is float or double, `Index` is int32_t or int64_t. The semantics are those of
// src/thinwire/kernels/reference/movement.py, bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/status.h"

namespace thinwire {

// out[indices[i]] += values[i] for i = 0, 1, ... kRange before anything is changed.
template <class Float, class Index>
Status scatter_add(Float* out, std::size_t n, const Index* indices, const Float* values, std::size_t count);

}  // namespace thinwire
