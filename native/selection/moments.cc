// Sums over a vector in one pass: energy and moments.

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>

#include "core/bits.h"
#include "core/pool.h"
#include "core/scratch.h"
#include "selection/statistics.h"
#include "selection/sums.h"

#if THINWIRE_X86
#include <immintrin.h>
#endif

namespace thinwire {
namespace {

#define THINWIRE_ALWAYS inline __attribute__((always_inline))

// Vectors of the compiler, as wide as a register: the loops are written once and compiled for each instruction set.
template <class Element, std::size_t kBytes>
struct Vector {
  typedef Element Type __attribute__((vector_size(kBytes)));
};

template <class Float, std::size_t kBytes>
struct Wide {
  static constexpr std::size_t kWidth = kBytes / sizeof(double);
  using Narrow = typename Vector<Float, kWidth * sizeof(Float)>::Type;
  using Bits = typename Vector<Magnitude<Float>, kWidth * sizeof(Float)>::Type;
  using Double = typename Vector<double, kBytes>::Type;
  using DoubleBits = typename Vector<std::int64_t, kBytes>::Type;
};

// By address, as a function without the instruction set of a vector cannot take or return it.
template <class Double, class Float>
THINWIRE_ALWAYS void widen(const Float* from, Double& to) {
  typename Vector<Float, sizeof(Double) / sizeof(double) * sizeof(Float)>::Type narrow;
  std::memcpy(&narrow, from, sizeof narrow);
  to = __builtin_convertvector(narrow, Double);
}

#if THINWIRE_X86
// The compiler makes two halves of it and puts them together.
THINWIRE_AVX512 inline void widen(const float* from, Wide<float, 64>::Double& to) {
  to = _mm512_maskz_cvtps_pd(0xff, _mm256_loadu_ps(from));
}
#endif

// One tile whose length is a multiple of kLanes. kGroup lanes at a time, as many as there are registers for.
template <class Float, std::size_t kBytes, std::size_t kGroup>
THINWIRE_ALWAYS void square_lanes(const Float* values, std::size_t n, double* lanes) {
  using W = Wide<Float, kBytes>;
  constexpr std::size_t kEach = kGroup / W::kWidth;
  for (std::size_t group = 0; group < kLanes; group += kGroup) {
    typename W::Double sums[kEach] = {};
    for (std::size_t row = group; row < n; row += kLanes) {
#pragma GCC unroll 16
      for (std::size_t i = 0; i < kEach; ++i) {
        typename W::Double wide;
        widen(values + row + i * W::kWidth, wide);
        sums[i] += wide * wide;
      }
    }
    std::memcpy(lanes + group, sums, sizeof sums);
  }
}

template <class Float>
struct MomentLanes {
  double sums[kLanes], magnitudes[kLanes], squares[kLanes];
  Magnitude<Float> largest;
};

template <class Float, std::size_t kBytes, std::size_t kGroup>
THINWIRE_ALWAYS void moment_lanes(const Float* values, std::size_t n, MomentLanes<Float>& lanes) {
  using W = Wide<Float, kBytes>;
  constexpr std::size_t kEach = kGroup / W::kWidth;
  constexpr auto kUnsign = static_cast<Magnitude<Float>>(~(std::uint64_t{1} << kMagnitudeBits<Float>));
  constexpr std::int64_t kUnsignDouble = ~(std::int64_t{1} << 63);
  typename W::Bits largest[kEach] = {};
  for (std::size_t group = 0; group < kLanes; group += kGroup) {
    typename W::Double sums[kEach] = {}, magnitudes[kEach] = {}, squares[kEach] = {};
    for (std::size_t row = group; row < n; row += kLanes) {
#pragma GCC unroll 16
      for (std::size_t i = 0; i < kEach; ++i) {
        typename W::Bits bits;
        std::memcpy(&bits, values + row + i * W::kWidth, sizeof bits);
        bits &= kUnsign;
        largest[i] = bits > largest[i] ? bits : largest[i];
        typename W::Double wide;
        widen(values + row + i * W::kWidth, wide);
        sums[i] += wide;
        magnitudes[i] += (typename W::Double)((typename W::DoubleBits)wide & kUnsignDouble);
        squares[i] += wide * wide;
      }
    }
    std::memcpy(lanes.sums + group, sums, sizeof sums);
    std::memcpy(lanes.magnitudes + group, magnitudes, sizeof magnitudes);
    std::memcpy(lanes.squares + group, squares, sizeof squares);
  }
  lanes.largest = 0;
  for (std::size_t i = 0; i < kEach; ++i) {
    for (std::size_t j = 0; j < W::kWidth; ++j) lanes.largest = std::max<Magnitude<Float>>(lanes.largest, largest[i][j]);
  }
}

template <class Float>
struct Loops {
  void (*squares)(const Float* values, std::size_t n, double* lanes);
  void (*moments)(const Float* values, std::size_t n, MomentLanes<Float>& lanes);
};

template <class Float>
struct Scalar {
  static void squares(const Float* values, std::size_t n, double* lanes) {
    square_lanes<Float, 16, 8>(values, n, lanes);
  }
  static void moments(const Float* values, std::size_t n, MomentLanes<Float>& lanes) {
    moment_lanes<Float, 16, 4>(values, n, lanes);
  }
};

#if THINWIRE_X86
template <class Float>
struct Avx2 {
  THINWIRE_AVX2 static void squares(const Float* values, std::size_t n, double* lanes) {
    square_lanes<Float, 32, 32>(values, n, lanes);
  }
  THINWIRE_AVX2 static void moments(const Float* values, std::size_t n, MomentLanes<Float>& lanes) {
    moment_lanes<Float, 32, 8>(values, n, lanes);
  }
};

template <class Float>
struct Avx512 {
  THINWIRE_AVX512 static void squares(const Float* values, std::size_t n, double* lanes) {
    square_lanes<Float, 64, 64>(values, n, lanes);
  }
  THINWIRE_AVX512 static void moments(const Float* values, std::size_t n, MomentLanes<Float>& lanes) {
    moment_lanes<Float, 64, 32>(values, n, lanes);
  }
};
#endif

template <class Float>
Loops<Float> loops_for(Isa isa) {
#if THINWIRE_X86
  if (isa == Isa::kAvx512) return {Avx512<Float>::squares, Avx512<Float>::moments};
  if (isa == Isa::kAvx2) return {Avx2<Float>::squares, Avx2<Float>::moments};
#endif
  static_cast<void>(isa);
  return {Scalar<Float>::squares, Scalar<Float>::moments};
}

// By halves; destroys the lanes.
double sum_of_lanes(double* lanes) {
  for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::size_t j = 0; j < half; ++j) lanes[j] += lanes[j + half];
  }
  return lanes[0];
}

