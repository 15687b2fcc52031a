// SPDX-License-Identifier: MIT
// Python scripts on tensors: run without gradients, trained by their own function, saved by
// another.
#include <ATen/ops/from_blob.h>

#include <filesystem>

#include "loan.hpp"
#include "module.hpp"
#include "python_script.hpp"

namespace torchspan {
namespace {

class PythonModule : public Module {
 public:
  PythonModule(std::shared_ptr<PythonScript> script, const Home& home)
      : Module(home), script_(std::move(script)), names_(script_->inputs()) {}

  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& inputs, bool gradient) override {
    if (gradient) {
      fail(TSPAN_ERROR_MODEL,
           "the model is a Python script, whose results carry no gradients. Run it without, or "
           "train it with tspan_module_train, which calls its own function train.");
    }
    if (names_ && inputs.size() != names_->size()) fail_count(inputs.size());
    std::vector<at::Tensor> results;
    during("the model", [&](Loan& loan) { results = script_->forward(lend(inputs, loan)); });
    for (at::Tensor& each : results) {
      each = each.to(home().backing).resolve_conj().resolve_neg();
    }
    return results;
  }

  void set_training(bool training) override {
    if (!training) return;
    fail(TSPAN_ERROR_MODEL,
         "a Python script has no training mode. Its function train, which tspan_module_train "
         "calls, sets the modes of its modules.");
  }

  Step train(const std::vector<at::Tensor>& inputs, const at::Tensor& target) override {
    PythonScript::Step step{};
    during("training",
           [&](Loan& loan) { step = script_->train(lend(inputs, loan), lend({target}, loan)); });
    return {step.completed, step.loss};
  }

  void save(const std::string& path) override {
    during("saving", [&](Loan&) { script_->save(path); });
  }

 private:
  // Tensors of their own over the caller's memory on the CPU; copies elsewhere, or of what has no
  // plain memory.
  static std::vector<at::Tensor> lend(const std::vector<at::Tensor>& tensors, Loan& loan) {
    std::vector<at::Tensor> lent;
    lent.reserve(tensors.size());
    for (const at::Tensor& each : tensors) {
      const bool plain = each.is_cpu() && each.layout() == at::kStrided;
      if (!plain || each.is_conj() || each.is_neg()) {
        lent.push_back(each.detach().clone());
        continue;
      }
      lent.push_back(loan.lend(at::for_blob(each.data_ptr(), each.sizes())
                                   .strides(each.strides())
                                   .options(each.options().requires_grad(false))
                                   .target_device(each.device())
                                   .make_tensor()));
    }
    return lent;
  }

  [[noreturn]] void fail_count(std::size_t given) const {
    std::string names;
    for (const std::string& each : *names_) names += (names.empty() ? ": " : "; ") + each;
    fail(TSPAN_ERROR_ARGUMENT, given, given == 1 ? " input was" : " inputs were",
         " given; this model takes ", names_->size(), names, ".");
  }

  template <class Body>
  void during(const char* what, Body&& body) {
    Loan loan;
    try {
      loan.during([&] { body(loan); });
    } catch (const Raised& error) {
      if (error.memory) {
        fail(TSPAN_ERROR_MEMORY, home().name(),
             " has too little memory for this call: ", error.what(), "\nRun smaller batches.");
      }
      fail(TSPAN_ERROR_MODEL, what, " failed on ", home().name(), ": ", error.what());
    }
  }

  std::shared_ptr<PythonScript> script_;
  std::optional<std::vector<std::string>> names_;
};

}  // namespace

std::unique_ptr<Module> open_python_module(const std::string& path, const Home& home) {
  if (!std::filesystem::exists(path)) {
    fail(TSPAN_ERROR_MODEL_FILE, "there is no model file ", path, ".");
  }
  try {
    return std::make_unique<PythonModule>(open_python_script(path, home.backing.str()), home);
  } catch (const Raised& error) {
    fail(TSPAN_ERROR_MODEL_FILE, error.what());
  }
}

}  // namespace torchspan
