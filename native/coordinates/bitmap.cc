// A bitmap of the selected units, lowest bit first.

#include "core/bits.h"
#include "coordinates/coordinates.h"

namespace thinwire {

template <class Index>
Status bitmap_write(const Index* indices, std::size_t count, std::size_t units, std::uint8_t* out, std::size_t size) {
  if (size != bytes_for(units)) return Status::kSpace;
  if (size > 0) std::memset(out, 0, size);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t index = static_cast<std::uint64_t>(indices[i]);  // a negative index becomes a huge one
    if (index >= units) return Status::kRange;
    out[index / 8] |= static_cast<std::uint8_t>(1u << (index % 8));
  }
  return Status::kOk;
}

template <class Index>
Status bitmap_read(const std::uint8_t* data, std::size_t size, std::size_t units, Index* out, std::size_t count) {
  if (size != bytes_for(units)) return Status::kCoordinates;
  if (units % 8 != 0 && (data[size - 1] >> (units % 8)) != 0) return Status::kPadding;
  if (count_ones(data, size) != count) return Status::kCoordinates;
  std::size_t done = 0;
  for_each_one(data, size, [&](std::size_t position) {
    if (done == count) return false;
    out[done++] = static_cast<Index>(position);
    return true;
  });
  return Status::kOk;
}

template Status bitmap_write(const std::int32_t*, std::size_t, std::size_t, std::uint8_t*, std::size_t);
template Status bitmap_write(const std::int64_t*, std::size_t, std::size_t, std::uint8_t*, std::size_t);
template Status bitmap_read(const std::uint8_t*, std::size_t, std::size_t, std::int32_t*, std::size_t);
template Status bitmap_read(const std::uint8_t*, std::size_t, std::size_t, std::int64_t*, std::size_t);

}  // namespace thinwire
