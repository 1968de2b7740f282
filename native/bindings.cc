// Python's view of the kernels. Tensors arrive through DLPack without a copy; the GIL is free while a kernel runs.
//
// Everything a kernel takes on trust is checked here: dtypes, lengths, and that k and the thresholds make sense.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <utility>

#include "kernels.h"

namespace nb = nanobind;

namespace {

using Read = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Write = nb::ndarray<nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Bytes = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using MutableBytes = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Calls `body` with a null pointer of the array's type, to be looked at by decltype only.
template <class Array, class Body>
decltype(auto) with_float(const Array& array, Body body) {
  if (array.dtype() == nb::dtype<float>()) return body(static_cast<float*>(nullptr));
  if (array.dtype() == nb::dtype<double>()) return body(static_cast<double*>(nullptr));
  throw nb::type_error("expected float32 or float64");
}

template <class Array, class Body>
decltype(auto) with_index(const Array& array, Body body) {
  if (array.dtype() == nb::dtype<std::int32_t>()) return body(static_cast<std::int32_t*>(nullptr));
  if (array.dtype() == nb::dtype<std::int64_t>()) return body(static_cast<std::int64_t*>(nullptr));
  throw nb::type_error("expected int32 or int64");
}

template <class Type, class Array>
auto* data(Array& array) {
  using Element = std::conditional_t<std::is_same_v<Array, Read>, const Type, Type>;
  return static_cast<Element*>(array.data());
}

// Every index below n must fit into the index type.
template <class Index>
void check_room(std::size_t n) {
  if (n > 0 && !std::in_range<Index>(n - 1)) throw nb::value_error("the index type is too narrow");
}

void top_k(Read values, Write out) {
  with_float(values, [&](auto* f) {
    with_index(out, [&](auto* i) {
      using Float = std::remove_pointer_t<decltype(f)>;
      using Index = std::remove_pointer_t<decltype(i)>;
      check_room<Index>(values.size());
      if (out.size() > values.size()) throw nb::value_error("k is larger than the number of values");
      if (out.size() == 0) return;
      nb::gil_scoped_release release;
      thinwire::top_k(data<Float>(values), values.size(), out.size(), data<Index>(out));
    });
  });
}

std::size_t count_at_least(Read values, double threshold) {
  return with_float(values, [&](auto* f) {
    using Float = std::remove_pointer_t<decltype(f)>;
    nb::gil_scoped_release release;
    return thinwire::count_at_least(data<Float>(values), values.size(), static_cast<Float>(threshold));
  });
}

std::size_t at_least(Read values, double threshold, Write out) {
  return with_float(values, [&](auto* f) {
    return with_index(out, [&](auto* i) {
      using Float = std::remove_pointer_t<decltype(f)>;
      using Index = std::remove_pointer_t<decltype(i)>;
      check_room<Index>(values.size());
      nb::gil_scoped_release release;
      return thinwire::at_least(data<Float>(values), values.size(), static_cast<Float>(threshold),
                                data<Index>(out), out.size());
    });
  });
}

int scatter_add(Write out, Read indices, Read values) {
  return with_float(out, [&](auto* f) {
    return with_index(indices, [&](auto* i) {
      using Float = std::remove_pointer_t<decltype(f)>;
      using Index = std::remove_pointer_t<decltype(i)>;
      if (values.dtype() != out.dtype()) throw nb::type_error("values and out differ in type");
      if (values.size() != indices.size()) throw nb::value_error("values and indices differ in length");
      nb::gil_scoped_release release;
      return static_cast<int>(thinwire::scatter_add(data<Float>(out), out.size(), data<Index>(indices),
                                                    data<Float>(values), indices.size()));
    });
  });
}

nb::tuple rice_plan(Read indices, std::size_t units) {
  const auto plan = with_index(indices, [&](auto* i) {
    using Index = std::remove_pointer_t<decltype(i)>;
    nb::gil_scoped_release release;
    return thinwire::rice_plan(data<Index>(indices), indices.size(), units);
  });
  return nb::make_tuple(static_cast<int>(plan.status), plan.bits, plan.bytes);
}

int rice_write(Read indices, int bits, MutableBytes out) {
  return with_index(indices, [&](auto* i) {
    using Index = std::remove_pointer_t<decltype(i)>;
    nb::gil_scoped_release release;
    return static_cast<int>(
        thinwire::rice_write(data<Index>(indices), indices.size(), bits, out.data(), out.size()));
  });
}

int rice_read(Bytes bytes, std::size_t units, Write out) {
  return with_index(out, [&](auto* i) {
    using Index = std::remove_pointer_t<decltype(i)>;
    check_room<Index>(units);
    nb::gil_scoped_release release;
    return static_cast<int>(
        thinwire::rice_read(bytes.data(), bytes.size(), units, data<Index>(out), out.size()));
  });
}

int bitmap_write(Read indices, std::size_t units, MutableBytes out) {
  return with_index(indices, [&](auto* i) {
    using Index = std::remove_pointer_t<decltype(i)>;
    nb::gil_scoped_release release;
    return static_cast<int>(
        thinwire::bitmap_write(data<Index>(indices), indices.size(), units, out.data(), out.size()));
  });
}

int bitmap_read(Bytes bytes, std::size_t units, Write out) {
  return with_index(out, [&](auto* i) {
    using Index = std::remove_pointer_t<decltype(i)>;
    check_room<Index>(units);
    nb::gil_scoped_release release;
    return static_cast<int>(
        thinwire::bitmap_read(bytes.data(), bytes.size(), units, data<Index>(out), out.size()));
  });
}

}  // namespace

NB_MODULE(_native, m) {
  m.doc() = "thinwire's native kernels, for use through thinwire.kernels.native.";
  m.def("top_k", &top_k, nb::arg("values").noconvert(), nb::arg("out").noconvert());
  m.def("count_at_least", &count_at_least, nb::arg("values").noconvert(), nb::arg("threshold"));
  m.def("at_least", &at_least, nb::arg("values").noconvert(), nb::arg("threshold"), nb::arg("out").noconvert());
  m.def("scatter_add", &scatter_add, nb::arg("out").noconvert(), nb::arg("indices").noconvert(),
        nb::arg("values").noconvert());
  m.def("rice_plan", &rice_plan, nb::arg("indices").noconvert(), nb::arg("units"));
  m.def("rice_write", &rice_write, nb::arg("indices").noconvert(), nb::arg("bits"), nb::arg("out").noconvert());
  m.def("rice_read", &rice_read, nb::arg("data").noconvert(), nb::arg("units"), nb::arg("out").noconvert());
  m.def("bitmap_write", &bitmap_write, nb::arg("indices").noconvert(), nb::arg("units"),
        nb::arg("out").noconvert());
  m.def("bitmap_read", &bitmap_read, nb::arg("data").noconvert(), nb::arg("units"), nb::arg("out").noconvert());
}
