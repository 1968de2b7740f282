// The extension module thinwire._native.

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bindings/bind.h"
#include "core/pool.h"

namespace thinwire::bindings {

void bind_machine(nb::module_& m) {
  m.def("instruction_sets", [] {
    std::vector<std::string> names;
    for (const Isa isa : usable_isas()) names.emplace_back(name_of(isa));
    return names;
  });
  nb::class_<Machine>(m, "Machine")
      .def("__init__",
           [](Machine* self, const std::string& name, int threads) {
             if (threads < 1 || threads > kMostThreads) throw nb::value_error("threads: 1 to 64");
             const auto isas = usable_isas();
             const auto found = std::find_if(isas.begin(), isas.end(), [&](Isa isa) { return name_of(isa) == name; });
             if (found == isas.end()) throw nb::value_error("this processor has no such instruction set");
             new (self) Machine{*found, threads};
           })
      .def_prop_ro("isa", [](const Machine& self) { return std::string(name_of(self.isa)); })
      .def_prop_ro("threads", [](const Machine& self) { return self.threads; });
}

}  // namespace thinwire::bindings

NB_MODULE(_native, m) {
  // The kernels in use live as long as the interpreter, which frees nothing at its end.
  nanobind::set_leak_warnings(false);
  m.doc() = "thinwire's native kernels, for use through thinwire.kernels.";
  thinwire::bindings::bind_machine(m);
  thinwire::bindings::bind_selection(m);
  thinwire::bindings::bind_statistics(m);
  thinwire::bindings::bind_movement(m);
  thinwire::bindings::bind_coordinates(m);
  thinwire::bindings::bind_values(m);
}
