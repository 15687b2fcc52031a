// SPDX-License-Identifier: MIT
// Lend the caller's memory to a script, and take it back.
#include "python_runner.hpp"

#include <ATen/ops/clone.h>
#include <c10/core/InferenceMode.h>

#include <filesystem>

#include "loan.hpp"
#include "status.hpp"
#include "tensors.hpp"

namespace torchspan {
namespace {

// The caller's arrays as tensors: over their memory on the CPU, and copies elsewhere.
std::vector<at::Tensor> lend(std::span<const View> views, const at::Device& device, Loan& loan) {
  std::vector<at::Tensor> tensors;
  tensors.reserve(views.size());
  for (const View& view : views) {
    if (device.is_cpu()) {
      tensors.push_back(loan.lend(make_tensor(view)));
    } else {
      const at::Tensor there = make_tensor(view, view.place.on_host() ? at::kCPU : device);
      tensors.push_back(there.to(device, there.scalar_type(), false, true));
    }
  }
  return tensors;
}

}  // namespace

PythonRunner::PythonRunner(const std::string& path, const Device& device) : device_(device) {
  try {
    if (!std::filesystem::exists(path)) {
      fail(TSPAN_ERROR_MODEL_FILE, "there is no model file ", path, ".");
    }
    script_ = open_python_script(path, device.backing);
  } catch (const Raised& error) {
    fail(TSPAN_ERROR_MODEL_FILE, error.what());
  }
}

void PythonRunner::run(std::span<const View> inputs, const Landing& landing) {
  const at::Device device(device_.backing);
  Loan loan;
  try {
    loan.during([&] {
      std::vector<at::Tensor> results = script_->forward(lend(inputs, device, loan));
      landing.expect(results.size());
      for (std::size_t index = 0; index < results.size(); ++index) {
        const at::Tensor here = resolve(results[index]).cpu();
        landing.take(index, view_tensor(here));
      }
    });
  } catch (const Raised& error) {
    fail_call("the model", error);
  }
}

std::vector<at::Tensor> PythonRunner::compute(std::vector<at::Tensor> inputs) {
  // A script may ask for gradients, which tensors made for inference have not.
  c10::InferenceMode off(false);
  for (at::Tensor& each : inputs) each = each.clone();
  try {
    return script_->forward(std::move(inputs));
  } catch (const Raised& error) {
    fail_call("the model", error);
  }
}

PythonScript::Step PythonRunner::train(std::span<const View> inputs,
                                       std::span<const View> targets) {
  const at::Device device(device_.backing);
  Loan loan;
  PythonScript::Step step{};
  try {
    loan.during(
        [&] { step = script_->train(lend(inputs, device, loan), lend(targets, device, loan)); });
  } catch (const Raised& error) {
    fail_call("training", error);
  }
  return step;
}

void PythonRunner::save(const std::string& path) {
  try {
    script_->save(path);
  } catch (const Raised& error) {
    fail_call("saving", error);
  }
}

void PythonRunner::fail_call(const char* what, const Raised& error) const {
  if (error.memory) {
    fail(TSPAN_ERROR_MEMORY, device_.name(), " has too little memory for this call: ", error.what(),
         "\nRun smaller batches, or use more devices.");
  }
  fail(TSPAN_ERROR_MODEL, what, " failed on ", device_.name(), ": ", error.what());
}

}  // namespace torchspan
