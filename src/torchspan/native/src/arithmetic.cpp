// SPDX-License-Identifier: MIT
// Arithmetic on tensors, element by element, and reductions: by tensors' own methods, as the
// headers of torch's functions take long to compile.
#include <algorithm>

#include "tensor.hpp"

namespace torchspan {
namespace {

// One element with more dimensions than the other tensor would give those to the result.
at::Tensor fit(const at::Tensor& one, const at::Tensor& other) {
  return one.numel() == 1 && one.dim() > other.dim() ? one.reshape({}) : one;
}

void require_fitting(const at::Tensor& left, const at::Tensor& right) {
  const std::int64_t shared = std::min(left.dim(), right.dim());
  for (std::int64_t dim = -1; dim >= -shared; --dim) {
    const std::int64_t one = left.size(dim), other = right.size(dim);
    if (one == other || one == 1 || other == 1) continue;
    fail(TSPAN_ERROR_ARGUMENT, "left has shape ", shape_text(left), " and right ",
         shape_text(right), ", which do not fit. Give two of one shape, or one of one element.");
  }
}

template <class Operator>
tspan_status combine(const tspan_tensor* left, const tspan_tensor* right, tspan_tensor** result,
                     Operator&& apply) {
  return giving(result, "result", [&] {
    const Tensor& one = find_tensor(left, "left");
    const Tensor& other = find_tensor(right, "right");
    require_same_home(one, other, "right");
    const at::Tensor first = fit(one.value, other.value), second = fit(other.value, one.value);
    require_fitting(first, second);
    return give_tensor(apply(first, second), one.home);
  });
}

template <class Operator>
tspan_status change(const tspan_tensor* tensor, tspan_tensor** result, Operator&& apply) {
  return giving(result, "result", [&] {
    const Tensor& from = find_tensor(tensor);
    return give_tensor(apply(from.value), from.home);
  });
}

}  // namespace
}  // namespace torchspan

using namespace torchspan;

tspan_status tspan_tensor_add(const tspan_tensor* left, const tspan_tensor* right,
                              tspan_tensor** result) {
  return combine(left, right, result, [](auto& one, auto& other) { return one.add(other); });
}

tspan_status tspan_tensor_subtract(const tspan_tensor* left, const tspan_tensor* right,
                                   tspan_tensor** result) {
  return combine(left, right, result, [](auto& one, auto& other) {
    if (one.scalar_type() == at::kBool || other.scalar_type() == at::kBool) {
      fail(TSPAN_ERROR_ARGUMENT, "left is ", dtype_name(one), " and right ", dtype_name(other),
           "; bool tensors cannot be subtracted. Convert them with tspan_tensor_to.");
    }
    return one.sub(other);
  });
}

tspan_status tspan_tensor_multiply(const tspan_tensor* left, const tspan_tensor* right,
                                   tspan_tensor** result) {
  return combine(left, right, result, [](auto& one, auto& other) { return one.mul(other); });
}

tspan_status tspan_tensor_divide(const tspan_tensor* left, const tspan_tensor* right,
                                 tspan_tensor** result) {
  return combine(left, right, result, [](auto& one, auto& other) { return one.div(other); });
}

tspan_status tspan_tensor_negate(const tspan_tensor* tensor, tspan_tensor** result) {
  return change(tensor, result, [](auto& value) {
    if (value.scalar_type() == at::kBool) {
      fail(TSPAN_ERROR_ARGUMENT,
           "the tensor is bool, which has no negative. Convert it with "
           "tspan_tensor_to.");
    }
    return value.neg();
  });
}

tspan_status tspan_tensor_power(const tspan_tensor* tensor, double exponent,
                                tspan_tensor** result) {
  return change(tensor, result, [&](auto& value) { return value.pow(exponent); });
}

tspan_status tspan_tensor_power_integer(const tspan_tensor* tensor, int64_t exponent,
                                        tspan_tensor** result) {
  return change(tensor, result, [&](auto& value) {
    if (exponent < 0 && !value.is_floating_point() && !value.is_complex()) {
      fail(TSPAN_ERROR_ARGUMENT, "the exponent is ", exponent, " and the tensor ",
           dtype_name(value), "; integers take exponents of 0 or more. Use tspan_tensor_power.");
    }
    return value.pow(exponent);
  });
}

tspan_status tspan_tensor_sum(const tspan_tensor* tensor, tspan_tensor** result) {
  return change(tensor, result, [](auto& value) { return value.sum(); });
}

tspan_status tspan_tensor_mean(const tspan_tensor* tensor, tspan_tensor** result) {
  return change(tensor, result, [](auto& value) {
    if (!value.is_floating_point() && !value.is_complex()) {
      fail(TSPAN_ERROR_ARGUMENT, "the tensor is ", dtype_name(value),
           ", whose mean is no integer. Convert it with tspan_tensor_to.");
    }
    return value.mean();
  });
}
