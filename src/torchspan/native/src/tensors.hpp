// SPDX-License-Identifier: MIT
// Between views and torch's tensors, and the runners that go through torch's C++ interface.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "runner.hpp"

namespace torchspan {

// A tensor over a view's memory, which is the host's or that of `device`.
at::Tensor make_tensor(const View& view, const at::Device& device = at::kCPU);

// A view of a tensor's memory, which must outlive it.
View view_tensor(const at::Tensor& tensor);

// The same numbers with nothing left to be conjugated or negated.
at::Tensor resolve(const at::Tensor& tensor);

// A runner that takes tensors where they are.
class TensorRunner : public Runner {
 public:
  // Run tensors on the device that the model was opened on; there, in the current stream.
  virtual std::vector<at::Tensor> compute(std::vector<at::Tensor> inputs) = 0;
  // Run on the CPU.
  void run(std::span<const View> inputs, const Landing& landing) override;
};

}  // namespace torchspan
