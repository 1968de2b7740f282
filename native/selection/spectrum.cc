// The spectrum: thresholds and energies of many k at once, exactly.
//
// One pass leaves what reaches a floor that was guessed from a sample, and sorts it into bins by the leading bits of its
// magnitudes. A bin holds how many there are and the sums of their trailing bits and of the squares of those: whole
// numbers, from which the energy of a bin follows exactly, in whatever order things were added. Only bins in which some
// k ends are looked into, eight bits further at a time. A guess that lets too few through costs a second pass.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <type_traits>
#include <vector>

#include "core/bits.h"
#include "core/pool.h"
#include "core/scratch.h"
#include "selection/exact_sum.h"
#include "selection/filters.h"
#include "selection/lots.h"
#include "selection/statistics.h"
#include "selection/sums.h"

namespace thinwire {
namespace {

constexpr int kKeyBits = 15;
constexpr std::size_t kKeys = std::size_t{1} << kKeyBits;
constexpr std::size_t kTables = 2;  // equal neighbours in one table would wait for each other
constexpr std::size_t kMostInAPart = std::size_t{1} << 24;
constexpr std::size_t kSample = std::size_t{1} << 14;
constexpr std::size_t kSampleFrom = 16 * kSample;
constexpr std::uint64_t kSeed = 0x5eed;
constexpr std::uint16_t kClosed = 0xffff;

// How many elements there are, the sum of their trailing bits, and of the squares of those.
struct Totals {
  std::uint64_t count = 0;
  Uint128 first = 0, second = 0;
};

template <class Float>
struct Bin {
  std::uint64_t count;
  Uint128 first, second;
  void add(std::uint64_t low) {
    ++count;
    first += low;
    second += Uint128{low} * low;
  }
  Totals totals() const { return {count, first, second}; }
};

// Sixteen trailing bits: the count and the first sum share a number, for as many elements as a part may have.
template <>
struct Bin<float> {
  static constexpr int kShare = 40;
  std::uint64_t count_and_first, second;
  void add(std::uint64_t low) {
    count_and_first += low | (std::uint64_t{1} << kShare);
    second += low * low;
  }
  Totals totals() const {
    return {count_and_first >> kShare, count_and_first & ((std::uint64_t{1} << kShare) - 1), second};
  }
};

// Of a value, or of a survivor, which is a magnitude already.
inline std::int32_t magnitude_of(float value) { return magnitude(value); }
inline std::int64_t magnitude_of(double value) { return magnitude(value); }
inline std::int32_t magnitude_of(std::int32_t bits) { return bits; }
inline std::int64_t magnitude_of(std::int64_t bits) { return bits; }

template <class Float>
struct OfTables;
struct OfSurvivors;
struct OfTiles;

template <class Float>
class Spectrum {
  using Bits = Magnitude<Float>;
  static constexpr int kKeyShift = kMagnitudeBits<Float> - kKeyBits;

  // A bin in which ranks end: the elements above it, and which ranks.
  struct Open {
    Bits prefix;
    std::uint64_t count, above;
    ExactSum<Float> energy_above;
    std::size_t from, to;
  };

 public:
  Spectrum(const Machine& machine, const Float* values, std::size_t n, const std::int64_t* ranks, std::size_t count,
           Float* thresholds, double* energies)
      : machine_(machine), values_(values), n_(n), ranks_(ranks), count_(count), thresholds_(thresholds),
        energies_(energies) {
    parts_ = static_cast<int>((n + kMostInAPart - 1) / kMostInAPart);
    parts_ = n < 16 * kTile ? 1 : std::max(parts_, machine.threads);
    counts_.resize(static_cast<std::size_t>(parts_));
    tables_ = scratch<OfTables<Float>, Bin<Float>>(static_cast<std::size_t>(parts_) * kTables * kKeys);
    survivors_ = scratch<OfSurvivors, Bits>(n + static_cast<std::size_t>(parts_) * kSlack);
    tiles_ = scratch<OfTiles, double>(tiles_of(n));
  }

  double find() {
    const auto most = count_ == 0 ? 0 : static_cast<std::size_t>(ranks_[count_ - 1]);
    floor_ = guess_floor(most);
    if (collect() < most) {
      floor_ = 0;
      collect();
    }
    std::vector<Open> opens = walk(
        [&](std::size_t key) {
          Totals sum;
          for (std::size_t table = 0; table < static_cast<std::size_t>(parts_) * kTables; ++table) {
            const Totals some = tables_[table * kKeys + key].totals();
            sum.count += some.count;
            sum.first += some.first;
            sum.second += some.second;
          }
          return sum;
        },
        kKeys, kKeyShift, {0, 0, 0, {}, 0, count_});
    look_into(opens);
    return energy_of_tiles(tiles_, values_, n_);
  }

