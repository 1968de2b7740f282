// Movements on odd sizes, every buffer exactly as long as it must be. Built with the address and
// undefined-behaviour sanitizers, which end it at the first byte read or written out of bounds.

#include "common.h"
#include "movement/movement.h"

using namespace thinwire;

namespace {

template <class T>
std::unique_ptr<T[]> copied(const std::vector<T>& list) {
  auto copy = exactly<T>(list.size());
  std::copy(list.begin(), list.end(), copy.get());
  return copy;
}

// Messages about n elements; now and then one of them is damaged.
template <class Float, class Index>
struct Mail {
  std::vector<std::unique_ptr<Index[]>> indices;
  std::vector<std::unique_ptr<Float[]>> values;
  std::vector<Message<Float, Index>> messages;
  std::size_t entries = 0;
  bool sound = true;

  Mail(std::size_t n, std::size_t most) {
    for (std::size_t m = 1 + below(5); m > 0; --m) {
      auto list = random_list<Index>(n, most);
      if (!list.empty() && below(8) == 0) {
        list[below(list.size())] = below(2) == 0 ? static_cast<Index>(dice()) : static_cast<Index>(n);
      }
      for (std::size_t i = 0; i < list.size(); ++i) {
        sound = sound && list[i] >= 0 && static_cast<std::size_t>(list[i]) < n && (i == 0 || list[i - 1] < list[i]);
      }
      indices.push_back(copied(list));
      values.push_back(exactly<Float>(list.size()));
      for (std::size_t i = 0; i < list.size(); ++i) values.back()[i] = static_cast<Float>(below(9)) - 4;
      messages.push_back({indices.back().get(), values.back().get(), list.size()});
      entries += list.size();
    }
  }

