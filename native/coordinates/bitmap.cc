// A bitmap of the selected units, lowest bit first.

#include <bit>

#include "coordinates/coordinates.h"
#include "core/bits.h"

#if THINWIRE_X86
#include <immintrin.h>
#endif

namespace thinwire {
namespace {

[[gnu::always_inline]] inline std::size_t count_loop(const std::uint8_t* bytes, std::size_t size) {
  std::size_t ones = 0;
  for (std::size_t at = 0; at < size; at += 8) {
    ones += static_cast<std::size_t>(std::popcount(load_le(bytes + at, size - at)));
  }
  return ones;
}

// Writes the positions of the ones of a stream from bit 8 * `at` on, `done` of them being written already.
template <class Index>
[[gnu::always_inline]] inline Status read_loop(const std::uint8_t* bytes, std::size_t size, std::size_t at, Index* out,
                                               std::size_t done, std::size_t count) {
  for (; at < size; at += 8) {
    std::uint64_t word = load_le(bytes + at, size - at);
    // The stream may have changed since its ones were counted.
    if (static_cast<std::size_t>(std::popcount(word)) > count - done) return Status::kCoordinates;
    for (; word != 0; word &= word - 1) out[done++] = static_cast<Index>(8 * at + std::countr_zero(word));
  }
  return done == count ? Status::kOk : Status::kCoordinates;
}

template <class Index>
[[gnu::always_inline]] inline Status write_loop(const Index* indices, std::size_t count, std::size_t units,
                                                std::uint8_t* out, std::size_t size) {
  std::uint64_t word = 0, ones = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t index = static_cast<std::uint64_t>(indices[i]);  // a negative index becomes a huge one
    if (index >= units) return Status::kRange;
    if (index / 64 < word) return Status::kOrder;
    ones = (index / 64 == word ? ones : 0) | std::uint64_t{1} << (index % 64);
    word = index / 64;
    if (size - 8 * word >= 8) {
      store_le(out + 8 * word, ones);
    } else {
      out[index / 8] |= static_cast<std::uint8_t>(1u << (index % 8));
    }
  }
  return Status::kOk;
}

template <class Index>
struct Loops {
  Status (*write)(const Index*, std::size_t, std::size_t, std::uint8_t*, std::size_t);
  Status (*read)(const std::uint8_t*, std::size_t, Index*, std::size_t);
};

template <class Index>
Status write_plain(const Index* indices, std::size_t count, std::size_t units, std::uint8_t* out, std::size_t size) {
  return write_loop(indices, count, units, out, size);
}

template <class Index>
Status read_plain(const std::uint8_t* bytes, std::size_t size, Index* out, std::size_t count) {
  return read_loop(bytes, size, 0, out, 0, count);
}

#if THINWIRE_X86
THINWIRE_AVX2 std::size_t count_avx2(const std::uint8_t* bytes, std::size_t size) { return count_loop(bytes, size); }

template <class Index>
THINWIRE_AVX2 Status write_avx2(const Index* indices, std::size_t count, std::size_t units, std::uint8_t* out,
                                std::size_t size) {
  return write_loop(indices, count, units, out, size);
}

template <class Index>
THINWIRE_AVX2 Status read_avx2(const std::uint8_t* bytes, std::size_t size, Index* out, std::size_t count) {
  return read_loop(bytes, size, 0, out, 0, count);
}

// A whole register of positions is written for every 16 (or 8) bits, and how many of them count is known at once.
template <class Index>
THINWIRE_AVX512 Status read_avx512(const std::uint8_t* bytes, std::size_t size, Index* out, std::size_t count) {
  constexpr std::size_t kLanes = 64 / sizeof(Index);
  constexpr int kFew = 4;  // one by one is faster
  std::size_t at = 0, done = 0;
  const __m512i lanes32 = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i lanes64 = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
  for (; size - at >= 8 && count - done >= 64; at += 8) {
    std::uint64_t word = load_le(bytes + at, 8);
    if (std::popcount(word) <= kFew) {
      for (; word != 0; word &= word - 1) out[done++] = static_cast<Index>(8 * at + std::countr_zero(word));
      continue;
    }
    for (std::size_t bit = 0; bit < 64; bit += kLanes, word >>= kLanes) {
      const std::size_t place = 8 * at + bit;
      if constexpr (sizeof(Index) == 4) {
        const __m512i here = _mm512_add_epi32(lanes32, _mm512_set1_epi32(static_cast<int>(place)));
        _mm512_storeu_si512(out + done, _mm512_maskz_compress_epi32(static_cast<__mmask16>(word), here));
        done += static_cast<std::size_t>(std::popcount(word & 0xffff));
      } else {
        const __m512i here = _mm512_add_epi64(lanes64, _mm512_set1_epi64(static_cast<long long>(place)));
        _mm512_storeu_si512(out + done, _mm512_maskz_compress_epi64(static_cast<__mmask8>(word), here));
        done += static_cast<std::size_t>(std::popcount(word & 0xff));
      }
    }
  }
  return read_loop(bytes, size, at, out, done, count);
}
#endif

template <class Index>
Loops<Index> loops_of(Isa isa) {
#if THINWIRE_X86
  if (isa == Isa::kAvx512) return {write_avx2<Index>, read_avx512<Index>};
  if (isa == Isa::kAvx2) return {write_avx2<Index>, read_avx2<Index>};
#endif
  static_cast<void>(isa);
  return {write_plain<Index>, read_plain<Index>};
}

}  // namespace

std::size_t count_ones(const Machine& machine, const std::uint8_t* bytes, std::size_t size) {
#if THINWIRE_X86
  if (machine.isa != Isa::kScalar) return count_avx2(bytes, size);
#endif
  static_cast<void>(machine);
  return count_loop(bytes, size);
}

template <class Index>
Status bitmap_write(const Machine& machine, const Index* indices, std::size_t count, std::size_t units,
                    std::uint8_t* out, std::size_t size) {
  if (size != bytes_for(units)) return Status::kSpace;
  if (size > 0) std::memset(out, 0, size);
  const Status status = loops_of<Index>(machine.isa).write(indices, count, units, out, size);
  if (status != Status::kOrder) return status;
  // A list that does not increase: one bit after the other.
  std::memset(out, 0, size);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t index = static_cast<std::uint64_t>(indices[i]);
    if (index >= units) return Status::kRange;
    out[index / 8] |= static_cast<std::uint8_t>(1u << (index % 8));
  }
  return Status::kOk;
}

template <class Index>
Status bitmap_read(const Machine& machine, const std::uint8_t* data, std::size_t size, std::size_t units, Index* out,
                   std::size_t count) {
  if (size != bytes_for(units)) return Status::kCoordinates;
  if (units % 8 != 0 && (data[size - 1] >> (units % 8)) != 0) return Status::kPadding;
  if (count_ones(machine, data, size) != count) return Status::kCoordinates;
  return loops_of<Index>(machine.isa).read(data, size, out, count);
}

template Status bitmap_write(const Machine&, const std::int32_t*, std::size_t, std::size_t, std::uint8_t*, std::size_t);
template Status bitmap_write(const Machine&, const std::int64_t*, std::size_t, std::size_t, std::uint8_t*, std::size_t);
template Status bitmap_read(const Machine&, const std::uint8_t*, std::size_t, std::size_t, std::int32_t*, std::size_t);
template Status bitmap_read(const Machine&, const std::uint8_t*, std::size_t, std::size_t, std::int64_t*, std::size_t);

}  // namespace thinwire
