// A stable sort by owner: count, sum up, move. Nothing is lost and nothing is compared.

#include <algorithm>
#include <vector>

#include "core/pool.h"
#include "movement/messages.h"
#include "movement/movement.h"

namespace thinwire {
namespace {

// One row of counters for each part. Two rows are filled in turn, as equal neighbours would wait for each other.
// False if an owner is not below `owners`.
template <class Owner>
bool count_owners(const Owner* owner, std::size_t from, std::size_t to, std::size_t owners, std::size_t* rows) {
  std::size_t* other = rows + owners;
  for (std::size_t i = from; i < to; ++i) {
    const std::size_t each = static_cast<std::size_t>(owner[i]);  // a negative one becomes huge
    if (each >= owners) return false;
    ++((i & 1) != 0 ? rows : other)[each];
  }
  for (std::size_t each = 0; each < owners; ++each) rows[each] += other[each];
  return true;
}

}  // namespace

template <class Float, class Index, class Owner>
Status multisplit(const Machine& machine, Message<Float, Index> entries, const Owner* owner_of_each,
                  std::size_t owners, Index* indices, Float* values, std::int64_t* counts) {
  const std::size_t count = entries.count;
  const int parts = machine.threads == 1 ? 1 : static_cast<int>(std::min<std::size_t>(count / kPerPart + 1, machine.threads));
  std::vector<std::size_t> next(2 * owners * static_cast<std::size_t>(parts));
  const auto row = [&](int part) { return next.data() + 2 * owners * static_cast<std::size_t>(part); };
  const auto begin = [&](int part) { return part_begin(count, part, parts, 64); };
  bool sound[kMostThreads];
  run_parts(machine.threads, parts, [&](int part) {
    sound[part] = count_owners(owner_of_each, begin(part), begin(part + 1), owners, row(part));
  });
  if (!std::all_of(sound, sound + parts, [](bool truth) { return truth; })) return Status::kRange;
  std::size_t sum = 0;
  for (std::size_t owner = 0; owner < owners; ++owner) {
    const std::size_t before = sum;
    for (int part = 0; part < parts; ++part) {
      const std::size_t own = row(part)[owner];
      row(part)[owner] = sum;
      sum += own;
    }
    counts[owner] = static_cast<std::int64_t>(sum - before);
  }
  run_parts(machine.threads, parts, [&](int part) {
    std::size_t* at = row(part);
    for (std::size_t i = begin(part), end = begin(part + 1); i < end; ++i) {
      const std::size_t to = at[static_cast<std::size_t>(owner_of_each[i])]++;
      indices[to] = entries.indices[i];
      values[to] = entries.values[i];
    }
  });
  return Status::kOk;
}

#define THINWIRE_OWNER(Float, Index, Owner)                                                                          \
  template Status multisplit(const Machine&, Message<Float, Index>, const Owner*, std::size_t, Index*, Float*,      \
                             std::int64_t*);
#define THINWIRE_INSTANCES(Float, Index) \
  THINWIRE_OWNER(Float, Index, std::uint8_t) THINWIRE_OWNER(Float, Index, std::int16_t)
THINWIRE_INSTANCES(float, std::int32_t)
THINWIRE_INSTANCES(float, std::int64_t)
THINWIRE_INSTANCES(double, std::int32_t)
THINWIRE_INSTANCES(double, std::int64_t)

}  // namespace thinwire
