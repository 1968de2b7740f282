// What may belong to the top k: everything that is not below a floor, found in one pass over the elements.
//
// The floor is guessed from a sample so that few more than k reach it; a radix selection among those gives the exact
// k-th magnitude. A guess that lets too few or too many through costs time only.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "core/pool.h"
#include "core/scratch.h"
#include "selection/tiles.h"

namespace thinwire {

constexpr std::size_t kSample = std::size_t{1} << 14;
constexpr std::size_t kSampleFrom = std::size_t{1} << 15;  // below this a sample saves nothing
constexpr int kDigitBits = 11;
constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;

// The digit in which the rank-th largest lies. Leaves in `rank` its rank among the equal digits.
template <class Histogram>
std::size_t find_digit(const Histogram& histogram, std::size_t& rank) {
  std::size_t digit = histogram.size() - 1;
  while (digit > 0 && rank > histogram[digit]) rank -= histogram[digit--];
  return digit;
}

// The rank-th largest (from 1) of some magnitudes, every one between `low` and `high`. Leaves in `rank` how many of
// those equal to it are among the `rank` largest. Linear; the list is used up.
template <class Bits>
Bits nth_largest(Bits* list, std::size_t count, Bits low, Bits high, std::size_t& rank) {
  while (low != high) {
    const int width = std::bit_width(static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low));
    const int shift = std::max(0, width - kDigitBits);
    std::array<std::size_t, kDigits> histogram{};
    for (std::size_t i = 0; i < count; ++i) ++histogram[static_cast<std::size_t>((list[i] - low) >> shift)];
    const auto digit = static_cast<Bits>(find_digit(histogram, rank));
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const Bits bits = list[i];
      list[kept] = bits;
      kept += ((bits - low) >> shift) == digit;
    }
    count = kept;
    low += digit << shift;
    high = std::min<Bits>(high, low + static_cast<Bits>((std::uint64_t{1} << shift) - 1));
  }
  return low;
}

template <class Float>
struct Guess {
  Magnitude<Float> floor = 0;
  Magnitude<Float> ceiling = std::numeric_limits<Magnitude<Float>>::max();
  std::size_t room = 0;  // for so many candidates
};

// Bounds of the k-th largest of n magnitudes that hold with all but certainty and are close to it. `bits_at(i)` gives
// one of the magnitudes.
template <class Float, class BitsAt>
Guess<Float> guess_bounds(std::size_t n, std::size_t k, BitsAt bits_at) {
  using Bits = Magnitude<Float>;
  struct Tag {};
  const double density = static_cast<double>(k) / static_cast<double>(n);
  const std::size_t size = std::min(n / 4, kSample);
  const double expected = density * static_cast<double>(size);
  const double margin = 4 * std::sqrt(expected) + 8;
  if (n < kSampleFrom || expected + margin >= static_cast<double>(size) / 2) return {.room = n};
  Bits* const sample = scratch<Tag, Bits>(size);
  const std::size_t stride = n / size;
  std::uint64_t state = 0x9e3779b97f4a7c15;
  Bits high = 0;
  for (std::size_t i = 0; i < size; ++i) {
    // A place of its own in every stride, so that periodic data does not fool the sample.
    state = state * 6364136223846793005 + 1442695040888963407;
    sample[i] = bits_at(i * stride + (state >> 33) % stride);
    high = std::max(high, sample[i]);
  }
  Guess<Float> guess;
  if (expected > margin) {
    Bits* const copy = scratch<Guess<Float>, Bits>(size);
    std::copy(sample, sample + size, copy);
    auto rank = static_cast<std::size_t>(expected - margin) + 1;
    guess.ceiling = nth_largest<Bits>(copy, size, 0, high, rank);
  }
  auto rank = static_cast<std::size_t>(expected + margin) + 1;
  guess.floor = nth_largest<Bits>(sample, size, 0, high, rank);
  const double most = expected + margin + 4 * std::sqrt(expected + margin) + 8;
  guess.room = std::min(n, static_cast<std::size_t>(most * static_cast<double>(stride)) + stride);
  return guess;
}

// The candidates of one thread's stretch of the elements, in order.
template <class Float>
struct Stretch {
  std::size_t begin = 0, end = 0;
  std::int32_t* places = nullptr;  // counted from `origin`
  Float* found = nullptr;
  std::size_t count = 0;
  std::size_t origin = 0;
  Magnitude<Float> largest = 0;
  bool overflowed = false;
};

// Places are kept in 32 bits: a stretch is no longer than they reach.
constexpr std::size_t kLongestStretch = std::size_t{1} << 30;

template <class Float>
struct Candidates {
  std::array<Stretch<Float>, 4 * kMostThreads> stretches;
  int parts = 0;
  std::size_t count = 0;
  Magnitude<Float> largest = 0;
  bool overflowed = false;

