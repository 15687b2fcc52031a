// SPDX-License-Identifier: MIT
// Differentiate: backward, and the gradients that it leaves.
#include <c10/core/GradMode.h>

#include <optional>

#include "tensor.hpp"

namespace torchspan {
namespace {

void require_external(const Tensor& tensor, const tspan_tensor* external) {
  const at::Tensor& value = tensor.value;
  if (external == nullptr) {
    if (value.numel() == 1) return;
    fail(TSPAN_ERROR_ARGUMENT, "the tensor has shape ", shape_text(value),
         "; a backward starts from one element, or takes an external gradient of that shape. Give "
         "one, or take the sum or mean first.");
  }
  const Tensor& given = find_tensor(external, "external");
  require_same_home(tensor, given, "external");
  const bool same_shape =
      given.value.sizes() == value.sizes() || (given.value.numel() == 1 && value.numel() == 1);
  if (same_shape && given.value.scalar_type() == value.scalar_type()) return;
  fail(TSPAN_ERROR_ARGUMENT, "external is ", dtype_name(given.value), " ", shape_text(given.value),
       "; the tensor is ", dtype_name(value), " ", shape_text(value),
       ". Give an external gradient of that dtype and shape.");
}

void run_backward(const at::Tensor& tensor, const at::Tensor& external, bool retain) {
  try {
    tensor.backward(external, retain);
  } catch (const std::exception& error) {
    const std::string_view text = error.what();
    if (text.find("backward through the graph a second time") != text.npos) {
      fail(TSPAN_ERROR_ARGUMENT,
           "the tensor's graph was released by an earlier backward. Give retain_graph 1 to all but "
           "the last backward, or compute the tensor again.");
    }
    if (text.find("modified by an inplace operation") != text.npos) {
      fail(TSPAN_ERROR_ARGUMENT,
           "a tensor that the backward needs was written to after it was used. Write results to "
           "another tensor, or run the backward before.");
    }
    throw;
  }
}

// A leaf that gradients are wanted of; only those have one.
at::Tensor& find_leaf(const tspan_tensor* handle) {
  at::Tensor& value = find_tensor(handle).value;
  if (!value.requires_grad()) {
    fail(TSPAN_ERROR_ARGUMENT,
         "the tensor has no gradient: none is wanted of it. Make it with requires_grad 1.");
  }
  if (!value.is_leaf()) {
    fail(TSPAN_ERROR_ARGUMENT,
         "the tensor has no gradient: it is a result. Gradients are kept for the tensors that were "
         "made with requires_grad 1.");
  }
  return value;
}

}  // namespace
}  // namespace torchspan

using namespace torchspan;

tspan_status tspan_tensor_backward(const tspan_tensor* tensor, const tspan_tensor* external,
                                   int retain_graph) {
  return guarded([&] {
    const Tensor& from = find_tensor(tensor);
    const bool retain = read_flag(retain_graph, "retain_graph");
    if (!from.value.requires_grad()) {
      fail(TSPAN_ERROR_ARGUMENT,
           "the tensor was computed from nothing that requires gradients, so there is nothing to "
           "differentiate. Make the tensors that it depends on with requires_grad 1.");
    }
    require_external(from, external);
    at::Tensor weight;
    if (external != nullptr) {
      weight = find_tensor(external, "external").value.detach().reshape(from.value.sizes());
    }
    run_backward(from.value, weight, retain);
  });
}

tspan_status tspan_tensor_gradient(const tspan_tensor* tensor, tspan_tensor** gradient) {
  return giving(gradient, "gradient", [&] {
    const at::Tensor& found = find_leaf(tensor).grad();
    if (!found.defined()) {
      fail(TSPAN_ERROR_ARGUMENT,
           "the tensor has no gradient yet. Run a backward on a result that depends on it first.");
    }
    return give_tensor(found, find_tensor(tensor).home);
  });
}

tspan_status tspan_tensor_zero_gradient(tspan_tensor* tensor) {
  return guarded([&] {
    at::Tensor& gradient = find_leaf(tensor).mutable_grad();
    c10::NoGradGuard off;
    if (gradient.defined()) gradient.zero_();
  });
}

tspan_status tspan_tensor_set_requires_grad(tspan_tensor* tensor, int requires_grad) {
  return guarded([&] {
    const at::Tensor& value = find_tensor(tensor).value;
    const bool wanted = read_flag(requires_grad, "requires_grad");
    if (wanted) require_differentiable(value);
    if (!value.is_leaf()) {
      fail(TSPAN_ERROR_ARGUMENT,
           "the tensor is a result, which requires gradients because what it was computed from "
           "does. Detach it first.");
    }
    value.set_requires_grad(wanted);
  });
}
