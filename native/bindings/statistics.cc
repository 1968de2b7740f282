// Statistics, and the selections that follow from them, for Python.

#include <nanobind/stl/tuple.h>

#include <tuple>

#include "bindings/bind.h"
#include "selection/statistics.h"

namespace thinwire::bindings {
namespace {

// Lists of places are written in 32 bits for each of at most 64 parts.
constexpr std::size_t kMostPlaces = std::size_t{1} << 37;

double energy(const Machine& machine, Read values) {
  return with_float(values, [&](auto* f) {
    using Float = Pointee<decltype(f)>;
    nb::gil_scoped_release release;
    return thinwire::energy(machine, data<Float>(values), values.size());
  });
}

std::tuple<double, double, double, double> moments(const Machine& machine, Read values) {
  return with_float(values, [&](auto* f) {
    using Float = Pointee<decltype(f)>;
    nb::gil_scoped_release release;
    const auto found = thinwire::moments(machine, data<Float>(values), values.size());
    return std::make_tuple(found.sum, found.sum_of_magnitudes, found.sum_of_squares, found.largest);
  });
}

void strength(const Machine& machine, Read values, std::size_t width, Write out) {
  if (out.dtype() != nb::dtype<double>()) throw nb::type_error("norms are float64");
  if (width == 0) throw nb::value_error("units have at least one element");
  check_same_length(out.size(), values.size() / width + (values.size() % width != 0));
  with_float(values, [&](auto* f) {
    using Float = Pointee<decltype(f)>;
    nb::gil_scoped_release release;
    thinwire::strength(machine, data<Float>(values), values.size(), width, data<double>(out));
  });
}

std::size_t count_at_least(const Machine& machine, Read values, double threshold) {
  return with_float(values, [&](auto* f) {
    using Float = Pointee<decltype(f)>;
    nb::gil_scoped_release release;
    return thinwire::count_at_least(machine, data<Float>(values), values.size(), static_cast<Float>(threshold));
  });
}

// Looks with `find(at_least)`, then writes into the tensor that `allocate(count)` makes.
template <class Find>
void write_places(std::size_t n, const nb::callable& allocate, Find find) {
  if (n > kMostPlaces) throw nb::value_error("too many values");
  AtLeast places;
  std::size_t count;
  {
    nb::gil_scoped_release release;
    count = find(places);
  }
  Write out = nb::cast<Write>(allocate(count));
  check_same_length(out.size(), count);
  with_index(out, [&](auto* i) {
    using Index = Pointee<decltype(i)>;
    check_room<Index>(n);
    nb::gil_scoped_release release;
    places.write(data<Index>(out));
  });
}

void at_least(const Machine& machine, Read values, double threshold, nb::callable allocate) {
  with_float(values, [&](auto* f) {
    using Float = Pointee<decltype(f)>;
    write_places(values.size(), allocate, [&](AtLeast& places) {
      return places.find(machine, data<Float>(values), values.size(), static_cast<Float>(threshold));
    });
  });
}

void importance_at_least(const Machine& machine, Read values, Read weights, double epsilon, double threshold,
                         nb::callable allocate) {
  check_same_length(values.size(), weights.size());
  check_same_type(values, weights);
  with_float(values, [&](auto* f) {
    using Float = Pointee<decltype(f)>;
    write_places(values.size(), allocate, [&](AtLeast& places) {
      return places.find(machine, data<Float>(values), data<Float>(weights), values.size(),
                         static_cast<Float>(epsilon), static_cast<Float>(threshold));
    });
  });
}

void importance(const Machine& machine, Read values, Read weights, double epsilon, Write out) {
  check_same_length(values.size(), weights.size());
  check_same_type(values, weights);
  with_float(values, [&](auto* f) {
    with_index(out, [&](auto* i) {
      using Float = Pointee<decltype(f)>;
      using Index = Pointee<decltype(i)>;
      check_room<Index>(values.size());
      if (out.size() > values.size()) throw nb::value_error("k is larger than the number of values");
      if (out.size() == 0) return;
      nb::gil_scoped_release release;
      thinwire::importance(machine, data<Float>(values), data<Float>(weights), values.size(),
                           static_cast<Float>(epsilon), out.size(), data<Index>(out));
    });
  });
}

const std::int64_t* whole_numbers(const Read& array) {
  if (array.dtype() != nb::dtype<std::int64_t>()) throw nb::type_error("expected int64");
  return static_cast<const std::int64_t*>(array.data());
}

void top_k_segments(const Machine& machine, Read values, Read bounds, Read counts, Write out) {
  const std::int64_t *const edges = whole_numbers(bounds), *const wanted = whole_numbers(counts);
  const std::size_t segments = counts.size();
  check_same_length(bounds.size(), segments + 1);
  std::size_t total = 0;
  for (std::size_t s = 0; s < segments; ++s) {
    const bool inside = 0 <= edges[s] && edges[s] <= edges[s + 1] && std::cmp_less_equal(edges[s + 1], values.size());
    if (!inside || wanted[s] < 0 || wanted[s] > edges[s + 1] - edges[s]) {
      throw nb::value_error("segments lie one behind the other, and counts fit into them");
    }
    total += static_cast<std::size_t>(wanted[s]);
  }
  check_same_length(total, out.size());
  with_float(values, [&](auto* f) {
    with_index(out, [&](auto* i) {
      using Float = Pointee<decltype(f)>;
      using Index = Pointee<decltype(i)>;
      check_room<Index>(values.size());
      nb::gil_scoped_release release;
      thinwire::top_k_segments(machine, data<Float>(values), edges, wanted, segments, data<Index>(out));
    });
  });
}

double spectrum(const Machine& machine, Read values, Read ranks, Write thresholds, Write energies) {
  const std::int64_t* const wanted = whole_numbers(ranks);
  check_same_length(ranks.size(), thresholds.size());
  check_same_length(ranks.size(), energies.size());
  check_same_type(values, thresholds);
  if (energies.dtype() != nb::dtype<double>()) throw nb::type_error("energies are float64");
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (wanted[i] < (i == 0 ? 1 : wanted[i - 1]) || std::cmp_greater(wanted[i], values.size())) {
      throw nb::value_error("ranks do not decrease, from 1 to the number of values");
    }
  }
  return with_float(values, [&](auto* f) {
    using Float = Pointee<decltype(f)>;
    nb::gil_scoped_release release;
    return thinwire::spectrum(machine, data<Float>(values), values.size(), wanted, ranks.size(),
                              data<Float>(thresholds), data<double>(energies));
  });
}

std::size_t sample(const Machine&, Read values, std::size_t stride, std::uint64_t seed, Write out) {
  check_same_type(values, out);
  if (stride == 0 || stride >> 32 != 0) throw nb::value_error("strides are below 2^32");
  check_same_length(out.size(), values.size() / stride + (values.size() % stride != 0));
  return with_float(values, [&](auto* f) {
    using Float = Pointee<decltype(f)>;
    nb::gil_scoped_release release;
    return thinwire::sample(data<Float>(values), values.size(), stride, seed, data<Float>(out));
  });
}

}  // namespace

