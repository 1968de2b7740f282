// How large values are beside the weights they belong to.
#pragma once

#include <cstddef>

#include "core/machine.h"

namespace thinwire {

// Writes |value| / (|weight| + epsilon), in the type of the values, for n elements.
template <class Float>
using Ratios = void (*)(const Float* values, const Float* weights, std::size_t n, Float epsilon, Float* out);

template <class Float>
Ratios<Float> ratios_for(Isa isa);

}  // namespace thinwire
