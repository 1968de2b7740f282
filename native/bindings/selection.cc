// Selections for Python.

#include "bindings/bind.h"
#include "selection/selection.h"

namespace thinwire::bindings {
namespace {

void top_k(const Machine& machine, Read values, Write out) {
  with_float(values, [&](auto* f) {
    with_index(out, [&](auto* i) {
      using Float = Pointee<decltype(f)>;
      using Index = Pointee<decltype(i)>;
      check_room<Index>(values.size());
      if (out.size() > values.size()) throw nb::value_error("k is larger than the number of values");
      if (out.size() == 0) return;
      nb::gil_scoped_release release;
      thinwire::top_k(machine, data<Float>(values), values.size(), out.size(), data<Index>(out));
    });
  });
}

nb::tuple take_top_k(const Machine& machine, Read owed, Read gradient, Write out, Write indices, Write values) {
  const auto taken = with_float(out, [&](auto* f) {
    return with_index(indices, [&](auto* i) {
      using Float = Pointee<decltype(f)>;
      using Index = Pointee<decltype(i)>;
      for (const Read& each : {owed, gradient}) {
        check_same_type(each, out);
        check_same_length(each.size(), out.size());
      }
      check_same_type(values, out);
      check_same_length(values.size(), indices.size());
      check_room<Index>(out.size());
      if (indices.size() > out.size()) throw nb::value_error("k is larger than the number of values");
      nb::gil_scoped_release release;
      return thinwire::take_top_k(machine, data<Float>(owed), data<Float>(gradient), data<Float>(out), out.size(),
                                  indices.size(), data<Index>(indices), data<Float>(values));
    });
  });
  return nb::make_tuple(taken.energy, taken.count);
}

}  // namespace

void bind_selection(nb::module_& m) {
  m.def("top_k", &top_k, nb::arg("machine"), nb::arg("values").noconvert(), nb::arg("out").noconvert());
  m.def("take_top_k", &take_top_k, nb::arg("machine"), nb::arg("owed").noconvert(), nb::arg("gradient").noconvert(),
        nb::arg("out").noconvert(), nb::arg("indices").noconvert(), nb::arg("values").noconvert());
}

}  // namespace thinwire::bindings