void bind_statistics(nb::module_& m) {
  const auto machine = nb::arg("machine");
  const auto values = nb::arg("values").noconvert();
  const auto weights = nb::arg("weights").noconvert();
  const auto out = nb::arg("out").noconvert();
  m.def("energy", &energy, machine, values);
  m.def("moments", &moments, machine, values);
  m.def("strength", &strength, machine, values, nb::arg("width"), out);
  m.def("count_at_least", &count_at_least, machine, values, nb::arg("threshold"));
  m.def("at_least", &at_least, machine, values, nb::arg("threshold"), nb::arg("allocate"));
  m.def("importance_at_least", &importance_at_least, machine, values, weights, nb::arg("epsilon"),
        nb::arg("threshold"), nb::arg("allocate"));
  m.def("importance", &importance, machine, values, weights, nb::arg("epsilon"), out);
  m.def("top_k_segments", &top_k_segments, machine, values, nb::arg("bounds").noconvert(),
        nb::arg("counts").noconvert(), out);
  m.def("spectrum", &spectrum, machine, values, nb::arg("ranks").noconvert(), nb::arg("thresholds").noconvert(),
        nb::arg("energies").noconvert());
  m.def("sample", &sample, machine, values, nb::arg("stride"), nb::arg("seed"), out);
}

}  // namespace thinwire::bindings
