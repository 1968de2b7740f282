// Movement of values for Python.

#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <utility>
#include <vector>

#include "bindings/bind.h"
#include "movement/movement.h"

namespace thinwire::bindings {
namespace {

using Tensors = std::vector<Read>;

// Calls `body` with null pointers of the types of the values and of the indices.
template <class Values, class Indices, class Body>
decltype(auto) with_both(const Values& values, const Indices& indices, Body body) {
  return with_float(values, [&](auto* f) { return with_index(indices, [&](auto* i) { return body(f, i); }); });
}

// Owners are written as uint8_t, or as int16_t where there are more of them than that holds.
template <class Array, class Body>
decltype(auto) with_owner(const Array& array, Body body) {
  if (array.dtype() == nb::dtype<std::uint8_t>()) return body(static_cast<std::uint8_t*>(nullptr));
  if (array.dtype() == nb::dtype<std::int16_t>()) return body(static_cast<std::int16_t*>(nullptr));
  throw nb::type_error("expected uint8 or int16");
}

void check_owners(std::size_t owners) {
  if (owners < 1 || owners > kMostOwners) throw nb::value_error("owners: 1 to 32768");
}

template <class Float, class Index>
std::vector<Message<Float, Index>> read_messages(Tensors& indices, Tensors& values) {
  check_same_length(indices.size(), values.size());
  std::vector<Message<Float, Index>> messages;
  for (std::size_t m = 0; m < indices.size(); ++m) {
    check_same_type(indices[m], indices[0]);
    check_same_type(values[m], values[0]);
    check_same_length(indices[m].size(), values[m].size());
    messages.push_back({data<Index>(indices[m]), data<Float>(values[m]), indices[m].size()});
  }
  return messages;
}

// Calls `body` with the messages, with the GIL free; there is at least one.
template <class Body>
auto with_messages(Tensors& indices, Tensors& values, Body body) {
  if (indices.empty() || values.empty()) throw nb::value_error("no message");
  return with_both(values[0], indices[0], [&](auto* f, auto* i) {
    using Float = Pointee<decltype(f)>;
    using Index = Pointee<decltype(i)>;
    const auto messages = read_messages<Float, Index>(indices, values);
    nb::gil_scoped_release release;
    return body(Messages<Float, Index>(messages));
  });
}

int scatter_add(const Machine&, Write out, Read indices, Read values) {
  return with_both(out, indices, [&](auto* f, auto* i) {
    using Float = Pointee<decltype(f)>;
    using Index = Pointee<decltype(i)>;
    check_same_type(values, out);
    check_same_length(values.size(), indices.size());
    nb::gil_scoped_release release;
    return static_cast<int>(thinwire::scatter_add(data<Float>(out), out.size(), data<Index>(indices),
                                                  data<Float>(values), indices.size()));
  });
}

// The type of the values of messages.
template <class Float, class Index>
Float float_of(Messages<Float, Index>);

int scatter_sum(const Machine& machine, Write out, Tensors indices, Tensors values) {
  if (!values.empty()) check_same_type(values[0], out);
  return with_messages(indices, values, [&](auto messages) {
    using Float = decltype(float_of(messages));
    return static_cast<int>(thinwire::scatter_sum(machine, data<Float>(out), out.size(), messages));
  });
}

int scatter_mean(const Machine& machine, Write out, Tensors indices, Tensors values, double divisor) {
  if (!values.empty()) check_same_type(values[0], out);
  if (!(divisor > 0)) throw nb::value_error("the divisor is not positive");
  return with_messages(indices, values, [&](auto messages) {
    using Float = decltype(float_of(messages));
    return static_cast<int>(thinwire::scatter_mean(machine, data<Float>(out), out.size(), messages,
                                                   static_cast<Float>(divisor)));
  });
}

std::pair<int, std::size_t> merge_sum(const Machine& machine, std::size_t numel, Tensors indices, Tensors values,
                                      std::pair<Write, Write> out) {
  auto& [to_indices, to_values] = out;
  std::size_t entries = 0;
  for (const Read& list : indices) entries += list.size();
  check_same_length(to_indices.size(), to_values.size());
  if (to_indices.size() < entries) throw nb::value_error("no room for the entries of all messages");
  if (!values.empty()) check_same_type(values[0], to_values);
  return with_messages(indices, values, [&](auto messages) {
    using Float = decltype(float_of(messages));
    const auto& message = messages[0];
    using Index = std::remove_cvref_t<decltype(*message.indices)>;
    const auto result = thinwire::merge_sum(machine, numel, messages, static_cast<Index*>(to_indices.data()),
                                            data<Float>(to_values));
    return std::pair{static_cast<int>(result.status), result.count};
  });
}

void dense_mean(const Machine& machine, Write out, Tensors tensors) {
  if (tensors.empty()) throw nb::value_error("no tensor");
  with_float(out, [&](auto* f) {
    using Float = Pointee<decltype(f)>;
    std::vector<const Float*> all;
    for (Read& tensor : tensors) {
      check_same_type(tensor, out);
      check_same_length(tensor.size(), out.size());
      all.push_back(data<Float>(tensor));
    }
    nb::gil_scoped_release release;
    thinwire::dense_mean<Float>(machine, data<Float>(out), out.size(), all);
  });
}

int gather(const Machine& machine, Read values, Read indices, Write out) {
  return with_both(values, indices, [&](auto* f, auto* i) {
    using Float = Pointee<decltype(f)>;
    using Index = Pointee<decltype(i)>;
    check_same_type(values, out);
    check_same_length(indices.size(), out.size());
    nb::gil_scoped_release release;
    return static_cast<int>(thinwire::gather(machine, data<Float>(values), values.size(), data<Index>(indices),
                                             indices.size(), data<Float>(out)));
  });
}

int take_at(const Machine& machine, Write values, Read indices, Write out) {
  return with_both(values, indices, [&](auto* f, auto* i) {
    using Float = Pointee<decltype(f)>;
    using Index = Pointee<decltype(i)>;
    check_same_type(values, out);
    check_same_length(indices.size(), out.size());
    nb::gil_scoped_release release;
    return static_cast<int>(thinwire::take_at(machine, data<Float>(values), values.size(), data<Index>(indices),
                                              indices.size(), data<Float>(out)));
  });
}

int owner_of(const Machine& machine, Read indices, std::size_t owners, std::uint64_t seed, Write out) {
  check_owners(owners);
  check_same_length(indices.size(), out.size());
  return with_index(indices, [&](auto* i) {
    return with_owner(out, [&](auto* o) {
      using Index = Pointee<decltype(i)>;
      using Owner = Pointee<decltype(o)>;
      check_room<Owner>(owners);
      nb::gil_scoped_release release;
      return static_cast<int>(
          thinwire::owner_of(machine, data<Index>(indices), indices.size(), owners, seed, data<Owner>(out)));
    });
  });
}

int place_of(const Machine& machine, Read indices, std::size_t owners, Write out) {
  check_owners(owners);
  check_same_length(indices.size(), out.size());
  check_same_type(indices, out);
  return with_index(indices, [&](auto* i) {
    using Index = Pointee<decltype(i)>;
    nb::gil_scoped_release release;
    return static_cast<int>(thinwire::place_of(machine, data<Index>(indices), indices.size(), owners, data<Index>(out)));
  });
}

int index_at(const Machine& machine, Read places, std::pair<std::size_t, std::size_t> owner_among,
             std::uint64_t seed, Write out) {
  const auto [owner, owners] = owner_among;
  check_owners(owners);
  if (owner >= owners) throw nb::value_error("there is no such owner");
  check_same_length(places.size(), out.size());
  check_same_type(places, out);
  return with_index(places, [&](auto* i) {
    using Index = Pointee<decltype(i)>;
    nb::gil_scoped_release release;
    return static_cast<int>(
        thinwire::index_at(machine, data<Index>(places), places.size(), owner, owners, seed, data<Index>(out)));
  });
}

int multisplit(const Machine& machine, std::pair<Read, Read> entries, Read owner_of_each, std::pair<Write, Write> out,
               nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> counts) {
  auto& [indices, values] = entries;
  auto& [to_indices, to_values] = out;
  check_owners(counts.size());
  check_same_type(indices, to_indices);
  check_same_type(values, to_values);
  for (const std::size_t size : {values.size(), owner_of_each.size(), to_indices.size(), to_values.size()}) {
    check_same_length(indices.size(), size);
  }
  return with_both(values, indices, [&](auto* f, auto* i) {
    return with_owner(owner_of_each, [&](auto* o) {
      using Float = Pointee<decltype(f)>;
      using Index = Pointee<decltype(i)>;
      const Message<Float, Index> message{data<Index>(indices), data<Float>(values), indices.size()};
      nb::gil_scoped_release release;
      return static_cast<int>(thinwire::multisplit(machine, message, data<Pointee<decltype(o)>>(owner_of_each),
                                                   counts.size(), data<Index>(to_indices), data<Float>(to_values),
                                                   counts.data()));
    });
  });
}

}  // namespace

void bind_movement(nb::module_& m) {
  m.def("scatter_add", &scatter_add, nb::arg("machine"), nb::arg("out").noconvert(), nb::arg("indices").noconvert(),
        nb::arg("values").noconvert());
  m.def("scatter_sum", &scatter_sum, nb::arg("machine"), nb::arg("out").noconvert(), nb::arg("indices").noconvert(),
        nb::arg("values").noconvert());
  m.def("scatter_mean", &scatter_mean, nb::arg("machine"), nb::arg("out").noconvert(), nb::arg("indices").noconvert(),
        nb::arg("values").noconvert(), nb::arg("divisor"));
  m.def("merge_sum", &merge_sum, nb::arg("machine"), nb::arg("numel"), nb::arg("indices").noconvert(),
        nb::arg("values").noconvert(), nb::arg("out").noconvert());
  m.def("dense_mean", &dense_mean, nb::arg("machine"), nb::arg("out").noconvert(), nb::arg("tensors").noconvert());
  m.def("gather", &gather, nb::arg("machine"), nb::arg("values").noconvert(), nb::arg("indices").noconvert(),
        nb::arg("out").noconvert());
  m.def("take_at", &take_at, nb::arg("machine"), nb::arg("values").noconvert(), nb::arg("indices").noconvert(),
        nb::arg("out").noconvert());
  m.def("owner_of", &owner_of, nb::arg("machine"), nb::arg("indices").noconvert(), nb::arg("owners"), nb::arg("seed"),
        nb::arg("out").noconvert());
  m.def("place_of", &place_of, nb::arg("machine"), nb::arg("indices").noconvert(), nb::arg("owners"),
        nb::arg("out").noconvert());
  m.def("index_at", &index_at, nb::arg("machine"), nb::arg("places").noconvert(), nb::arg("owner"), nb::arg("seed"),
        nb::arg("out").noconvert());
  m.def("multisplit", &multisplit, nb::arg("machine"), nb::arg("entries").noconvert(),
        nb::arg("owner_of_each").noconvert(), nb::arg("out").noconvert(), nb::arg("counts").noconvert());
}

}  // namespace thinwire::bindings
