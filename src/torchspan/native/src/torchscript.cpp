// SPDX-License-Identifier: MIT
// TorchScript models: loaded, frozen and run in inference mode. The one file with torch/script.h,
// which takes long to compile.
#include <torch/script.h>

#include "runner.hpp"
#include "status.hpp"
#include "tensors.hpp"

namespace torchspan {
namespace {

// What the model itself raised stands in the last line of torch's traceback.
std::string last_line(const std::exception& error) {
  std::string text = error.what();
  text = text.substr(0, text.find("\nException raised from"));
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

void flatten(const at::IValue& value, std::vector<at::Tensor>& tensors) {
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

class ScriptRunner : public TensorRunner {
 public:
  explicit ScriptRunner(torch::jit::Module module)
      : module_(std::move(module)), forward_(module_.get_method("forward")) {}

  std::vector<at::Tensor> compute(std::vector<at::Tensor> inputs) override {
    std::vector<at::IValue> given;
    given.reserve(inputs.size() + 1);
    for (at::Tensor& each : inputs) given.emplace_back(std::move(each));
    std::vector<at::Tensor> results;
    flatten(call(std::move(given)), results);
    return results;
  }

 private:
  at::IValue call(std::vector<at::IValue> given) {
    try {
      return forward_(std::move(given));
    } catch (const std::exception& error) {
      throw std::runtime_error(last_line(error));
    }
  }

  torch::jit::Module module_;
  torch::jit::Method forward_;
};

std::optional<std::vector<std::string>> input_names(const torch::jit::Module& module) {
  const auto& schema = module.get_method("forward").function().getSchema();
  std::vector<std::string> names;
  for (const auto& argument : schema.arguments()) {
    if (argument.default_value().has_value()) return {};
    names.push_back(argument.name());
  }
  names.erase(names.begin());  // self
  return names;
}

}  // namespace

Script open_torchscript(const std::filesystem::path& path, const Device& device) {
  try {
    at::Device home(device.backing);
    torch::jit::Module module = torch::jit::load(path.string(), home);
    module.eval();
    auto names = input_names(module);
    return {std::make_shared<ScriptRunner>(torch::jit::freeze(module)), names};
  } catch (const std::exception& error) {
    fail(TSPAN_ERROR_MODEL_FILE, path.string(), " cannot be read: ", first_line(error.what()));
  }
}

}  // namespace torchspan
