// Coordinate sections for Python.

#include "bindings/bind.h"
#include "coordinates/coordinates.h"
#include "core/bits.h"

namespace thinwire::bindings {
namespace {

nb::tuple rice_plan(const Machine& machine, Read indices, std::size_t units) {
  const auto plan = with_index(indices, [&](auto* i) {
    using Index = Pointee<decltype(i)>;
    nb::gil_scoped_release release;
    return thinwire::rice_plan(machine, data<Index>(indices), indices.size(), units);
  });
  return nb::make_tuple(static_cast<int>(plan.status), plan.bits, plan.bytes);
}

int rice_write(const Machine& machine, Read indices, int bits, MutableBytes out) {
  return with_index(indices, [&](auto* i) {
    using Index = Pointee<decltype(i)>;
    nb::gil_scoped_release release;
    return static_cast<int>(
        thinwire::rice_write(machine, data<Index>(indices), indices.size(), bits, out.data(), out.size()));
  });
}

int rice_read(const Machine& machine, Bytes bytes, std::size_t units, Write out) {
  return with_index(out, [&](auto* i) {
    using Index = Pointee<decltype(i)>;
    check_room<Index>(units);
    nb::gil_scoped_release release;
    return static_cast<int>(
        thinwire::rice_read(machine, bytes.data(), bytes.size(), units, data<Index>(out), out.size()));
  });
}

int bitmap_write(const Machine& machine, Read indices, std::size_t units, MutableBytes out) {
  return with_index(indices, [&](auto* i) {
    using Index = Pointee<decltype(i)>;
    nb::gil_scoped_release release;
    return static_cast<int>(
        thinwire::bitmap_write(machine, data<Index>(indices), indices.size(), units, out.data(), out.size()));
  });
}

int bitmap_read(const Machine& machine, Bytes bytes, std::size_t units, Write out) {
  return with_index(out, [&](auto* i) {
    using Index = Pointee<decltype(i)>;
    check_room<Index>(units);
    nb::gil_scoped_release release;
    return static_cast<int>(
        thinwire::bitmap_read(machine, bytes.data(), bytes.size(), units, data<Index>(out), out.size()));
  });
}

int members_write(const Machine& machine, Read indices, Read members, MutableBytes out) {
  return with_index(members, [&](auto* i) {
    using Index = Pointee<decltype(i)>;
    check_same_type(indices, members);
    if (out.size() != bytes_for(members.size())) throw nb::value_error("not the bytes of so many members");
    nb::gil_scoped_release release;
    return static_cast<int>(thinwire::members_write(machine, data<Index>(indices), indices.size(),
                                                    data<Index>(members), members.size(), out.data()));
  });
}

int members_read(const Machine& machine, Bytes bytes, Read members, Write out) {
  return with_index(members, [&](auto* i) {
    using Index = Pointee<decltype(i)>;
    check_same_type(members, out);
    check_room<Index>(members.size());
    nb::gil_scoped_release release;
    return static_cast<int>(thinwire::members_read(machine, bytes.data(), bytes.size(), data<Index>(members),
                                                   members.size(), data<Index>(out), out.size()));
  });
}

}  // namespace

void bind_coordinates(nb::module_& m) {
  m.def("rice_plan", &rice_plan, nb::arg("machine"), nb::arg("indices").noconvert(), nb::arg("units"));
  m.def("rice_write", &rice_write, nb::arg("machine"), nb::arg("indices").noconvert(), nb::arg("bits"),
        nb::arg("out").noconvert());
  m.def("rice_read", &rice_read, nb::arg("machine"), nb::arg("data").noconvert(), nb::arg("units"),
        nb::arg("out").noconvert());
  m.def("bitmap_write", &bitmap_write, nb::arg("machine"), nb::arg("indices").noconvert(), nb::arg("units"),
        nb::arg("out").noconvert());
  m.def("bitmap_read", &bitmap_read, nb::arg("machine"), nb::arg("data").noconvert(), nb::arg("units"),
        nb::arg("out").noconvert());
  m.def("members_write", &members_write, nb::arg("machine"), nb::arg("indices").noconvert(),
        nb::arg("members").noconvert(), nb::arg("out").noconvert());
  m.def("members_read", &members_read, nb::arg("machine"), nb::arg("data").noconvert(),
        nb::arg("members").noconvert(), nb::arg("out").noconvert());
}

}  // namespace thinwire::bindings
