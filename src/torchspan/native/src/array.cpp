// SPDX-License-Identifier: MIT
// Check the caller's arrays and copy between strides.
#include "array.hpp"

#include <cstring>

namespace torchspan {
namespace {

constexpr Dtype dtypes[] = {
    {"float32", TSPAN_FLOAT, 32, 6},     {"float64", TSPAN_FLOAT, 64, 7},
    {"int32", TSPAN_INT, 32, 3},         {"int64", TSPAN_INT, 64, 4},
    {"float16", TSPAN_FLOAT, 16, 5},     {"bfloat16", TSPAN_BFLOAT, 16, 15},
    {"bool", TSPAN_BOOL, 8, 11},         {"uint8", TSPAN_UINT, 8, 0},
    {"int8", TSPAN_INT, 8, 1},           {"int16", TSPAN_INT, 16, 2},
    {"uint16", TSPAN_UINT, 16, 27},      {"uint32", TSPAN_UINT, 32, 28},
    {"uint64", TSPAN_UINT, 64, 29},      {"complex32", TSPAN_COMPLEX, 32, 8},
    {"complex64", TSPAN_COMPLEX, 64, 9}, {"complex128", TSPAN_COMPLEX, 128, 10},
};

const Dtype& read_dtype(const tspan_array& array, const Label& label) {
  for (const Dtype& each : dtypes) {
    if (each.kind == array.dtype.kind && each.bits == array.dtype.bits && array.dtype.lanes == 1) {
      return each;
    }
  }
  fail(TSPAN_ERROR_ARGUMENT, label.text(), " has a dtype of kind ", int(array.dtype.kind), ", ",
       int(array.dtype.bits), " bits and ", array.dtype.lanes,
       " lanes, which torch has not. Set kind to a tspan_kind, bits to those of one element and "
       "lanes to 1.");
}

template <class Element>
void copy_row(char* to, std::int64_t to_stride, const char* from, std::int64_t from_stride,
              std::int64_t count) {
  for (std::int64_t index = 0; index < count; ++index) {
    std::memcpy(to + index * to_stride * std::int64_t(sizeof(Element)),
                from + index * from_stride * std::int64_t(sizeof(Element)), sizeof(Element));
  }
}

// Copy from dimension `dim` inwards; from `dense` inwards both are in C order.
void copy_from(const View& to, const View& from, char* target, const char* source, int dim,
               int dense, std::int64_t block) {
  const std::int64_t bytes = to.dtype->bytes();
  if (dim == dense) {
    std::memcpy(target, source, static_cast<std::size_t>(block * bytes));
    return;
  }
  const std::int64_t count = to.sizes[dim], step = to.strides[dim], other = from.strides[dim];
  if (dim == to.ndim - 1) {
    switch (bytes) {
      case 1:
        return copy_row<char>(target, step, source, other, count);
      case 2:
        return copy_row<std::uint16_t>(target, step, source, other, count);
      case 4:
        return copy_row<std::uint32_t>(target, step, source, other, count);
      case 8:
        return copy_row<std::uint64_t>(target, step, source, other, count);
      default:
        return copy_row<std::uint64_t[2]>(target, step, source, other, count);
    }
  }
  for (std::int64_t index = 0; index < count; ++index) {
    copy_from(to, from, target + index * step * bytes, source + index * other * bytes, dim + 1,
              dense, block);
  }
}

}  // namespace

const Dtype* find_dtype(std::string_view name) {
  for (const Dtype& each : dtypes) {
    if (name == each.name) return &each;
  }
  return nullptr;
}

const Dtype* find_dtype(int torch) {
  for (const Dtype& each : dtypes) {
    if (torch == each.torch) return &each;
  }
  return nullptr;
}

std::int64_t View::elements() const {
  std::int64_t product = 1;
  for (int dim = 0; dim < ndim; ++dim) product *= sizes[dim];
  return product;
}

bool View::contiguous() const {
  std::int64_t expected = 1;
  bool dense = true;
  for (int dim = ndim - 1; dim >= 0; --dim) {
    if (sizes[dim] == 0) return true;
    if (sizes[dim] != 1 && strides[dim] != expected) dense = false;
    expected *= sizes[dim];
  }
  return dense;
}

bool View::same_shape(const View& other) const {
  return ndim == other.ndim && std::equal(sizes, sizes + ndim, other.sizes);
}

std::string View::shape_text() const {
  std::string text = "(";
  for (int dim = 0; dim < ndim; ++dim) {
    text += (dim > 0 ? ", " : "") + std::to_string(sizes[dim]);
  }
  return text + (ndim == 1 ? ",)" : ")");
}

void View::set_contiguous() {
  std::int64_t stride = 1;
  for (int dim = ndim - 1; dim >= 0; --dim) {
    strides[dim] = stride;
    stride *= std::max<std::int64_t>(1, sizes[dim]);
  }
}

View View::slice(Rows rows) const {
  View part = *this;
  part.data += rows.start * strides[0] * dtype->bytes();
  part.sizes[0] = rows.count();
  return part;
}

std::string Label::text() const {
  return name != nullptr ? say(role, " '", *name, "'") : say(role, " ", index);
}

void view_array(const tspan_array& array, const Label& label, View& view) {
  if (array.ndim < 0 || array.ndim > most_dimensions) {
    fail(TSPAN_ERROR_ARGUMENT, label.text(), " has ", array.ndim, " dimensions; from 0 to ",
         most_dimensions, " are possible.");
  }
  if (array.ndim > 0 && array.shape == nullptr) {
    fail(TSPAN_ERROR_ARGUMENT, label.text(), " has no shape, which ", array.ndim,
         " dimensions need. Point 'shape' to their sizes.");
  }
  view.dtype = &read_dtype(array, label);
  view.ndim = array.ndim;
  for (int dim = 0; dim < array.ndim; ++dim) {
    view.sizes[dim] = array.shape[dim];
    if (array.shape[dim] < 0) {
      fail(TSPAN_ERROR_ARGUMENT, label.text(), " has size ", array.shape[dim], " in its dimension ",
           dim, "; sizes are 0 or more.");
    }
  }
  if (array.data == nullptr && view.elements() > 0) {
    fail(TSPAN_ERROR_ARGUMENT, label.text(), " has no data: its pointer is NULL.");
  }
  if (array.strides != nullptr) {
    std::copy(array.strides, array.strides + array.ndim, view.strides);
  } else {
    view.set_contiguous();
  }
  view.data = static_cast<char*>(array.data) + array.byte_offset;
}

void copy_elements(const View& to, const View& from) {
  const std::int64_t elements = to.elements();
  if (elements == 0) return;
  int dense = to.ndim;
  std::int64_t block = 1;
  while (dense > 0) {
    const std::int64_t size = to.sizes[dense - 1];
    if (size != 1 && (to.strides[dense - 1] != block || from.strides[dense - 1] != block)) break;
    block *= size;
    --dense;
  }
  copy_from(to, from, to.data, from.data, 0, dense, block);
}

View make_contiguous(const View& view, std::vector<char>& buffer) {
  if (view.contiguous()) return view;
  View copy = view;
  copy.set_contiguous();
  buffer.resize(static_cast<std::size_t>(view.elements() * view.dtype->bytes()));
  copy.data = buffer.data();
  copy_elements(copy, view);
  return copy;
}

}  // namespace torchspan
