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

}  // namespace

void bind_selection(nb::module_& m) {
  m.def("top_k", &top_k, nb::arg("machine"), nb::arg("values").noconvert(), nb::arg("out").noconvert());
}

}  // namespace thinwire::bindings
