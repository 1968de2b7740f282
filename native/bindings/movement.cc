// Movement of values for Python.

#include "bindings/bind.h"
#include "movement/movement.h"

namespace thinwire::bindings {
namespace {

int scatter_add(const Machine&, Write out, Read indices, Read values) {
  return with_float(out, [&](auto* f) {
    return with_index(indices, [&](auto* i) {
      using Float = Pointee<decltype(f)>;
      using Index = Pointee<decltype(i)>;
      check_same_type(values, out);
      check_same_length(values.size(), indices.size());
      nb::gil_scoped_release release;
      return static_cast<int>(thinwire::scatter_add(data<Float>(out), out.size(), data<Index>(indices),
                                                    data<Float>(values), indices.size()));
    });
  });
}

}  // namespace

void bind_movement(nb::module_& m) {
  m.def("scatter_add", &scatter_add, nb::arg("machine"), nb::arg("out").noconvert(), nb::arg("indices").noconvert(),
        nb::arg("values").noconvert());
}

}  // namespace thinwire::bindings
