// Values as bytes and back, and checksums, on odd sizes and at odd addresses, every buffer exactly as long as it must
// be. Built with the address and undefined-behaviour sanitizers, which end it at the first byte out of bounds.

#include <cmath>

#include "common.h"
#include "values/values.h"

using namespace thinwire;

namespace {

template <class Float>
void convert(const Machine& machine, std::size_t n) {
  auto values = exactly<Float>(n);
  for (std::size_t i = 0; i < n; ++i) {
    const Float digits = static_cast<Float>(static_cast<int>(below(2001)) - 1000);
    values[i] = std::ldexp(digits, static_cast<int>(below(240)) - 130);
  }
  for (const auto format : {ValueFormat::kF32, ValueFormat::kF64, ValueFormat::kBf16, ValueFormat::kF16,
                            ValueFormat::kInt8}) {
    const std::size_t each = value_bytes(machine, format);
    if (each == 0 || (format == ValueFormat::kF64 && sizeof(Float) == 4)) continue;
    const std::size_t lead = below(9);
    auto bytes = exactly<std::uint8_t>(lead + n * each);
    auto back = exactly<Float>(n);
    if (format != ValueFormat::kF32 && format != ValueFormat::kF64) {
      pack_values(machine, values.get(), n, format, Float(0.37), bytes.get() + lead);
      const bool right = unpack_values(machine, bytes.get() + lead, n, format, Float(0.37), back.get());
      require(right, "packed values are finite");
      auto again = exactly<std::uint8_t>(n * each);
      pack_values(machine, back.get(), n, format, Float(0.37), again.get());
      require(std::equal(again.get(), again.get() + n * each, bytes.get() + lead), "what was read is written alike");
    }
    for (std::size_t i = 0; i < lead + n * each; ++i) bytes[i] = static_cast<std::uint8_t>(dice());
    const bool finite = unpack_values(machine, bytes.get() + lead, n, format, Float(1e30), back.get());
    bool all = true;
    for (std::size_t i = 0; i < n; ++i) all = all && std::isfinite(back[i]);
    require(finite == all, "what is not finite is found");
  }
}

template <class Float>
void level(const Machine& machine, std::size_t n, int count) {
  const std::size_t each = count == 2 ? 4 : 2, size = n / each + (n % each != 0);
  auto levels = exactly<Float>(count), bounds = exactly<Float>(count - 1);
  for (int i = 0; i < count; ++i) levels[i] = static_cast<Float>(i * i) / 4;
  for (int i = 0; i + 1 < count; ++i) bounds[i] = (levels[i] + levels[i + 1]) / 2;
  auto bytes = exactly<std::uint8_t>(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::uint8_t>(dice());
  auto values = exactly<Float>(n), back = exactly<Float>(n);
  unpack_levels(bytes.get(), n, levels.get(), count, values.get());
  auto again = exactly<std::uint8_t>(size);
  pack_levels(machine, values.get(), n, bounds.get(), count, again.get());
  unpack_levels(again.get(), n, levels.get(), count, back.get());
  require(std::equal(values.get(), values.get() + n, back.get()), "levels come back");
}

void sum(const Machine& machine, std::size_t n) {
  auto data = exactly<std::uint8_t>(n);
  for (std::size_t i = 0; i < n; ++i) data[i] = static_cast<std::uint8_t>(dice());
  const std::size_t cut = below(n + 1);
  const auto part = crc32(machine, data.get(), cut, 0);
  const auto whole = crc32(machine, data.get() + cut, n - cut, part);
  require(whole == crc32(Machine{}, data.get(), n, 0), "the checksum of the parts is that of the whole");
}

}  // namespace

int main() {
  for (const Machine& machine : machines()) {
    for (int round = 0; round < 300; ++round) {
      const std::size_t n = below(round % 10 == 0 ? 2000 : 70);
      convert<float>(machine, n);
      convert<double>(machine, n);
      for (const int count : {2, kMostLevels}) {
        level<float>(machine, n, count);
        level<double>(machine, n, count);
      }
      sum(machine, n);
    }
  }
  std::puts("clean");
}
