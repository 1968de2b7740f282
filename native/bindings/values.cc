// Values for Python.

#include "values/values.h"

#include "bindings/bind.h"
#include "core/bits.h"

namespace thinwire::bindings {
namespace {

ValueFormat checked(const Machine& machine, int format, std::size_t values, std::size_t bytes) {
  const auto known = static_cast<ValueFormat>(format);
  const std::size_t each = value_bytes(machine, known);
  if (each == 0) throw nb::value_error("this format is not packed on this machine");
  if (bytes % each != 0 || bytes / each != values) throw nb::value_error("the bytes are not those of the values");
  return known;
}

void check_codes(std::size_t values, int count, std::size_t bytes) {
  if (count != 2 && count != kMostLevels) throw nb::value_error("2 or 8 levels");
  const std::size_t each = count == 2 ? 4 : 2;
  if (bytes != values / each + (values % each != 0)) throw nb::value_error("the bytes are not those of the values");
}

void pack_values(const Machine& machine, Read values, int format, double scale, MutableBytes out) {
  const ValueFormat known = checked(machine, format, values.size(), out.size());
  if (known == ValueFormat::kF32 || known == ValueFormat::kF64) throw nb::value_error("a float needs no packing");
  with_float(values, [&](auto* f) {
    using Float = Pointee<decltype(f)>;
    nb::gil_scoped_release release;
    thinwire::pack_values(machine, data<Float>(values), values.size(), known, static_cast<Float>(scale), out.data());
  });
}

bool unpack_values(const Machine& machine, Bytes bytes, int format, double scale, Write out) {
  const ValueFormat known = checked(machine, format, out.size(), bytes.size());
  return with_float(out, [&](auto* f) {
    using Float = Pointee<decltype(f)>;
    nb::gil_scoped_release release;
    return thinwire::unpack_values(machine, bytes.data(), out.size(), known, static_cast<Float>(scale),
                                   data<Float>(out));
  });
}

void pack_levels(const Machine& machine, Read values, Read bounds, MutableBytes out) {
  const int count = static_cast<int>(bounds.size()) + 1;
  check_codes(values.size(), count, out.size());
  check_same_type(values, bounds);
  with_float(values, [&](auto* f) {
    using Float = Pointee<decltype(f)>;
    nb::gil_scoped_release release;
    thinwire::pack_levels(machine, data<Float>(values), values.size(), data<Float>(bounds), count, out.data());
  });
}

void unpack_levels(const Machine&, Bytes bytes, Read levels, Write out) {
  const int count = static_cast<int>(levels.size());
  check_codes(out.size(), count, bytes.size());
  check_same_type(out, levels);
  with_float(out, [&](auto* f) {
    using Float = Pointee<decltype(f)>;
    nb::gil_scoped_release release;
    thinwire::unpack_levels(bytes.data(), out.size(), data<Float>(levels), count, data<Float>(out));
  });
}

std::uint32_t crc32(const Machine& machine, Bytes bytes, std::uint32_t before) {
  nb::gil_scoped_release release;
  return thinwire::crc32(machine, bytes.data(), bytes.size(), before);
}

}  // namespace

void bind_values(nb::module_& m) {
  m.def("pack_values", &pack_values, nb::arg("machine"), nb::arg("values").noconvert(), nb::arg("format"),
        nb::arg("scale"), nb::arg("out").noconvert());
  m.def("unpack_values", &unpack_values, nb::arg("machine"), nb::arg("data").noconvert(), nb::arg("format"),
        nb::arg("scale"), nb::arg("out").noconvert());
  m.def("pack_levels", &pack_levels, nb::arg("machine"), nb::arg("values").noconvert(), nb::arg("bounds").noconvert(),
        nb::arg("out").noconvert());
  m.def("unpack_levels", &unpack_levels, nb::arg("machine"), nb::arg("data").noconvert(),
        nb::arg("levels").noconvert(), nb::arg("out").noconvert());
  m.def("crc32", &crc32, nb::arg("machine"), nb::arg("data").noconvert(), nb::arg("before"));
}

}  // namespace thinwire::bindings
