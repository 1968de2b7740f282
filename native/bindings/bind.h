// What all bindings share. Tensors arrive through DLPack without a copy; the GIL is free while a kernel runs.
//
// Everything a kernel takes on trust is checked in the bindings: dtypes, lengths, and that counts and thresholds make
// sense. Whether an argument is a tensor that fits at all is decided in Python (src/thinwire/kernels/native/base.py).
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <type_traits>
#include <utility>

#include "core/machine.h"

namespace thinwire::bindings {

namespace nb = nanobind;

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

// The type that a null pointer from `with_float` or `with_index` points to.
template <class Pointer>
using Pointee = std::remove_pointer_t<Pointer>;

// Every index below n must fit into the index type.
template <class Index>
void check_room(std::size_t n) {
  if (n > 0 && !std::in_range<Index>(n - 1)) throw nb::value_error("the index type is too narrow");
}

inline void check_same_length(std::size_t a, std::size_t b) {
  if (a != b) throw nb::value_error("two of the tensors differ in length");
}

template <class A, class B>
void check_same_type(const A& a, const B& b) {
  if (a.dtype() != b.dtype()) throw nb::type_error("two of the tensors differ in type");
}

// One function for each family of kernels, in the file of its name.
void bind_machine(nb::module_& m);
void bind_selection(nb::module_& m);
void bind_statistics(nb::module_& m);
void bind_movement(nb::module_& m);
void bind_coordinates(nb::module_& m);
void bind_values(nb::module_& m);

}  // namespace thinwire::bindings
