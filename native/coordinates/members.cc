// A bitmap over a sorted list of members: the hash bitmap of Zen (OSDI '25, algorithm 2), where the members are the
// units that one owner has.

#include <algorithm>

#include "coordinates/coordinates.h"
#include "core/bits.h"

namespace thinwire {
namespace {

constexpr std::size_t kBlock = 16;

// For increasing indices: each one's place is looked for from the place of the one before on, by blocks of members.
template <class Index>
[[gnu::always_inline]] inline Status write_loop(const Index* indices, std::size_t count, const Index* members,
                                                std::size_t size, std::uint8_t* out) {
  std::size_t from = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Index index = indices[i];
    while (size - from > kBlock && members[from + kBlock - 1] < index) from += kBlock;
    Index below = 0;
    if (size - from >= kBlock) {
      for (std::size_t j = 0; j < kBlock; ++j) below += members[from + j] < index;
    } else {
      for (std::size_t j = from; j < size; ++j) below += members[j] < index;
    }
    const std::size_t place = from + static_cast<std::size_t>(below);
    if (place >= size || members[place] != index) return Status::kRange;
    out[place / 8] |= static_cast<std::uint8_t>(1u << (place % 8));
    from = place;
  }
  return Status::kOk;
}

template <class Index>
using Write = Status (*)(const Index*, std::size_t, const Index*, std::size_t, std::uint8_t*);

template <class Index>
Status write_plain(const Index* indices, std::size_t count, const Index* members, std::size_t size,
                   std::uint8_t* out) {
  return write_loop(indices, count, members, size, out);
}

#if THINWIRE_X86
template <class Index>
THINWIRE_AVX2 Status write_avx2(const Index* indices, std::size_t count, const Index* members, std::size_t size,
                                std::uint8_t* out) {
  return write_loop(indices, count, members, size, out);
}

template <class Index>
THINWIRE_AVX512 Status write_avx512(const Index* indices, std::size_t count, const Index* members, std::size_t size,
                                    std::uint8_t* out) {
  return write_loop(indices, count, members, size, out);
}
#endif

template <class Index>
Write<Index> write_of(Isa isa) {
#if THINWIRE_X86
  if (isa == Isa::kAvx512) return write_avx512<Index>;
  if (isa == Isa::kAvx2) return write_avx2<Index>;
#endif
  static_cast<void>(isa);
  return write_plain<Index>;
}

}  // namespace

template <class Index>
Status members_write(const Machine& machine, const Index* indices, std::size_t count, const Index* members,
                     std::size_t size, std::uint8_t* out) {
  std::fill_n(out, bytes_for(size), std::uint8_t{0});
  return write_of<Index>(machine.isa)(indices, count, members, size, out);
}

template <class Index>
Status members_read(const Machine& machine, const std::uint8_t* data, std::size_t bytes, const Index* members,
                    std::size_t size, Index* out, std::size_t count) {
  const Status status = bitmap_read(machine, data, bytes, size, out, count);
  if (status != Status::kOk) return status;
  for (std::size_t i = 0; i < count; ++i) out[i] = members[out[i]];
  return status;
}

template Status members_write(const Machine&, const std::int32_t*, std::size_t, const std::int32_t*, std::size_t,
                              std::uint8_t*);
template Status members_write(const Machine&, const std::int64_t*, std::size_t, const std::int64_t*, std::size_t,
                              std::uint8_t*);
template Status members_read(const Machine&, const std::uint8_t*, std::size_t, const std::int32_t*, std::size_t,
                             std::int32_t*, std::size_t);
template Status members_read(const Machine&, const std::uint8_t*, std::size_t, const std::int64_t*, std::size_t,
                             std::int64_t*, std::size_t);

}  // namespace thinwire