constexpr std::size_t whole_rows(std::size_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

// A tile that ends within a row, filled up with zeros: they change no sum.
template <class Float>
struct Padded {
  Float values[kTile];
  Padded(const Float* from, std::size_t n) {
    std::copy(from, from + n, values);
    std::fill(values + n, values + whole_rows(n), Float(0));
  }
};

template <class Float>
void tile_moments(const Float* values, std::size_t n, Isa isa, MomentLanes<Float>& lanes) {
  if (n % kLanes == 0) return loops_for<Float>(isa).moments(values, n, lanes);
  loops_for<Float>(isa).moments(Padded<Float>(values, n).values, whole_rows(n), lanes);
}

template <class Float, class Loop>
double tile_energy(const Float* values, std::size_t n, Loop loop) {
  double lanes[kLanes];
  if (n % kLanes == 0) {
    loop(values, n, lanes);
  } else {
    loop(Padded<Float>(values, n).values, whole_rows(n), lanes);
  }
  return sum_of_lanes(lanes);
}

// Calls `tile(number, values, length)` for every tile.
template <class Float, class Tile>
void for_each_tile(const Machine& machine, const Float* values, std::size_t n, Tile tile) {
  const int parts = n < 16 * kTile ? 1 : machine.threads;
  run_parts(machine.threads, parts, [&](int part) {
    const std::size_t end = part_begin(n, part + 1, parts, kTile);
    for (std::size_t at = part_begin(n, part, parts, kTile); at < end; at += kTile) {
      tile(at / kTile, values + at, std::min(kTile, end - at));
    }
  });
}

struct OfEnergy;
struct OfMoments;

double in_order(const double* sums, std::size_t count) {
  double total = 0;
  for (std::size_t i = 0; i < count; ++i) total += sums[i];
  return total;
}

}  // namespace

