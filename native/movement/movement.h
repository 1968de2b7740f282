// Values on their way out of and into dense tensors, and between owners.
//
// `Float` is float or double, `Index` is int32_t or int64_t. The semantics are those of
// src/thinwire/kernels/reference/movement.py, bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/machine.h"
#include "core/status.h"

namespace thinwire {

// A sparse tensor: strictly increasing indices and their values.
template <class Float, class Index>
struct Message {
  const Index* indices;
  const Float* values;
  std::size_t count;
};

template <class Float, class Index>
using Messages = std::span<const Message<Float, Index>>;

// out[indices[i]] += values[i] for i = 0, 1, ... kRange before anything is changed.
template <class Float, class Index>
Status scatter_add(Float* out, std::size_t n, const Index* indices, const Float* values, std::size_t count);

// Adds the messages in their order. kOrder or kRange before anything is changed.
template <class Float, class Index>
Status scatter_sum(const Machine& machine, Float* out, std::size_t n, Messages<Float, Index> messages);

// Writes the sum of the messages divided by `divisor`. kOrder or kRange before anything is changed.
template <class Float, class Index>
Status scatter_mean(const Machine& machine, Float* out, std::size_t n, Messages<Float, Index> messages, Float divisor);

struct MergeResult {
  Status status;
  std::size_t count;
};

// The sum of the messages as one message. `indices` and `values` have room for the entries of all messages.
template <class Float, class Index>
MergeResult merge_sum(const Machine& machine, std::size_t n, Messages<Float, Index> messages, Index* indices,
                      Float* values);

// Writes the mean of the tensors, added in their order. `out` may be one of them.
template <class Float>
void dense_mean(const Machine& machine, Float* out, std::size_t n, std::span<const Float* const> tensors);

// out[i] = values[indices[i]]; kRange if that is outside, and then what `out` holds is arbitrary.
template <class Float, class Index>
Status gather(const Machine& machine, const Float* values, std::size_t n, const Index* indices, std::size_t count,
              Float* out);

// The same for strictly increasing indices, leaving zeros behind. kOrder or kRange before anything is changed.
template <class Float, class Index>
Status take_at(const Machine& machine, Float* values, std::size_t n, const Index* indices, std::size_t count,
               Float* out);

constexpr std::size_t kMostOwners = std::size_t{1} << 15;
constexpr int kIndexBits = 40;  // the largest tensors have 2**40 elements

// The owner of each index, and its place among the indices that this owner may have. `Owner` holds the number of
// owners less one. kRange for an index that is negative or too large; what `out` holds is then arbitrary.
template <class Index, class Owner>
Status owner_of(const Machine& machine, const Index* indices, std::size_t count, std::size_t owners,
                std::uint64_t seed, Owner* out);
template <class Index>
Status place_of(const Machine& machine, const Index* indices, std::size_t count, std::size_t owners, Index* out);

// The index that has this place at this owner: the inverse of the two. kRange if it does not fit into `Index`.
template <class Index>
Status index_at(const Machine& machine, const Index* places, std::size_t count, std::size_t owner, std::size_t owners,
                std::uint64_t seed, Index* out);

// Sorts entries by their owner, keeping their order otherwise. `counts` has one place for each owner.
// kRange before anything is written if an owner is not one of them.
template <class Float, class Index, class Owner>
Status multisplit(const Machine& machine, Message<Float, Index> entries, const Owner* owner_of_each,
                  std::size_t owners, Index* indices, Float* values, std::int64_t* counts);

}  // namespace thinwire