 private:
  // A magnitude that few more than `most` reach, with all but certainty; 0 where a guess would not pay.
  Bits guess_floor(std::size_t most) const {
    const std::size_t stride = n_ / kSample;
    if (n_ < kSampleFrom || most > n_ / 3 || stride >> 32 != 0) return 0;
    const double expected = static_cast<double>(most) / static_cast<double>(n_) * kSample;
    const auto rank = static_cast<std::size_t>(expected + 4 * std::sqrt(expected) + 8);
    static thread_local Float looked_at[kSample];
    const std::size_t size = sample(values_, kSample * stride, stride, kSeed, looked_at);
    for (std::size_t i = 0; i < size; ++i) looked_at[i] = std::bit_cast<Float>(magnitude(looked_at[i]));
    const auto larger = [](Float a, Float b) { return std::bit_cast<Bits>(a) > std::bit_cast<Bits>(b); };
    std::nth_element(looked_at, looked_at + rank, looked_at + size, larger);
    return std::bit_cast<Bits>(looked_at[rank]);
  }

  // Fills the tables with everything that reaches the floor, and the tiles with their energies.
  std::size_t collect() {
    const auto energy_of = tile_energy_for<Float>(machine_.isa);
    const auto filter = filters_for<Float>(machine_.isa).magnitudes;
    run_parts(machine_.threads, parts_, [&](int part) {
      const auto number = static_cast<std::size_t>(part);
      const std::size_t begin = part_begin(n_, part, parts_, kTile), end = part_begin(n_, part + 1, parts_, kTile);
      Bin<Float>* const tables = tables_ + number * kTables * kKeys;
      for (std::size_t t = 0; t < kTables; ++t) {
        const std::size_t first = t * kKeys + static_cast<std::size_t>(floor_ >> kKeyShift);
        std::memset(static_cast<void*>(tables + first), 0, ((t + 1) * kKeys - first) * sizeof(Bin<Float>));
      }
      Bits* const kept = survivors_ + begin + number * kSlack;
      std::size_t count = 0;
      for (std::size_t at = begin; at < end; at += kTile) {
        const std::size_t length = std::min(kTile, end - at);
        tiles_[at / kTile] = energy_of(values_ + at, length);
        if (floor_ == 0) {
          sort_into(values_ + at, length, tables);
          count += length;
          continue;
        }
        const std::size_t some = filter(values_ + at, length, floor_, kept + count);
        sort_into(static_cast<const Bits*>(kept + count), some, tables);
        count += some;
      }
      counts_[number] = count;
    });
    std::size_t total = 0;
    for (const std::size_t count : counts_) total += count;
    return total;
  }

  template <class Element>
  static void sort_into(const Element* elements, std::size_t n, Bin<Float>* tables) {
    constexpr std::uint64_t mask = (std::uint64_t{1} << kKeyShift) - 1;
    const auto put = [](Element element, Bin<Float>* table) {
      const auto bits = static_cast<std::uint64_t>(magnitude_of(element));
      table[bits >> kKeyShift].add(bits & mask);
    };
    std::size_t i = 0;
    for (; i + 2 <= n; i += 2) {
      put(elements[i], tables);
      put(elements[i + 1], tables + kKeys);
    }
    if (i < n) put(elements[i], tables);
  }

  // Goes through the bins of one level from the largest down; settles the ranks that end in a bin of equal magnitudes
  // and returns the other bins in which ranks end.
  template <class At>
  std::vector<Open> walk(At at, std::size_t digits, int shift, Open here) {
    std::vector<Open> opens;
    for (std::size_t digit = digits; digit-- > 0 && here.from < here.to;) {
      const Totals bin = at(digit);
      if (bin.count == 0) continue;
      const Bits prefix = here.prefix | static_cast<Bits>(static_cast<Bits>(digit) << shift);
      const std::size_t from = here.from;
      while (here.from < here.to && static_cast<std::uint64_t>(ranks_[here.from]) <= here.above + bin.count) ++here.from;
      const Open inside{prefix, bin.count, here.above, here.energy_above, from, here.from};
      if (from < here.from && shift > 0) opens.push_back(inside);
      if (from < here.from && shift == 0) settle(inside);
      add_bin(here.energy_above, bin, prefix);
      here.above += bin.count;
    }
    return opens;
  }

  // (base + low)^2 summed over a bin.
  static void add_bin(ExactSum<Float>& sum, const Totals& bin, Bits prefix) {
    const Scaled<Float> base(prefix);
    const int shift = 2 * base.exponent;
    sum.add_product(Uint128{base.mantissa} * base.mantissa, bin.count, shift);
    sum.add_product(bin.first, 2 * base.mantissa, shift);
    sum.add(bin.second, shift);
  }

