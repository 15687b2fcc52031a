// SPDX-License-Identifier: MIT
// What runs of TorchScript share: its results and its errors.
#pragma once

#include <ATen/core/ivalue.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "status.hpp"

namespace torchspan {

// What the model itself raised stands in the last line of torch's traceback.
inline std::string last_line(const std::exception& error) {
  std::string text = error.what();
  text = text.substr(0, text.find("\nException raised from"));
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

// A model's result as tensors, in order.
inline void flatten(const at::IValue& value, std::vector<at::Tensor>& tensors) {
  if (value.isTensor()) {
    tensors.push_back(value.toTensor());
  } else if (value.isTuple()) {
    for (const at::IValue& each : value.toTupleRef().elements()) flatten(each, tensors);
  } else if (value.isList()) {
    for (const at::IValue& each : value.toListRef()) flatten(each, tensors);
  } else if (value.isGenericDict()) {
    for (const auto& each : value.toGenericDict()) flatten(each.value(), tensors);
  } else {
    fail(TSPAN_ERROR_MODEL, "the model returned a ", value.tagKind(),
         "; it must return a tensor, or a tuple, list or dict of tensors.");
  }
}

}  // namespace torchspan
