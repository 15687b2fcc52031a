// SPDX-License-Identifier: MIT
// Losses: how far results are from targets.
#include <ATen/core/Reduction.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/mse_loss.h>

#include "tensor.hpp"

namespace torchspan {
namespace {

std::int64_t read_reduction(tspan_reduction reduction) {
  switch (reduction) {
    case TSPAN_NONE:
      return at::Reduction::None;
    case TSPAN_MEAN:
      return at::Reduction::Mean;
    case TSPAN_SUM:
      return at::Reduction::Sum;
  }
  fail(TSPAN_ERROR_ARGUMENT, "reduction is ", int(reduction),
       "; it is TSPAN_NONE, TSPAN_MEAN or TSPAN_SUM.");
}

void require_real(const at::Tensor& tensor, const char* what) {
  if (tensor.is_floating_point()) return;
  fail(TSPAN_ERROR_ARGUMENT, what, " is ", dtype_name(tensor),
       "; a loss is of real numbers. Convert it with tspan_tensor_to.");
}

// PyTorch would broadcast, and give a loss that nobody wanted.
void require_alike(const at::Tensor& input, const at::Tensor& target) {
  if (input.sizes() == target.sizes() && input.scalar_type() == target.scalar_type()) return;
  fail(TSPAN_ERROR_ARGUMENT, "target is ", dtype_name(target), " ", shape_text(target),
       "; the input is ", dtype_name(input), " ", shape_text(input),
       ". Give a target of that dtype and shape.");
}

// One class for each score that is left when the classes' dimension is taken away.
at::Tensor read_classes(const at::Tensor& input, const at::Tensor& target) {
  at::DimVector expected(input.sizes());
  const std::size_t dim = input.dim() == 1 ? 0 : 1;
  const std::int64_t classes = expected[dim];
  expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(dim));
  const bool one = input.dim() == 1 && target.numel() == 1;
  if (!one && target.sizes() != at::IntArrayRef(expected)) {
    fail(TSPAN_ERROR_ARGUMENT, "target has shape ", shape_text(target), "; an input of shape ",
         shape_text(input), " takes one class for each score: its shape without dimension ", dim,
         ".");
  }
  const at::Tensor indices = target.to(at::kLong).reshape(expected);
  if (indices.numel() > 0) {
    auto [low, high] = indices.aminmax();
    const std::int64_t least = low.item<std::int64_t>(), most = high.item<std::int64_t>();
    if (least < 0 || most >= classes) {
      fail(TSPAN_ERROR_ARGUMENT, "target holds class ", least < 0 ? least : most,
           "; the input has classes 0 to ", classes - 1, ".");
    }
  }
  return indices;
}

template <class Loss>
tspan_status measure(const tspan_tensor* input, const tspan_tensor* target,
                     tspan_reduction reduction, tspan_tensor** loss, Loss&& apply) {
  return giving(loss, "loss", [&] {
    const Tensor& given = find_tensor(input, "input");
    const Tensor& wanted = find_tensor(target, "target");
    require_same_home(given, wanted, "target");
    require_real(given.value, "input");
    return give_tensor(apply(given.value, wanted.value, read_reduction(reduction)), given.home);
  });
}

}  // namespace
}  // namespace torchspan

using namespace torchspan;

tspan_status tspan_loss_mse(const tspan_tensor* input, const tspan_tensor* target,
                            tspan_reduction reduction, tspan_tensor** loss) {
  return measure(input, target, reduction, loss, [](auto& given, auto& wanted, auto kind) {
    require_alike(given, wanted);
    return at::mse_loss(given, wanted, kind);
  });
}

tspan_status tspan_loss_cross_entropy(const tspan_tensor* input, const tspan_tensor* target,
                                      tspan_reduction reduction, tspan_tensor** loss) {
  return measure(input, target, reduction, loss, [](auto& given, auto& wanted, auto kind) {
    if (given.dim() == 0) {
      fail(TSPAN_ERROR_ARGUMENT, "input has no dimensions; one of them is that of the classes.");
    }
    if (!at::isIntegralType(wanted.scalar_type(), false)) {
      require_alike(given, wanted);
      return at::cross_entropy_loss(given, wanted, {}, kind);
    }
    return at::cross_entropy_loss(given, read_classes(given, wanted), {}, kind);
  });
}