  Messages<Float, Index> all() const { return messages; }
};

template <class Float, class Index>
void sums(const Machine& machine, std::size_t n, std::size_t most) {
  const Mail<Float, Index> mail(n, most);
  auto sum = exactly<Float>(n), mean = exactly<Float>(n);
  for (std::size_t i = 0; i < n; ++i) mean[i] = 77;
  require((scatter_sum(machine, sum.get(), n, mail.all()) == Status::kOk) == mail.sound, "scatter_sum refuses");
  const Status status = scatter_mean(machine, mean.get(), n, mail.all(), Float(3));
  require((status == Status::kOk) == mail.sound, "scatter_mean refuses");
  for (std::size_t i = 0; i < n; ++i) {
    require(sum[i] == 0 || mail.sound, "nothing is added");
    require(mean[i] == (mail.sound ? sum[i] / 3 : 77), "a mean is a sum divided");
  }
  auto indices = exactly<Index>(mail.entries);
  auto values = exactly<Float>(mail.entries);
  const MergeResult merged = merge_sum(machine, n, mail.all(), indices.get(), values.get());
  require((merged.status == Status::kOk) == mail.sound, "merge_sum refuses");
  check_list(indices.get(), merged.count, n);
  for (std::size_t i = 0; i < merged.count; ++i) require(values[i] == sum[indices[i]], "merged as added");
}

template <class Float, class Index>
void add(std::size_t n) {
  auto out = exactly<Float>(n);
  const auto list = random_list<Index>(n + n / 50, 60);  // now and then an index outside
  auto values = exactly<Float>(list.size());
  const bool inside = list.empty() || static_cast<std::size_t>(list.back()) < n;
  const Status status = scatter_add(out.get(), n, list.data(), values.get(), list.size());
  require((status == Status::kOk) == inside, "scatter_add refuses exactly what is outside");
}

template <class Float, class Index>
void move_out(const Machine& machine, std::size_t n, std::size_t count) {
  auto values = exactly<Float>(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<Float>(i + 1);
  auto any = exactly<Index>(count);
  bool inside = true;
  for (std::size_t i = 0; i < count; ++i) {
    any[i] = below(2000) == 0 ? static_cast<Index>(dice()) : static_cast<Index>(below(n));
    inside = inside && any[i] >= 0 && static_cast<std::size_t>(any[i]) < n;
  }
  auto found = exactly<Float>(count);
  const Status status = gather(machine, values.get(), n, any.get(), count, found.get());
  require((status == Status::kOk) == (inside && (n > 0 || count == 0)), "gather refuses");
  const auto sorted = random_list<Index>(n + n / 50, count);
  const auto exact = copied(sorted);
  auto taken = exactly<Float>(sorted.size());
  const bool sound = sorted.empty() || static_cast<std::size_t>(sorted.back()) < n;
  const Status left = take_at(machine, values.get(), n, exact.get(), sorted.size(), taken.get());
  require((left == Status::kOk) == sound, "take_at refuses");
  for (std::size_t i = 0; sound && i < sorted.size(); ++i) {
    require(taken[i] == static_cast<Float>(sorted[i] + 1) && values[sorted[i]] == 0, "taken, and gone");
  }
}

template <class Float>
void average(const Machine& machine, std::size_t n) {
  std::vector<std::unique_ptr<Float[]>> tensors;
  std::vector<const Float*> all;
  for (std::size_t t = 1 + below(4); t > 0; --t) {
    tensors.push_back(exactly<Float>(n));
    all.push_back(tensors.back().get());
  }
  dense_mean<Float>(machine, tensors.back().get(), n, all);
}

template <class Index, class Owner>
void split(const Machine& machine, std::size_t count, std::size_t owners) {
  auto indices = exactly<Index>(count), places = exactly<Index>(count), back = exactly<Index>(count);
  auto owner = exactly<Owner>(count);
  bool sound = true;
  for (std::size_t i = 0; i < count; ++i) {
    indices[i] = below(500) == 0 ? static_cast<Index>(dice()) : static_cast<Index>(below(std::size_t{1} << 31));
    sound = sound && indices[i] >= 0 && static_cast<std::uint64_t>(indices[i]) >> kIndexBits == 0;
  }
  const std::uint64_t seed = dice();
  const Status found = owner_of(machine, indices.get(), count, owners, seed, owner.get());
  require((found == Status::kOk) == sound, "owner_of refuses");
  require(place_of(machine, indices.get(), count, owners, places.get()) == found, "place_of refuses");
  if (!sound) return;
  index_at(machine, places.get(), count, below(owners), owners, seed, back.get());
  if (below(4) == 0 && count > 0) owner[below(count)] = static_cast<Owner>(dice());
  bool known = true;
  for (std::size_t i = 0; i < count; ++i) known = known && owner[i] >= 0 && static_cast<std::size_t>(owner[i]) < owners;
  auto values = exactly<float>(count), to_values = exactly<float>(count);
  auto counts = exactly<std::int64_t>(owners);
  const Message<float, Index> entries{indices.get(), values.get(), count};
  const Status status =
      multisplit(machine, entries, owner.get(), owners, back.get(), to_values.get(), counts.get());
  require((status == Status::kOk) == known, "multisplit refuses");
}

}  // namespace

int main() {
  for (const Machine& machine : machines()) {
    for (int round = 0; round < 400; ++round) {
      sums<float, std::int32_t>(machine, 1 + below(100), 60);
      sums<double, std::int64_t>(machine, 1 + below(100), 60);
      add<float, std::int32_t>(1 + below(100));
      add<double, std::int64_t>(1 + below(100));
      move_out<float, std::int32_t>(machine, 1 + below(300), below(200));
      move_out<double, std::int64_t>(machine, 1 + below(3000), below(3000));
      average<float>(machine, below(5000));
      average<double>(machine, below(5000));
      split<std::int32_t, std::uint8_t>(machine, below(300), 1 + below(256));
      split<std::int64_t, std::int16_t>(machine, below(300), 1 + below(kMostOwners));
    }
    for (int round = 0; round < 3; ++round) {  // several parts, tiles and windows
      sums<float, std::int64_t>(machine, 100'000 + below(300'000), 60'000);
      sums<double, std::int32_t>(machine, 1 + below(3'000'000), 60'000);
      move_out<float, std::int32_t>(machine, 100'001, 150'000 + below(1000));
      average<float>(machine, 4'500'000 + below(1000));
      split<std::int32_t, std::uint8_t>(machine, 150'000 + below(1000), 1 + below(256));
    }
  }
  std::puts("clean");
}