  // Cuts n elements into stretches, with room for `room` candidates in each.
  void cut(const Machine& machine, std::size_t n, std::size_t room) {
    struct Tag {};
    const std::size_t least = (n + kLongestStretch - 1) / kLongestStretch;
    const std::size_t most = std::max<std::size_t>(1, n / (16 * kTile));
    parts = static_cast<int>(std::min(std::max(least, std::min<std::size_t>(machine.threads, most)), stretches.size()));
    const std::size_t longest = (n / kTile / static_cast<std::size_t>(parts) + 2) * kTile;
    const std::size_t each = (std::min(room, longest) + kTile + kSpill + 15) / 16 * 16;
    auto* const memory = scratch<Tag, char>(static_cast<std::size_t>(parts) * each * (sizeof(std::int32_t) + sizeof(Float)));
    auto* const values = reinterpret_cast<Float*>(memory);
    auto* const places = reinterpret_cast<std::int32_t*>(values + static_cast<std::size_t>(parts) * each);
    for (int part = 0; part < parts; ++part) {
      Stretch<Float>& stretch = stretches[static_cast<std::size_t>(part)];
      stretch = {};
      stretch.begin = part_begin(n, part, parts, kTile);
      stretch.end = part_begin(n, part + 1, parts, kTile);
      // Where 32 bits hold every place, no origin has to be added later.
      stretch.origin = n > std::size_t{std::numeric_limits<std::int32_t>::max()} ? stretch.begin : 0;
      stretch.places = places + static_cast<std::size_t>(part) * each;
      stretch.found = values + static_cast<std::size_t>(part) * each;
    }
  }

  // Calls `over(tile begin, length, base, places, found, collecting, largest)` for every tile; it returns how many it
  // found. A stretch that has found more than `room` finds nothing from then on.
  template <class Over>
  void walk(const Machine& machine, std::size_t room, Over over) {
    run_parts(machine.threads, parts, [&](int part) {
      Stretch<Float>& stretch = stretches[static_cast<std::size_t>(part)];
      for (std::size_t at = stretch.begin; at < stretch.end; at += kTile) {
        const std::size_t length = std::min(kTile, stretch.end - at);
        const auto base = static_cast<std::int32_t>(at - stretch.origin);
        stretch.count += over(at, length, base, stretch.places + stretch.count, stretch.found + stretch.count,
                              !stretch.overflowed, stretch.largest);
        stretch.overflowed |= stretch.count > room;
      }
    });
    for (int part = 0; part < parts; ++part) {
      const Stretch<Float>& stretch = stretches[static_cast<std::size_t>(part)];
      count += stretch.count;
      largest = std::max(largest, stretch.largest);
      overflowed |= stretch.overflowed;
    }
    overflowed |= count > room;
  }

  // What becomes of the candidates: those above `level`, and the first `ties` equal to it, `count` together, are kept.
  struct Verdict {
    Magnitude<Float> level = std::numeric_limits<Magnitude<Float>>::max();
    std::size_t ties = 0, count = 0;
  };

  // That the k largest are kept. At least k candidates must be there.
  Verdict keep_largest(const Machine& machine, std::size_t k, const Guess<Float>& guess) const {
    using Bits = Magnitude<Float>;
    struct Tag {};
    Bits* const list = scratch<Tag, Bits>(count + kSpill);
    for (const Bits ceiling : {guess.ceiling, std::numeric_limits<Bits>::max()}) {
      std::size_t below = 0;
      for (int part = 0; part < parts; ++part) {
        const Stretch<Float>& stretch = stretches[static_cast<std::size_t>(part)];
        below += tiles_of<Float>(machine.isa).below(stretch.found, stretch.count, ceiling, list + below);
      }
      if (count - below >= k) continue;  // the guess was too low
      std::size_t ties = k - (count - below);
      const Bits level = nth_largest<Bits>(list, below, guess.floor, *std::max_element(list, list + below), ties);
      return {level, ties, k};
    }
    return {.ties = k, .count = k};  // only where there are NaNs of the largest kind
  }

  // Writes those kept to `indices` and `values`, and the others back to `out`. `values` and `out` may be null. `out` is
  // the whole tensor.
  template <class Index>
  void settle(const Machine& machine, Verdict verdict, Index* indices, Float* values, Float* out) const {
    struct Share {
      std::size_t at = 0, count = 0, ties = 0;
    };
    std::array<Share, 4 * kMostThreads> shares;
    shares[0] = {0, verdict.count, verdict.ties};
    for (std::size_t part = 0, at = 0; parts > 1 && part < static_cast<std::size_t>(parts); ++part) {
      std::size_t above = 0, equal = 0;
      for (std::size_t i = 0; i < stretches[part].count; ++i) {
        above += magnitude(stretches[part].found[i]) > verdict.level;
        equal += magnitude(stretches[part].found[i]) == verdict.level;
      }
      const std::size_t used = std::min(verdict.ties, equal);
      shares[part] = {at, above + used, used};
      at += above + used;
      verdict.ties -= used;
    }
    const Tiles<Float>& tiles = tiles_of<Float>(machine.isa);
    run_parts(machine.threads, parts, [&](int part) {
      const Stretch<Float>& stretch = stretches[static_cast<std::size_t>(part)];
      const Share share = shares[static_cast<std::size_t>(part)];
      Float* const own_values = values == nullptr ? nullptr : values + share.at;
      Float* const own_out = out == nullptr ? nullptr : out + stretch.origin;
      if constexpr (sizeof(Index) == sizeof(std::int32_t)) {
        tiles.settle(stretch.places, stretch.found, stretch.count, verdict.level, share.ties, indices + share.at, own_values,
                     share.count, own_out);
      } else {
        // In place: what is kept never overtakes what is read.
        tiles.settle(stretch.places, stretch.found, stretch.count, verdict.level, share.ties, stretch.places, own_values,
                     share.count, own_out);
        for (std::size_t i = 0; i < share.count; ++i) {
          indices[share.at + i] = static_cast<Index>(stretch.origin) + stretch.places[i];
        }
      }
    });
  }
};

}  // namespace thinwire
