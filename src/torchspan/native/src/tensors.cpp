// SPDX-License-Identifier: MIT
// Make tensors of views and views of tensors.
#include "tensors.hpp"

#include <ATen/ops/from_blob.h>
#include <c10/core/InferenceMode.h>

#include <stdexcept>

namespace torchspan {

at::Tensor make_tensor(const View& view, const at::Device& device) {
  const auto options =
      at::TensorOptions().dtype(static_cast<at::ScalarType>(view.dtype->torch)).device(device);
  return at::for_blob(view.data, at::IntArrayRef(view.sizes, view.ndim))
      .strides(at::IntArrayRef(view.strides, view.ndim))
      .options(options)
      .target_device(device)
      .make_tensor();
}

View view_tensor(const at::Tensor& tensor) {
  View view;
  view.dtype = find_dtype(static_cast<int>(tensor.scalar_type()));
  if (view.dtype == nullptr || tensor.dim() > most_dimensions || tensor.layout() != at::kStrided) {
    throw std::runtime_error("it gave a result of a kind that torchspan does not know");
  }
  view.data = static_cast<char*>(tensor.data_ptr());
  view.ndim = static_cast<int>(tensor.dim());
  std::copy(tensor.sizes().begin(), tensor.sizes().end(), view.sizes);
  std::copy(tensor.strides().begin(), tensor.strides().end(), view.strides);
  return view;
}

at::Tensor resolve(const at::Tensor& tensor) { return tensor.resolve_conj().resolve_neg(); }

void TensorRunner::run(std::span<const View> inputs, const Landing& landing) {
  c10::InferenceMode inference;
  std::vector<at::Tensor> given;
  given.reserve(inputs.size());
  for (const View& view : inputs) given.push_back(make_tensor(view));
  const std::vector<at::Tensor> results = compute(std::move(given));
  landing.expect(results.size());
  for (std::size_t index = 0; index < results.size(); ++index) {
    // A TorchScript model for the CPU may still move its result elsewhere.
    const at::Tensor here = resolve(results[index]).cpu();
    landing.take(index, view_tensor(here));
  }
}

}  // namespace torchspan
