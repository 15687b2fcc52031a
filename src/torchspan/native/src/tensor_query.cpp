// SPDX-License-Identifier: MIT
// What tensors are: shape, dtype, device, values.
#include <ATen/core/Formatting.h>

#include <cstring>
#include <sstream>

#include "tensor.hpp"

namespace torchspan {
namespace {

// DLPack's number of the device that a tensor's memory is on.
std::int32_t memory_type(const at::Device& device) {
  switch (device.type()) {
    case at::kCPU:
      return 1;
    case at::kCUDA:
#ifdef TORCHSPAN_ROCM
      return 10;
#else
      return 2;
#endif
    case at::kHIP:
      return 10;
    case at::kMPS:
      return 8;
    case at::kXPU:
      return 14;
    default:
      fail(TSPAN_ERROR_DEVICE, "memory on ", device.str(), " has no form in C.");
  }
}

const Dtype& known_dtype(const at::Tensor& tensor) {
  const Dtype* dtype = find_dtype(static_cast<int>(tensor.scalar_type()));
  if (dtype == nullptr || tensor.layout() != at::kStrided) {
    fail(TSPAN_ERROR_ARGUMENT, "the tensor is of a kind that has no form in C: ", tensor.toString(),
         ".");
  }
  return *dtype;
}

}  // namespace

std::string shape_text(const at::Tensor& tensor) {
  std::string text = "(";
  for (const std::int64_t size : tensor.sizes()) {
    text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  }
  return text + (tensor.dim() == 1 ? ",)" : ")");
}

const char* dtype_name(const at::Tensor& tensor) {
  const Dtype* dtype = find_dtype(static_cast<int>(tensor.scalar_type()));
  return dtype == nullptr ? c10::toString(tensor.scalar_type()) : dtype->name;
}

at::ScalarType find_scalar_type(const char* dtype) {
  require(dtype, "dtype");
  const Dtype* found = find_dtype(dtype);
  if (found == nullptr) {
    fail(TSPAN_ERROR_ARGUMENT, "there is no dtype '", dtype,
         "'. Give one such as 'float32', 'float64', 'int32' or 'bool'.");
  }
  return static_cast<at::ScalarType>(found->torch);
}

void require_same_home(const Tensor& one, const Tensor& other, const char* what) {
  if (one.home == other.home) return;
  fail(TSPAN_ERROR_ARGUMENT, what, " is on ", other.home.name(), "; the other tensor is on ",
       one.home.name(), ". Move one of them with tspan_tensor_to.");
}

bool read_flag(int flag, const char* what) {
  if (flag != 0 && flag != 1) {
    fail(TSPAN_ERROR_ARGUMENT, what, " is ", flag, "; it is 0 or 1.");
  }
  return flag == 1;
}

void require_differentiable(const at::Tensor& tensor) {
  if (is_differentiable(tensor)) return;
  fail(TSPAN_ERROR_ARGUMENT, "a tensor of ", dtype_name(tensor),
       " has no gradients; real and complex ones do.");
}

const char* keep_text(std::string&& text) {
  thread_local std::string kept;
  kept = std::move(text);
  return kept.c_str();
}

std::string print_tensor(const at::Tensor& tensor) {
  std::ostringstream text;
  at::print(text, tensor.detach(), 80);
  return text.str();
}

}  // namespace torchspan

using namespace torchspan;

tspan_status tspan_tensor_view(const tspan_tensor* tensor, tspan_array* array) {
  return guarded([&] {
    require(array, "array");
    const at::Tensor& value = find_tensor(tensor).value;
    const Dtype& dtype = known_dtype(value);
    if (value.is_conj() || value.is_neg()) {
      fail(TSPAN_ERROR_ARGUMENT,
           "the tensor is a conjugate that is not computed yet. View a clone of it.");
    }
    *array = {};
    array->data = value.data_ptr();
    array->device.type = memory_type(value.device());
    array->device.index = value.is_cpu() ? 0 : value.device().index();
    array->ndim = static_cast<std::int32_t>(value.dim());
    array->dtype = {dtype.kind, dtype.bits, 1};
    array->shape = value.sizes().data();
    array->strides = value.strides().data();
  });
}

tspan_status tspan_tensor_dtype(const tspan_tensor* tensor, const char** dtype) {
  return guarded([&] {
    require(dtype, "dtype");
    *dtype = known_dtype(find_tensor(tensor).value).name;
  });
}

tspan_status tspan_tensor_device(const tspan_tensor* tensor, tspan_device* device) {
  return guarded([&] {
    require(device, "device");
    const Home& home = find_tensor(tensor).home;
    *device = {};
    std::strncpy(device->name, home.name().c_str(), sizeof device->name - 1);
    std::strncpy(device->backing, home.backing.str().c_str(), sizeof device->backing - 1);
  });
}

tspan_status tspan_tensor_requires_grad(const tspan_tensor* tensor, int* requires_grad) {
  return guarded([&] {
    require(requires_grad, "requires_grad");
    *requires_grad = find_tensor(tensor).value.requires_grad() ? 1 : 0;
  });
}

tspan_status tspan_tensor_value(const tspan_tensor* tensor, double* value) {
  return guarded([&] {
    require(value, "value");
    const at::Tensor& from = find_tensor(tensor).value;
    if (from.numel() != 1 || from.is_complex()) {
      fail(TSPAN_ERROR_ARGUMENT, "the tensor has dtype ", dtype_name(from), " and shape ",
           shape_text(from), "; one real element has a value.");
    }
    *value = from.item().toDouble();
  });
}

tspan_status tspan_tensor_text(const tspan_tensor* tensor, const char** text) {
  return guarded([&] {
    require(text, "text");
    *text = keep_text(print_tensor(find_tensor(tensor).value));
  });
}
