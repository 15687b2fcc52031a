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

class ScriptRunner : public Runner {
 public:
  ScriptRunner(torch::jit::Module module, const at::Device& device)
      : module_(std::move(module)), forward_(module_.get_method("forward")), device_(device) {}

  void run(std::span<const View> inputs, const Landing& landing) override {
    c10::InferenceMode inference;
    std::vector<at::IValue> given;
    given.reserve(inputs.size() + 1);
    for (const View& view : inputs) given.emplace_back(make_tensor(view, device_));
    std::vector<at::Tensor> results;
    flatten(call(std::move(given)), results);
    landing.expect(results.size());
    for (std::size_t index = 0; index < results.size(); ++index) {
      at::Tensor here = fetch_tensor(results[index]);
      landing.take(index, view_tensor(here));
    }
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
  at::Device device_;
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
    return {std::make_shared<ScriptRunner>(torch::jit::freeze(module), home), names};
  } catch (const std::exception& error) {
    fail(TSPAN_ERROR_MODEL_FILE, path.string(), " cannot be read: ", first_line(error.what()));
  }
}

}  // namespace torchspan