template <class Float>
TileEnergy<Float> tile_energy_for(Isa isa) {
#if THINWIRE_X86
  if (isa == Isa::kAvx512) {
    return [](const Float* values, std::size_t n) { return tile_energy(values, n, Avx512<Float>::squares); };
  }
  if (isa == Isa::kAvx2) {
    return [](const Float* values, std::size_t n) { return tile_energy(values, n, Avx2<Float>::squares); };
  }
#endif
  static_cast<void>(isa);
  return [](const Float* values, std::size_t n) { return tile_energy(values, n, Scalar<Float>::squares); };
}

template <class Float>
double energy_of_tiles(const double* tiles, const Float* values, std::size_t n) {
  const double total = in_order(tiles, tiles_of(n));
  if (!std::isinf(total)) return total;
  // Squares of doubles can overflow; squares of floats cannot.
  for (std::size_t i = 0; i < n; ++i) {
    if (!std::isfinite(values[i])) return total;
  }
  return DBL_MAX;
}

template <class Float>
double energy(const Machine& machine, const Float* values, std::size_t n) {
  double* const sums = scratch<OfEnergy, double>(tiles_of(n));
  const auto energy_of = tile_energy_for<Float>(machine.isa);
  for_each_tile(machine, values, n, [=](std::size_t number, const Float* tile, std::size_t length) {
    sums[number] = energy_of(tile, length);
  });
  return energy_of_tiles(sums, values, n);
}

template <class Float>
Moments moments(const Machine& machine, const Float* values, std::size_t n) {
  const std::size_t tiles = tiles_of(n);
  double* const all = scratch<OfMoments, double>(4 * tiles);
  const Isa isa = machine.isa;
  for_each_tile(machine, values, n, [=](std::size_t number, const Float* tile, std::size_t length) {
    MomentLanes<Float> lanes;
    tile_moments(tile, length, isa, lanes);
    all[number] = sum_of_lanes(lanes.sums);
    all[tiles + number] = sum_of_lanes(lanes.magnitudes);
    all[2 * tiles + number] = sum_of_lanes(lanes.squares);
    all[3 * tiles + number] = static_cast<double>(std::bit_cast<Float>(lanes.largest));
  });
  Moments found;
  found.sum = in_order(all, tiles);
  found.sum_of_magnitudes = in_order(all + tiles, tiles);
  found.sum_of_squares = in_order(all + 2 * tiles, tiles);
  for (std::size_t i = 3 * tiles; i < 4 * tiles; ++i) {
    if (!(all[i] <= found.largest)) found.largest = all[i];
  }
  return found;
}

template TileEnergy<float> tile_energy_for(Isa);
template TileEnergy<double> tile_energy_for(Isa);
template double energy_of_tiles(const double*, const float*, std::size_t);
template double energy_of_tiles(const double*, const double*, std::size_t);
template double energy(const Machine&, const float*, std::size_t);
template double energy(const Machine&, const double*, std::size_t);
template Moments moments(const Machine&, const float*, std::size_t);
template Moments moments(const Machine&, const double*, std::size_t);

}  // namespace thinwire
