// The tight loops of top-k, one table of them for each instruction set, on tiles of at most kTile elements.
//
// Magnitudes are compared as integers (core/bits.h), so that denormals count whatever the processor's rounding mode.
// Sums of squares are made in kLanes lanes, lane i of elements i, i + kLanes, ..., and the lanes are added up in double:
// the same order for every instruction set, hence the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/bits.h"
#include "core/machine.h"

namespace thinwire {

constexpr std::size_t kTile = 4096;
constexpr std::size_t kLanes = 64;
// A tile's finds are written in whole vectors: so much room must there be behind the last one.
constexpr std::size_t kSpill = 64;

template <class Float>
struct Tiles {
  // What is seen on the way over one tile.
  struct Seen {
    double energy = 0;             // sum of squares; not finite if one of them overflowed
    Magnitude<Float> largest = 0;  // of all tiles so far; finite numbers only exactly if it is one
  };

  // out = owed + gradient; what is not below `floor` goes to `places` (counted from `base`) and `found`, and out has a
  // zero instead. `out` may be `owed`. With `stream` the cache is passed by. Returns how many were found.
  std::size_t (*stage)(const Float* owed, const Float* gradient, Float* out, std::size_t n, Magnitude<Float> floor,
                       std::int32_t base, std::int32_t* places, Float* found, bool stream, Seen& seen);

  // The same of `values`, which stay as they are.
  std::size_t (*collect)(const Float* values, std::size_t n, Magnitude<Float> floor, std::int32_t base,
                         std::int32_t* places, Float* found);

  // The magnitudes of any number of finds that are below `ceiling`; how many there are. `out` holds n and kSpill.
  std::size_t (*below)(const Float* found, std::size_t n, Magnitude<Float> ceiling, Magnitude<Float>* out);

  // Parts any number of finds: what is above `level`, and the first `ties` that equal it, goes to `places_out` and
  // `values_out`, `room` of them and not one more; the rest goes back to its place in `out`. `values_out` and `out` may
  // be null. `places_out` may be `places`.
  void (*settle)(const std::int32_t* places, const Float* found, std::size_t n, Magnitude<Float> level,
                 std::size_t ties, std::int32_t* places_out, Float* values_out, std::size_t room, Float* out);
};

// The best table for a machine.
template <class Float>
const Tiles<Float>& tiles_of(Isa isa);

#if THINWIRE_X86
extern const Tiles<float> kTilesAvx2;
extern const Tiles<float> kTilesAvx512;
#elif THINWIRE_ARM
extern const Tiles<float> kTilesNeon;
#endif

// A tile's lanes, added up in the one order.
template <class Float>
double sum_of_lanes(const Float* lanes) {
  double sum = 0;
  for (std::size_t i = 0; i < kLanes; ++i) sum += lanes[i];
  return sum;
}

}  // namespace thinwire
