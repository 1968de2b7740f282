// Selections for Python.

#include "bindings/bind.h"
#include "selection/selection.h"

namespace thinwire::bindings {
namespace {

void top_k(const Machine&, Read values, Write out) {
  with_float(values, [&](auto* f) {
    with_index(out, [&](auto* i) {
      using Float = Pointee<decltype(f)>;
      using Index = Pointee<decltype(i)>;
      check_room<Index>(values.size());
      if (out.size() > values.size()) throw nb::value_error("k is larger than the number of values");
      if (out.size() == 0) return;
      nb::gil_scoped_release release;
      thinwire::top_k(data<Float>(values), values.size(), out.size(), data<Index>(out));
    });
  });
}

std::size_t count_at_least(const Machine&, Read values, double threshold) {
  return with_float(values, [&](auto* f) {
    using Float = Pointee<decltype(f)>;
    nb::gil_scoped_release release;
    return thinwire::count_at_least(data<Float>(values), values.size(), static_cast<Float>(threshold));
  });
}

std::size_t at_least(const Machine&, Read values, double threshold, Write out) {
  return with_float(values, [&](auto* f) {
    return with_index(out, [&](auto* i) {
      using Float = Pointee<decltype(f)>;
      using Index = Pointee<decltype(i)>;
      check_room<Index>(values.size());
      nb::gil_scoped_release release;
      return thinwire::at_least(data<Float>(values), values.size(), static_cast<Float>(threshold),
                                data<Index>(out), out.size());
    });
  });
}

}  // namespace

void bind_selection(nb::module_& m) {
  m.def("top_k", &top_k, nb::arg("machine"), nb::arg("values").noconvert(), nb::arg("out").noconvert());
  m.def("count_at_least", &count_at_least, nb::arg("machine"), nb::arg("values").noconvert(), nb::arg("threshold"));
  m.def("at_least", &at_least, nb::arg("machine"), nb::arg("values").noconvert(), nb::arg("threshold"),
        nb::arg("out").noconvert());
}

}  // namespace thinwire::bindings