  void settle(const Open& open) {
    const Scaled<Float> value(open.prefix);
    for (std::size_t i = open.from; i < open.to; ++i) {
      ExactSum<Float> energy = open.energy_above;
      const std::uint64_t equals = static_cast<std::uint64_t>(ranks_[i]) - open.above;
      energy.add_product(Uint128{value.mantissa} * value.mantissa, equals, 2 * value.exponent);
      thresholds_[i] = std::bit_cast<Float>(open.prefix);
      energies_[i] = energy.rounded();
    }
  }

  // `out` may be where the elements are.
  template <class Element>
  static std::size_t keep_open(const Element* elements, std::size_t n, const std::uint16_t* slots, Bits* out) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const Bits bits = magnitude_of(elements[i]);
      out[kept] = bits;
      kept += slots[static_cast<std::size_t>(bits >> kKeyShift)] != kClosed;
    }
    return kept;
  }

  // The elements of the open bins, brought together; then every bin by itself.
  void look_into(const std::vector<Open>& opens) {
    if (opens.empty()) return;
    std::vector<std::uint16_t> slots(kKeys, kClosed);
    std::vector<std::size_t> starts(opens.size() + 1, 0);
    for (std::size_t i = 0; i < opens.size(); ++i) {
      slots[static_cast<std::size_t>(opens[i].prefix >> kKeyShift)] = static_cast<std::uint16_t>(i);
      starts[i + 1] = starts[i] + opens[i].count;
    }
    run_parts(machine_.threads, parts_, [&](int part) {
      const auto number = static_cast<std::size_t>(part);
      const std::size_t begin = part_begin(n_, part, parts_, kTile);
      Bits* const kept = survivors_ + begin + number * kSlack;
      if (floor_ == 0) {
        counts_[number] = keep_open(values_ + begin, counts_[number], slots.data(), kept);
      } else {
        counts_[number] = keep_open(static_cast<const Bits*>(kept), counts_[number], slots.data(), kept);
      }
    });
    std::vector<Bits> inside(starts.back());
    std::vector<std::size_t> ends(starts.begin(), starts.end() - 1);
    for (int part = 0; part < parts_; ++part) {
      const auto number = static_cast<std::size_t>(part);
      const Bits* const kept = survivors_ + part_begin(n_, part, parts_, kTile) + number * kSlack;
      for (std::size_t i = 0; i < counts_[number]; ++i) {
        inside[ends[slots[static_cast<std::size_t>(kept[i] >> kKeyShift)]]++] = kept[i];
      }
    }
    run_parts(machine_.threads, static_cast<int>(opens.size()), [&](int i) {
      const auto number = static_cast<std::size_t>(i);
      refine(inside.data() + starts[number], opens[number], kKeyShift);
    });
  }

  // One bin, whose elements differ in the last `shift` bits.
  void refine(const Bits* elements, const Open& open, int shift) {
    constexpr std::size_t kDigits = 256;
    const int next = shift - 8;
    const auto digit_of = [=](Bits bits) { return static_cast<std::size_t>(bits >> next) % kDigits; };
    const std::uint64_t mask = (std::uint64_t{1} << next) - 1;
    std::array<Bin<double>, kDigits> bins{};
    for (std::size_t i = 0; i < open.count; ++i) {
      bins[digit_of(elements[i])].add(static_cast<std::uint64_t>(elements[i]) & mask);
    }
    const auto opens = walk([&](std::size_t digit) { return bins[digit].totals(); }, kDigits, next, open);
    for (const Open& inner : opens) {
      std::vector<Bits> inside(inner.count + 1);
      std::size_t count = 0;
      for (std::size_t i = 0; i < open.count && count < inner.count; ++i) {
        inside[count] = elements[i];
        count += digit_of(elements[i]) == digit_of(inner.prefix);
      }
      refine(inside.data(), inner, next);
    }
  }

  Machine machine_;
  const Float* values_;
  std::size_t n_;
  const std::int64_t* ranks_;
  std::size_t count_;
  Float* thresholds_;
  double* energies_;
  int parts_;
  Bits floor_ = 0;
  std::vector<std::size_t> counts_;  // of each part's survivors; of its values where there is no floor
  Bin<Float>* tables_;
  Bits* survivors_;
  double* tiles_;
};

}  // namespace

template <class Float>
double spectrum(const Machine& machine, const Float* values, std::size_t n, const std::int64_t* ranks,
                std::size_t count, Float* thresholds, double* energies) {
  if (n == 0) return 0;
  return Spectrum<Float>(machine, values, n, ranks, count, thresholds, energies).find();
}

template double spectrum(const Machine&, const float*, std::size_t, const std::int64_t*, std::size_t, float*, double*);
template double spectrum(const Machine&, const double*, std::size_t, const std::int64_t*, std::size_t, double*,
                         double*);

}  // namespace thinwire
