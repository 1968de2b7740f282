// Coordinate sections, hostile bytes included, on odd sizes, every buffer exactly as long as it must be. Built with the
// address and undefined-behaviour sanitizers, which end it at the first byte read or written out of bounds.

#include "common.h"
#include "coordinates/coordinates.h"

using namespace thinwire;

namespace {

template <class Index>
void read_damaged(const Machine& machine, const std::uint8_t* data, std::size_t size, std::size_t units,
                  std::size_t count, bool rice) {
  const auto bytes = damage(data, size);
  if (below(4) == 0) count = below(100);
  if (below(4) == 0) units = below(1000);
  if (count == 0) return;  // settled before the kernels are called
  auto out = exactly<Index>(count);
  const auto read = rice ? rice_read<Index> : bitmap_read<Index>;
  if (read(machine, bytes.get(), size, units, out.get(), count) == Status::kOk) check_list(out.get(), count, units);
}

template <class Index>
void code(const Machine& machine, std::size_t units, std::size_t most = 80) {
  const auto list = random_list<Index>(units, most);
  const auto plan = rice_plan(machine, list.data(), list.size(), units);
  require(plan.status == Status::kOk, "rice_plan");
  auto section = exactly<std::uint8_t>(plan.bytes);
  if (!list.empty()) {
    const auto write = rice_write<Index>;
    require(write(machine, list.data(), list.size(), plan.bits, section.get(), plan.bytes) == Status::kOk, "written");
    auto back = exactly<Index>(list.size());
    require(rice_read(machine, section.get(), plan.bytes, units, back.get(), list.size()) == Status::kOk, "rice_read");
    require(std::equal(list.begin(), list.end(), back.get()), "rice comes back");
    const std::size_t small = below(plan.bytes);
    auto narrow = exactly<std::uint8_t>(small);
    require(write(machine, list.data(), list.size(), plan.bits, narrow.get(), small) == Status::kSpace, "no room");
  }
  for (int i = 0; i < 20; ++i) read_damaged<Index>(machine, section.get(), plan.bytes, units, list.size(), true);
  if (units > 5000) return;
  const std::size_t size = (units + 7) / 8;
  auto bitmap = exactly<std::uint8_t>(size);
  require(bitmap_write(machine, list.data(), list.size(), units, bitmap.get(), size) == Status::kOk, "bitmap_write");
  for (int i = 0; i < 20; ++i) read_damaged<Index>(machine, bitmap.get(), size, units, list.size(), false);
}

template <class Index>
void mark(const Machine& machine, std::size_t units, std::size_t most) {
  const auto members = random_list<Index>(units, most);
  std::vector<Index> chosen;
  for (const Index member : members) {
    if (below(3) == 0) chosen.push_back(member);
  }
  std::size_t size = (members.size() + 7) / 8;
  auto bits = exactly<std::uint8_t>(size);
  require(members_write(machine, chosen.data(), chosen.size(), members.data(), members.size(), bits.get()) ==
              Status::kOk, "members_write");
  auto back = exactly<Index>(chosen.size());
  require(members_read(machine, bits.get(), size, members.data(), members.size(), back.get(), chosen.size()) ==
              Status::kOk, "members_read");
  require(std::equal(chosen.begin(), chosen.end(), back.get()), "members come back");
  const auto damaged = damage(bits.get(), size);
  if (members_read(machine, damaged.get(), size, members.data(), members.size(), back.get(), chosen.size()) ==
      Status::kOk) {
    check_list(back.get(), chosen.size(), units);
  }
}

}  // namespace

int main() {
  for (const Machine& machine : machines()) {
    for (int round = 0; round < 300; ++round) {
      code<std::int32_t>(machine, below(2000));
      code<std::int64_t>(machine, std::size_t{1} << below(41));
      mark<std::int32_t>(machine, below(2000), 90);
      mark<std::int64_t>(machine, std::size_t{1} << below(41), 90);
      if (round % 20 != 0) continue;
      code<std::int32_t>(machine, below(5000), 3000);
      code<std::int64_t>(machine, below(100000), 3000);
      mark<std::int32_t>(machine, below(5000), 3000);
    }
  }
  std::puts("clean");
}
