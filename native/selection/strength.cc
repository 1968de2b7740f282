// The strength of wide units: Euclidean norms in double precision.
//
// The squares of a unit are added up by halves: the element at the largest power of two below the width is added to the
// first one, and so on, and what is left is halved again. The order follows from the width alone, and every step is a
// loop over neighbours.

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/pool.h"
#include "core/scratch.h"
#include "selection/statistics.h"

namespace thinwire {
namespace {

template <class Float>
inline __attribute__((always_inline)) double square(Float value) {
  return static_cast<double>(value) * static_cast<double>(value);
}

// The largest power of two below a width of two or more.
constexpr std::size_t half_of(std::size_t width) { return std::bit_floor(width - 1); }

template <class Float>
inline __attribute__((always_inline)) double sum_of_squares(const Float* values, std::size_t width,
                                                            double* __restrict work) {
  std::size_t half = half_of(width);
  for (std::size_t j = 0; j < width - half; ++j) work[j] = square(values[j]) + square(values[j + half]);
  for (std::size_t j = width - half; j < half; ++j) work[j] = square(values[j]);
  for (half /= 2; half >= 8; half /= 2) {
    for (std::size_t j = 0; j < half; ++j) work[j] += work[j + half];
  }
  for (; half > 0; half /= 2) {
    for (std::size_t j = 0; j < half; ++j) work[j] += work[j + half];
  }
  return work[0];
}

// Narrow units: several at a time, side by side.
constexpr std::size_t kBeside = 16;
constexpr std::size_t kNarrow = 16;

template <std::size_t kUnits, class Float>
inline __attribute__((always_inline)) void norms_beside(const Float* values, std::size_t width, double* out) {
  double work[kNarrow][kUnits];
  for (std::size_t j = 0; j < width; ++j) {
    for (std::size_t unit = 0; unit < kUnits; ++unit) work[j][unit] = square(values[unit * width + j]);
  }
  for (std::size_t left = width; left > 1; left = half_of(left)) {
    const std::size_t half = half_of(left);
    for (std::size_t j = 0; j < left - half; ++j) {
      for (std::size_t unit = 0; unit < kUnits; ++unit) work[j][unit] += work[j + half][unit];
    }
  }
  for (std::size_t unit = 0; unit < kUnits; ++unit) out[unit] = std::sqrt(work[0][unit]);
}

template <class Float>
inline __attribute__((always_inline)) void narrow(const Float* values, std::size_t units, std::size_t width,
                                                  double* out) {
  std::size_t unit = 0;
  for (; unit + kBeside <= units; unit += kBeside) norms_beside<kBeside>(values + unit * width, width, out + unit);
  for (; unit < units; ++unit) norms_beside<1>(values + unit * width, width, out + unit);
}

template <class Float>
inline __attribute__((always_inline)) void norms(const Float* values, std::size_t units, std::size_t width,
                                                 double* work, double* out) {
  switch (width) {  // with a width that is known the loops are unrolled
    case 2: return narrow(values, units, 2, out);
    case 4: return narrow(values, units, 4, out);
    case 8: return narrow(values, units, 8, out);
  }
  if (width < kNarrow) return narrow(values, units, width, out);
  for (std::size_t unit = 0; unit < units; ++unit) {
    out[unit] = std::sqrt(sum_of_squares(values + unit * width, width, work));
  }
}

template <class Float>
void scalar(const Float* values, std::size_t units, std::size_t width, double* work, double* out) {
  norms(values, units, width, work, out);
}

#if THINWIRE_X86
template <class Float>
THINWIRE_AVX2 void avx2(const Float* values, std::size_t units, std::size_t width, double* work, double* out) {
  norms(values, units, width, work, out);
}

template <class Float>
THINWIRE_AVX512 void avx512(const Float* values, std::size_t units, std::size_t width, double* work, double* out) {
  norms(values, units, width, work, out);
}
#endif

template <class Float>
auto norms_for(Isa isa) {
#if THINWIRE_X86
  if (isa == Isa::kAvx512) return avx512<Float>;
  if (isa == Isa::kAvx2) return avx2<Float>;
#endif
  static_cast<void>(isa);
  return scalar<Float>;
}

struct OfUnits;
struct OfLastUnit;

}  // namespace

template <class Float>
void strength(const Machine& machine, const Float* values, std::size_t n, std::size_t width, double* out) {
  const auto norms = norms_for<Float>(machine.isa);
  const std::size_t units = n / width, rest = n % width;
  const int parts = n < std::size_t{1} << 15 ? 1 : machine.threads;
  const std::size_t room = (width + 7) / 8 * 8;
  double* const work = scratch<OfUnits, double>(room * static_cast<std::size_t>(parts));
  run_parts(machine.threads, parts, [&](int part) {
    const std::size_t begin = part_begin(units, part, parts, 1), end = part_begin(units, part + 1, parts, 1);
    norms(values + begin * width, end - begin, width, work + room * static_cast<std::size_t>(part), out + begin);
  });
  if (rest == 0) return;
  Float* const last = scratch<OfLastUnit, Float>(width);
  std::copy(values + units * width, values + n, last);
  std::fill(last + rest, last + width, Float(0));
  norms(last, 1, width, work, out + units);
}

template void strength(const Machine&, const float*, std::size_t, std::size_t, double*);
template void strength(const Machine&, const double*, std::size_t, std::size_t, double*);

}  // namespace thinwire
