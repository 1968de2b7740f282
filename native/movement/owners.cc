// Who owns which index.
//
// Indices are cut into blocks as long as there are owners, and each block is dealt out once around, starting with an
// owner drawn from a hash of the block's number:
//
//   place = index / owners,   owner = (index % owners + draw(place)) % owners.
//
// So every owner has one index of each block, at the place of the block's number: the owned indices keep their order,
// their places are arithmetic, and there is a way back. A run of neighbours is spread evenly, and a stride that meets
// each block at the same position is spread by the hash.

#include <algorithm>
#include <atomic>
#include <bit>

#include "core/pool.h"
#include "movement/movement.h"

namespace thinwire {
namespace {

constexpr std::size_t kPart = std::size_t{1} << 16;

// What the loops below need; they are compiled once for each instruction set and come to the same.
class Owners {
 public:
  Owners(std::size_t owners, std::uint64_t seed)
      : owners_(owners),
        shift_(31 + std::bit_width(owners - 1)),
        factor_((std::uint64_t{1} << shift_) / owners + 1),
        offset_(mixed(seed + 0x9e3779b97f4a7c15)) {}

  template <class Index>
  [[gnu::always_inline]] std::uint64_t place(Index index) const {
    const std::uint64_t number = static_cast<std::uint64_t>(index);
    if constexpr (sizeof(Index) == 4) return quotient(number);
    // In two digits, as `quotient` takes no more than 31 bits; a remainder has 15.
    constexpr int kDigit = 16;
    const std::uint64_t upper = quotient(number >> kDigit);
    const std::uint64_t rest = number - (upper * owners_ << kDigit);
    return (upper << kDigit) + quotient(rest);
  }

  template <class Index>
  [[gnu::always_inline]] std::uint64_t owner(Index index) const {
    const std::uint64_t block = place(index);
    const std::uint64_t turned = static_cast<std::uint64_t>(index) - block * owners_ + draw(block);
    return turned - (turned >= owners_ ? owners_ : 0);
  }

  [[gnu::always_inline]] std::uint64_t index(std::uint64_t owner, std::uint64_t block) const {
    const std::uint64_t turned = owner + owners_ - draw(block);
    return block * owners_ + turned - (turned >= owners_ ? owners_ : 0);
  }

 private:
  // Exact for 31 bits: the factor is too large by less than one part in 2**31.
  [[gnu::always_inline]] std::uint64_t quotient(std::uint64_t number) const { return number * factor_ >> shift_; }

  // The owner that a block begins with.
  [[gnu::always_inline]] std::uint64_t draw(std::uint64_t block) const {
    return (mixed(block + offset_) >> 32) * owners_ >> 32;
  }

  [[gnu::always_inline]] static std::uint64_t mixed(std::uint64_t number) {
    number ^= number >> 32;
    number *= 0xbea225f9eb34556d;
    number ^= number >> 29;
    number *= 0xbea225f9eb34556d;
    return number;
  }

  std::uint64_t owners_;
  int shift_;
  std::uint64_t factor_, offset_;
};

// Each loop returns the bits that occur in what must lie between 0 and 2**40.
template <class Index, class Owner>
[[gnu::always_inline]] inline std::uint64_t owner_loop(Owners owners, const Index* indices, std::size_t count,
                                                       Owner* out) {
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < count; ++i) {
    seen |= static_cast<std::uint64_t>(indices[i]);
    out[i] = static_cast<Owner>(owners.owner(indices[i]));
  }
  return seen;
}

template <class Index, class Owner>
std::uint64_t owners_scalar(Owners owners, const Index* indices, std::size_t count, Owner* out) {
  return owner_loop(owners, indices, count, out);
}

#if THINWIRE_X86

template <class Index, class Owner>
THINWIRE_AVX2 std::uint64_t owners_avx2(Owners owners, const Index* indices, std::size_t count, Owner* out) {
  return owner_loop(owners, indices, count, out);
}

template <class Index, class Owner>
THINWIRE_AVX512 std::uint64_t owners_avx512(Owners owners, const Index* indices, std::size_t count, Owner* out) {
  return owner_loop(owners, indices, count, out);
}

#endif

template <class Index, class Owner>
auto owners_on(Isa isa) {
#if THINWIRE_X86
  if (isa == Isa::kAvx512) return &owners_avx512<Index, Owner>;
  if (isa == Isa::kAvx2) return &owners_avx2<Index, Owner>;
#endif
  static_cast<void>(isa);
  return &owners_scalar<Index, Owner>;
}

template <class Index>
std::uint64_t place_loop(Owners owners, const Index* indices, std::size_t count, Index* out) {
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < count; ++i) {
    seen |= static_cast<std::uint64_t>(indices[i]);
    out[i] = static_cast<Index>(owners.place(indices[i]));
  }
  return seen;
}

// Runs `loop(from, to)` over all parts, and says whether all that was seen is in range.
template <class Loop>
Status over_parts(int threads, std::size_t count, int bits, Loop loop) {
  const int parts = threads == 1 ? 1 : static_cast<int>(std::min<std::size_t>(count / kPart + 1, threads));
  std::atomic<std::uint64_t> seen{0};
  run_parts(threads, parts, [&](int part) {
    seen.fetch_or(loop(part_begin(count, part, parts, 64), part_begin(count, part + 1, parts, 64)));
  });
  return seen.load() >> bits == 0 ? Status::kOk : Status::kRange;
}

}  // namespace

template <class Index, class Owner>
Status owner_of(const Machine& machine, const Index* indices, std::size_t count, std::size_t owners,
                std::uint64_t seed, Owner* out) {
  const Owners all(owners, seed);
  const auto loop = owners_on<Index, Owner>(machine.isa);
  return over_parts(machine.threads, count, kIndexBits, [&](std::size_t from, std::size_t to) {
    return loop(all, indices + from, to - from, out + from);
  });
}

template <class Index>
Status place_of(const Machine& machine, const Index* indices, std::size_t count, std::size_t owners, Index* out) {
  const Owners all(owners, 0);
  return over_parts(machine.threads, count, kIndexBits, [&](std::size_t from, std::size_t to) {
    return place_loop(all, indices + from, to - from, out + from);
  });
}

template <class Index>
Status index_at(const Machine& machine, const Index* places, std::size_t count, std::size_t owner, std::size_t owners,
                std::uint64_t seed, Index* out) {
  const Owners all(owners, seed);
  constexpr int kBits = std::min<int>(kIndexBits, 8 * sizeof(Index) - 1);
  return over_parts(machine.threads, count, kBits, [&](std::size_t from, std::size_t to) {
    std::uint64_t seen = 0;
    for (std::size_t i = from; i < to; ++i) {
      const std::uint64_t place = static_cast<std::uint64_t>(places[i]), index = all.index(owner, place);
      seen |= place | index;
      out[i] = static_cast<Index>(index);
    }
    return seen;
  });
}

#define THINWIRE_OWNER(Index, Owner) \
  template Status owner_of(const Machine&, const Index*, std::size_t, std::size_t, std::uint64_t, Owner*);
#define THINWIRE_INSTANCES(Index)                                                             \
  THINWIRE_OWNER(Index, std::uint8_t)                                                         \
  THINWIRE_OWNER(Index, std::int16_t)                                                         \
  template Status place_of(const Machine&, const Index*, std::size_t, std::size_t, Index*);   \
  template Status index_at(const Machine&, const Index*, std::size_t, std::size_t, std::size_t, std::uint64_t, Index*);
THINWIRE_INSTANCES(std::int32_t)
THINWIRE_INSTANCES(std::int64_t)

}  // namespace thinwire
