// SPDX-License-Identifier: MIT
// TorchScript modules on tensors: with gradients, training mode, parameters and saving.
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>

#include <atomic>
#include <filesystem>
#include <mutex>

#include "module.hpp"
#include "script.hpp"

namespace torchspan {
namespace {

class ScriptModule : public Module {
 public:
  ScriptModule(torch::jit::Module module, const Home& home)
      : Module(home), module_(std::move(module)), forward_(module_.get_method("forward")) {
    for (const auto& each : module_.named_parameters()) {
      parameters_.push_back({each.name, each.value});
    }
  }

  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& inputs, bool gradient) override {
    c10::AutoGradMode mode(gradient);
    return call(!gradient && fixed() ? *frozen_ : forward_, inputs);
  }

  void run(const std::vector<at::Tensor>& inputs, std::span<Tensor* const> outputs) override {
    std::vector<at::Tensor> results;
    {
      c10::InferenceMode inference;
      results = call(fixed() ? *frozen_ : forward_, inputs);
    }
    take_results(results, outputs);
  }

  std::span<const Named> parameters() const override {
    // Whoever has them may change them, which a frozen copy would not see.
    changeable_ = true;
    return parameters_;
  }
  bool training() const override { return module_.is_training(); }
  void set_training(bool training) override {
    changeable_ = changeable_ || training;
    module_.train(training);
  }

  void save(const std::string& path) override {
    // Written beside and renamed, so that what is there is always whole.
    const std::string part = path + ".part";
    try {
      module_.save(part);
      std::filesystem::rename(part, path);
    } catch (const std::exception& error) {
      std::error_code ignored;
      std::filesystem::remove(part, ignored);
      fail(TSPAN_ERROR_MODEL_FILE, path, " cannot be written: ", first_line(error.what()));
    }
  }

 private:
  // Whether the frozen copy serves, which is made when it is first needed.
  bool fixed() {
    if (changeable_) return false;
    std::call_once(freezing_, [this] {
      try {
        frozen_.emplace(torch::jit::freeze(module_).get_method("forward"));
      } catch (const std::exception&) {
        // Not every module can be frozen; as it is, it gives the same results.
        changeable_ = true;
      }
    });
    return frozen_.has_value();
  }

  std::vector<at::Tensor> call(torch::jit::Method& method, const std::vector<at::Tensor>& inputs) {
    try {
      const auto& arguments = forward_.function().getSchema().arguments();
      require_count(arguments, inputs.size());
      std::vector<at::IValue> given;
      given.reserve(inputs.size() + 1);
      for (std::size_t index = 0; index < inputs.size(); ++index) {
        given.push_back(read_input(inputs[index], *arguments[index + 1].type()));
      }
      std::vector<at::Tensor> results;
      flatten(method(std::move(given)), results);
      return results;
    } catch (...) {
      fail_script();
    }
  }

  [[noreturn]] void fail_script() const {
    try {
      throw;
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      try {
        throw std::runtime_error(last_line(error));
      } catch (...) {
        fail_run();
      }
    }
  }

  static void require_count(const std::vector<c10::Argument>& arguments, std::size_t given) {
    const std::size_t most = arguments.size() - 1;
    std::size_t least = most;
    while (least > 0 && arguments[least].default_value().has_value()) --least;
    if (given >= least && given <= most) return;
    fail(TSPAN_ERROR_ARGUMENT, given, given == 1 ? " input was" : " inputs were",
         " given; this model takes ", least == most ? "" : say(least, " to "), most, ".");
  }

  // A number where the model takes one.
  static at::IValue read_input(const at::Tensor& tensor, const c10::Type& type) {
    const auto kind = type.kind();
    const bool number = kind == c10::TypeKind::FloatType || kind == c10::TypeKind::IntType ||
                        kind == c10::TypeKind::BoolType || kind == c10::TypeKind::NumberType;
    if (!number || tensor.numel() != 1) return tensor;
    const at::Scalar value = tensor.item();
    if (kind == c10::TypeKind::FloatType) return value.toDouble();
    if (kind == c10::TypeKind::IntType) return value.toLong();
    if (kind == c10::TypeKind::BoolType) return value.toBool();
    return value;
  }

  torch::jit::Module module_;
  torch::jit::Method forward_;
  std::vector<Named> parameters_;
  mutable std::atomic<bool> changeable_ = false;
  std::once_flag freezing_;
  std::optional<torch::jit::Method> frozen_;
};

}  // namespace

std::unique_ptr<Module> open_script_module(const std::string& path, const Home& home) {
  try {
    torch::jit::Module module = torch::jit::load(path, home.backing);
    module.eval();
    return std::make_unique<ScriptModule>(std::move(module), home);
  } catch (const std::exception& error) {
    fail(TSPAN_ERROR_MODEL_FILE, path, " cannot be read: ", first_line(error.what()));
  }
}

}  // namespace torchspan
