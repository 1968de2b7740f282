// The order in which many numbers are summed, so that all implementations get the same bits.
//
// Tiles of kTile elements have kLanes lanes: element i of a tile belongs to lane i mod kLanes, and a lane is summed in
// the order of its elements, in double precision. The lanes are then added up by halves, lane j and lane j + half, until
// one is left. Tiles are added in their order. src/thinwire/kernels/reference/sums.py does the same.
#pragma once

#include <cstddef>

#include "core/machine.h"

namespace thinwire {

constexpr std::size_t kLanes = 64;
constexpr std::size_t kTile = 64 * kLanes;

constexpr std::size_t tiles_of(std::size_t n) { return (n + kTile - 1) / kTile; }

// The sum of squares of one tile; n is at most kTile.
template <class Float>
using TileEnergy = double (*)(const Float* values, std::size_t n);

template <class Float>
TileEnergy<Float> tile_energy_for(Isa isa);

// The energy of the vector whose tiles have these energies; the largest finite number where only the sum is none.
template <class Float>
double energy_of_tiles(const double* tiles, const Float* values, std::size_t n);

}  // namespace thinwire
