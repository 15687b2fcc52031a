// SPDX-License-Identifier: MIT
// The caller's arrays, checked once and then seen as plain strided memory; torch is not needed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "split.hpp"
#include "status.hpp"

namespace torchspan {

inline constexpr int most_dimensions = 16;

// A kind of element; one table holds all, so that two are the same if their addresses are.
struct Dtype {
  const char* name;
  std::uint8_t kind, bits;
  std::int8_t torch;  // torch's ScalarType

  std::int64_t bytes() const { return bits / 8; }
};

// The dtype of a name or of torch's number; null where there is none.
const Dtype* find_dtype(std::string_view name);
const Dtype* find_dtype(int torch);

// Where memory lies: torch's DeviceType as a number, which is 0 for the host, and an index.
struct Place {
  std::int8_t type = 0, index = 0;

  bool on_host() const { return type == 0; }
  bool operator==(const Place&) const = default;
};

// Strided memory, not owned.
struct View {
  char* data = nullptr;
  const Dtype* dtype = nullptr;
  int ndim = 0;
  Place place;
  std::int64_t sizes[most_dimensions];
  std::int64_t strides[most_dimensions];  // in elements

  std::int64_t elements() const;
  std::int64_t bytes() const { return elements() * dtype->bytes(); }
  bool contiguous() const;
  bool same_shape(const View& other) const;
  std::string shape_text() const;

  // Give it the strides of an array in C order.
  void set_contiguous();
  // The same memory, rows of the first dimension only.
  View slice(Rows rows) const;
};

// What an array is called in errors: "input 'x'", or "input 1" where names are not known.
struct Label {
  const char* role;
  std::size_t index;
  const std::string* name = nullptr;

  std::string text() const;
};

// See an array of the caller's, whose place is another question; throws an argument error that
// names it where it makes no sense.
void view_array(const tspan_array& array, const Label& label, View& view);

// Copy elements between two views of the same shape and dtype in the host's memory.
void copy_elements(const View& to, const View& from);

// The same values in C order: the view itself, or a copy in `buffer`, which is kept and grows.
View make_contiguous(const View& view, std::vector<char>& buffer);

}  // namespace torchspan
