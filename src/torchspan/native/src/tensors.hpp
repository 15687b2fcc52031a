// SPDX-License-Identifier: MIT
// Between views and torch's tensors, for the runners that go through torch's C++ interface.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>

#include <stdexcept>

#include "array.hpp"

namespace torchspan {

// A tensor over a view's memory, or a copy of it on another device.
inline at::Tensor make_tensor(const View& view, const at::Device& device) {
  auto options = at::TensorOptions().dtype(static_cast<at::ScalarType>(view.dtype->torch));
  at::Tensor here = at::from_blob(view.data, at::IntArrayRef(view.sizes, view.ndim),
                                  at::IntArrayRef(view.strides, view.ndim), options);
  return device.is_cpu() ? here : here.to(device);
}

// A view of a tensor's memory, which must be the host's and outlive it.
inline View view_tensor(const at::Tensor& tensor) {
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

// Fetch a result to the host: in order, with nothing left to be conjugated or negated.
inline at::Tensor fetch_tensor(const at::Tensor& tensor) {
  return tensor.resolve_conj().resolve_neg().cpu();
}

}  // namespace torchspan
