// SPDX-License-Identifier: MIT
// Write into tensors, so that the memory under them has the values and the graphs go on.
#include <ATen/MemoryOverlap.h>
#include <c10/core/GradMode.h>

#include "tensor.hpp"
#include "tensors.hpp"

namespace torchspan {
namespace {

// Forget what a tensor was a result of: its old graph would be kept alive by the new one, in a loop
// without end. A view cannot forget, so another tensor over its memory takes its place.
void forget_graph(Tensor& target) {
  if (target.value.is_leaf()) return;
  if (target.value.is_view()) {
    target.value = target.value.detach();
  } else {
    target.value.detach_();
  }
}

void require_writable(const Tensor& target) {
  if (at::has_internal_overlap(target.value) == at::MemOverlap::Yes) {
    fail(TSPAN_ERROR_ARGUMENT, "target has elements that share memory (a stride of 0), so they ",
         "cannot be written to. Clone it.");
  }
}

void fill(double number, tspan_tensor* handle) {
  Tensor& target = find_tensor(handle, "target");
  require_writable(target);
  forget_graph(target);
  c10::NoGradGuard off;
  target.value.fill_(number);
}

}  // namespace

void require_same_kind(const Tensor& source, const Tensor& target) {
  require_same_home(source, target, "target");
  if (source.value.scalar_type() == target.value.scalar_type()) return;
  fail(TSPAN_ERROR_ARGUMENT, "target has dtype ", dtype_name(target.value), "; the values are ",
       dtype_name(source.value), ". Give a tensor of ", dtype_name(source.value),
       ", or convert with tspan_tensor_convert.");
}

void require_same_shape(const at::Tensor& source, const at::Tensor& target) {
  if (source.sizes() == target.sizes()) return;
  if (source.numel() == 1 && target.numel() == 1) return;
  fail(TSPAN_ERROR_ARGUMENT, "target has shape ", shape_text(target), "; the values have ",
       shape_text(source), ". Give a tensor of that shape.");
}

void write_tensor(const at::Tensor& source, Tensor& target, bool tracked, bool non_blocking) {
  require_writable(target);
  if (source.is_same(target.value)) return;
  if (tracked && target.value.is_leaf() && target.value.requires_grad()) {
    fail(TSPAN_ERROR_ARGUMENT,
         "target is a leaf that requires gradients, so it cannot become a result with gradients. ",
         "Write to a tensor without requires_grad, or write a detached source.");
  }
  const at::Tensor values = source.reshape(target.value.sizes());
  forget_graph(target);
  c10::AutoGradMode mode(tracked);
  target.value.copy_(values, non_blocking);
}

void write_values(const at::Tensor& source, Tensor& target) {
  const bool here = source.is_cpu() && target.value.is_cpu() && !source.is_conj() &&
                    !source.is_neg() && source.layout() == at::kStrided;
  if (!here || source.sizes() != target.value.sizes() || source.numel() == 0) {
    return write_tensor(source, target, false, false);
  }
  require_writable(target);
  forget_graph(target);
  const bool same = source.data_ptr() == target.value.data_ptr();
  if (same && source.strides() == target.value.strides()) return;
  copy_elements(view_tensor(target.value), view_tensor(source));
  target.value.unsafeGetTensorImpl()->bump_version();
}

}  // namespace torchspan

using namespace torchspan;

tspan_status tspan_tensor_assign(const tspan_tensor* source, tspan_tensor* target) {
  return guarded([&] {
    const Tensor& from = find_tensor(source, "source");
    Tensor& to = find_tensor(target, "target");
    require_same_kind(from, to);
    require_same_shape(from.value, to.value);
    write_tensor(from.value, to, from.value.requires_grad(), false);
  });
}

tspan_status tspan_tensor_convert(const tspan_tensor* source, int non_blocking,
                                  tspan_tensor* target) {
  return guarded([&] {
    const Tensor& from = find_tensor(source, "source");
    Tensor& to = find_tensor(target, "target");
    const bool early = read_flag(non_blocking, "non_blocking");
    require_same_shape(from.value, to.value);
    if (from.value.is_complex() && !to.value.is_complex()) {
      fail(TSPAN_ERROR_ARGUMENT, "target has dtype ", dtype_name(to.value), "; the values are ",
           dtype_name(from.value), ", whose imaginary parts would be lost.");
    }
    const bool tracked = from.value.requires_grad() && is_differentiable(to.value);
    write_tensor(from.value, to, tracked, early);
  });
}

tspan_status tspan_tensor_fill(double value, tspan_tensor* target) {
  return guarded([&] { fill(value, target); });
}

tspan_status tspan_tensor_zero(tspan_tensor* target) {
  return guarded([&] { fill(0, target); });
}
