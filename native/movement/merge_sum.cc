// The sum of sparse messages as a sparse message.
//
// The messages are walked together through a small dense window, which is opened where the next index is: values are
// added into it, marks say where, and then the marks are read out in order. That costs the same for two messages as for
// sixty-four, takes no comparison of heads, and is linear in the number of entries.

#include <algorithm>
#include <bit>
#include <vector>

#include "core/pool.h"
#include "core/scratch.h"
#include "movement/messages.h"
#include "movement/movement.h"

namespace thinwire {
namespace {

constexpr std::size_t kMark = 64;             // elements whose marks share a word
constexpr std::size_t kRow = kMark * kMark;   // elements whose words share a mark of their own
constexpr std::size_t kNarrowest = 8 * kRow;  // with its sums, well inside the second cache
constexpr std::size_t kWidest = 64 * kRow;
constexpr std::size_t kWanted = 4096;         // entries that make opening a window worth it

template <class Float>
struct Window {
  std::size_t width;
  Float* sums;           // -0.0 wherever there is no mark: adding a value to it gives that value, zeros included
  std::uint64_t* marks;  // one bit for each element
  std::uint64_t* words;  // one bit for each word of marks that is not zero

  static constexpr std::size_t bytes(std::size_t width) {
    return width * sizeof(Float) + (width / kMark + width / kRow) * sizeof(std::uint64_t);
  }

  Window(std::size_t width, unsigned char* memory)
      : width(width),
        sums(reinterpret_cast<Float*>(memory)),
        marks(reinterpret_cast<std::uint64_t*>(memory + width * sizeof(Float))),
        words(marks + width / kMark) {
    std::fill(sums, sums + width, Float{-0.0});
    std::fill(marks, words + width / kRow, 0);
  }

  void add(std::size_t at, Float value) {
    sums[at] += value;
    marks[at / kMark] |= std::uint64_t{1} << at % kMark;
    words[at / kRow] |= std::uint64_t{1} << at / kMark % kMark;
  }

  // Moves everything out, in order, and leaves the window as it was made. Returns how much it was.
  template <class Index>
  std::size_t empty(std::size_t base, Index* indices, Float* values) {
    std::size_t written = 0;
    for (std::size_t row = 0; row < width / kRow; ++row) {
      for (std::uint64_t left = words[row]; left != 0; left &= left - 1) {
        const std::size_t word = row * kMark + static_cast<std::size_t>(std::countr_zero(left));
        for (std::uint64_t bits = marks[word]; bits != 0; bits &= bits - 1) {
          const std::size_t at = word * kMark + static_cast<std::size_t>(std::countr_zero(bits));
          indices[written] = static_cast<Index>(base + at);
          values[written++] = sums[at];
          sums[at] = Float{-0.0};
        }
        marks[word] = 0;
      }
      words[row] = 0;
    }
    return written;
  }
};

// The lowest index that is still to come; `none` if there is none.
template <class Float, class Index>
std::size_t next_index(Messages<Float, Index> messages, const std::size_t* at, std::size_t none) {
  for (std::size_t m = 0; m < messages.size(); ++m) {
    if (at[m] < messages[m].count) none = std::min(none, static_cast<std::size_t>(messages[m].indices[at[m]]));
  }
  return none;
}

// Merges what lies below `end`, from the cursors `at` on. Returns the number of entries written.
template <class Float, class Index>
std::size_t merge_below(Messages<Float, Index> messages, std::size_t* at, std::size_t end, Window<Float>& window,
                        Index* indices, Float* values) {
  std::size_t written = 0;
  for (std::size_t base; (base = next_index(messages, at, end)) < end;) {
    const std::size_t to = std::min(base + window.width, end);
    for (std::size_t m = 0; m < messages.size(); ++m) {
      const auto [list, added, count] = messages[m];
      std::size_t i = at[m];
      for (; i < count && static_cast<std::size_t>(list[i]) < to; ++i) {
        window.add(static_cast<std::size_t>(list[i]) - base, added[i]);
      }
      at[m] = i;
    }
    written += window.empty(base, indices + written, values + written);
  }
  return written;
}

// A window that will hold about `kWanted` entries, if the messages are spread evenly.
std::size_t fitting_width(std::size_t n, std::size_t entries) {
  const double wanted = static_cast<double>(n) / static_cast<double>(entries) * kWanted;
  return std::bit_ceil(static_cast<std::size_t>(std::clamp<double>(wanted, kNarrowest, kWidest)));
}

// Where part `part` of the tensor begins: parts hold about as many entries of the longest message each.
template <class Float, class Index>
std::size_t cut(const Message<Float, Index>& longest, std::size_t n, int part, int parts) {
  if (part == 0) return 0;
  if (part == parts) return n;
  return static_cast<std::size_t>(longest.indices[part_begin(longest.count, part, parts, 1)]);
}

}  // namespace

template <class Float, class Index>
MergeResult merge_sum(const Machine& machine, std::size_t n, Messages<Float, Index> messages, Index* indices,
                      Float* values) {
  const Status status = check_messages(machine.threads, messages, n);
  const std::size_t entries = total(messages);
  if (status != Status::kOk || entries == 0) return {status, 0};
  const auto shorter = [](const auto& a, const auto& b) { return a.count < b.count; };
  const auto& longest = *std::max_element(messages.begin(), messages.end(), shorter);
  const std::size_t worth = std::min(entries / kPerPart + 1, longest.count);
  const int threads = static_cast<int>(std::min<std::size_t>(worth, machine.threads));
  const std::size_t width = fitting_width(n, entries);
  struct Windows;
  unsigned char* memory = scratch<Windows, unsigned char>(static_cast<std::size_t>(threads) * Window<Float>::bytes(width));
  Cursors<Float, Index> cursors(messages, threads);
  // A part writes where it would begin if no two messages shared an index; what is left between them is closed after.
  std::vector<std::size_t> begin(threads), written(threads);
  run_parts(threads, threads, [&](int part) {
    const std::size_t index = static_cast<std::size_t>(part);
    std::size_t* at = cursors.start(part, cut(longest, n, part, threads));
    for (std::size_t m = 0; m < messages.size(); ++m) begin[index] += at[m];
    Window<Float> window(width, memory + index * Window<Float>::bytes(width));
    written[index] = merge_below(messages, at, cut(longest, n, part + 1, threads), window, indices + begin[index],
                                 values + begin[index]);
  });
  std::size_t count = written[0];
  for (std::size_t part = 1; part < written.size(); ++part) {
    std::copy_n(indices + begin[part], written[part], indices + count);
    std::copy_n(values + begin[part], written[part], values + count);
    count += written[part];
  }
  return {Status::kOk, count};
}

#define THINWIRE_INSTANCES(Float, Index) \
  template MergeResult merge_sum(const Machine&, std::size_t, Messages<Float, Index>, Index*, Float*);
THINWIRE_INSTANCES(float, std::int32_t)
THINWIRE_INSTANCES(float, std::int64_t)
THINWIRE_INSTANCES(double, std::int32_t)
THINWIRE_INSTANCES(double, std::int64_t)

}  // namespace thinwire
