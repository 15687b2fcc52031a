// SPDX-License-Identifier: MIT
// TorchScript models: loaded, frozen and run in inference mode.
#include <c10/core/InferenceMode.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>

#include "runner.hpp"
#include "script.hpp"
#include "status.hpp"
#include "tensors.hpp"

namespace torchspan {
namespace {

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
