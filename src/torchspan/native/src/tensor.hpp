// SPDX-License-Identifier: MIT
// Tensors as C holds them: torch's own, and the device by the name that users know it by.
#pragma once

#pragma GCC visibility push(default)
#include "torchspan_tensor.h"
#pragma GCC visibility pop

#include <ATen/core/Tensor.h>

#include <span>
#include <string>
#include <string_view>

#include "array.hpp"
#include "handles.hpp"

namespace torchspan {

// A tensor's device: where torch has it, and as what, which differ for pretended and virtual ones.
struct Home {
  at::Device backing = at::kCPU;
  std::int8_t kind = 0, index = 0;

  std::string name() const;
  bool operator==(const Home& other) const { return kind == other.kind && index == other.index; }
};

// The one device that a text names; NULL is the CPU.
Home find_home(const char* device);

struct Tensor {
  at::Tensor value;
  Home home;
};

// Find the tensor of a handle, which `what` names in errors; give a tensor to C.
Tensor& find_tensor(const tspan_tensor* handle, const char* what = "tensor");
tspan_tensor* give_tensor(at::Tensor value, const Home& home);

// The handles of a call's inputs or outputs, as tensors.
std::vector<Tensor*> find_tensors(const tspan_tensor* const* handles, std::size_t count,
                                  const char* what);

// "(2, 3)" and "float32", as errors say them.
std::string shape_text(const at::Tensor& tensor);
const char* dtype_name(const at::Tensor& tensor);
// The dtype of a name.
at::ScalarType find_scalar_type(const char* dtype);

// Check that an array makes sense as a tensor; `home` is where its memory is.
View view_memory(const tspan_array& array, Home& home);

void require_same_home(const Tensor& one, const Tensor& other, const char* what);
// Check a flag, which C gives as 0 or 1.
bool read_flag(int flag, const char* what);
// Whether gradients can be had of a tensor's dtype, and a check that they can.
inline bool is_differentiable(const at::Tensor& tensor) {
  return tensor.is_floating_point() || tensor.is_complex();
}
void require_differentiable(const at::Tensor& tensor);

// Write values, and where `tracked` the graph, into a target of the same shape.
void write_tensor(const at::Tensor& source, Tensor& target, bool tracked, bool non_blocking);
// The same without a graph, by the shortest way.
void write_values(const at::Tensor& source, Tensor& target);
void require_same_kind(const Tensor& source, const Tensor& target);
void require_same_shape(const at::Tensor& source, const at::Tensor& target);

// Keep a text for C, this thread's until the next one.
const char* keep_text(std::string&& text);
std::string print_tensor(const at::Tensor& tensor);

// Run the body of a C entry point with a result, which is NULL where the body throws.
template <class Result, class Body>
tspan_status giving(Result** result, const char* what, Body&& body) noexcept {
  return guarded([&] {
    require(result, what);
    *result = nullptr;
    *result = body();
  });
}

}  // namespace torchspan
