// What a vector's magnitudes are like, and selections that follow from that.
//
// `Float` is float or double, `Index` is int32_t or int64_t. The semantics are those of
// src/thinwire/kernels/reference/statistics.py, bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/machine.h"

namespace thinwire {

// The sum of squares in the order of sums.h; the largest finite number where only the sum is none.
template <class Float>
double energy(const Machine& machine, const Float* values, std::size_t n);

struct Moments {
  double sum = 0, sum_of_magnitudes = 0, sum_of_squares = 0;
  double largest = 0;  // magnitude; what is no number counts as larger than any
};

template <class Float>
Moments moments(const Machine& machine, const Float* values, std::size_t n);

// The Euclidean norm of each unit of `width` values; the last one may be short. Writes ceil(n / width) norms.
template <class Float>
void strength(const Machine& machine, const Float* values, std::size_t n, std::size_t width, double* out);

// How many magnitudes are not below the threshold.
template <class Float>
std::size_t count_at_least(const Machine& machine, const Float* values, std::size_t n, Float threshold);

// Their places. `find` looks for them and keeps them in working memory; `write` brings them out, before the next `find`
// of this thread.
class AtLeast {
 public:
  template <class Float>
  std::size_t find(const Machine& machine, const Float* values, std::size_t n, Float threshold);
  // The same for |value| / (|weight| + epsilon).
  template <class Float>
  std::size_t find(const Machine& machine, const Float* values, const Float* weights, std::size_t n, Float epsilon,
                   Float threshold);
  template <class Index>
  void write(Index* out) const;

 private:
  static constexpr int kMostParts = 64;
  template <class Look>
  std::size_t find_in_parts(const Machine& machine, std::size_t n, Look look);

  int parts_ = 0, threads_ = 1;
  std::uint32_t* places_ = nullptr;
  std::size_t begins_[kMostParts + 1] = {};
  std::size_t counts_[kMostParts] = {};
};

// The k largest |value| / (|weight| + epsilon), equal ones lowest index first. Needs 0 < k <= n; writes k indices.
template <class Float, class Index>
void importance(const Machine& machine, const Float* values, const Float* weights, std::size_t n, Float epsilon,
                std::size_t k, Index* out);

// top_k of each segment: the counts[s] largest of those from bounds[s] to bounds[s + 1]. Writes their sum of indices.
// Bounds do not decrease, and no count is larger than its segment.
template <class Float, class Index>
void top_k_segments(const Machine& machine, const Float* values, const std::int64_t* bounds,
                    const std::int64_t* counts, std::size_t segments, Index* out);

// For each of increasing ranks, 0 < rank <= n, the rank-th largest magnitude and the sum of squares of the rank largest
// ones, exact and rounded once. Returns the energy of all.
template <class Float>
double spectrum(const Machine& machine, const Float* values, std::size_t n, const std::int64_t* ranks, std::size_t count,
              Float* thresholds, double* energies);

// One value out of every `stride`, at a place that `seed` draws; out holds ceil(n / stride). Places beyond the end of a
// last, short stride are left out. Returns how many were written.
template <class Float>
std::size_t sample(const Float* values, std::size_t n, std::size_t stride, std::uint64_t seed, Float* out);

}  // namespace thinwire
