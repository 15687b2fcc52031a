// SPDX-License-Identifier: MIT
// A Python script on one device, called with the caller's arrays.
#pragma once

#include "python_script.hpp"
#include "tensors.hpp"

namespace torchspan {

class PythonRunner : public TensorRunner {
 public:
  // Run the script once for this device.
  PythonRunner(const std::string& path, const Device& device);

  std::optional<std::vector<std::string>> inputs() const { return script_->inputs(); }
  // On the CPU the script borrows the caller's memory; elsewhere it gets copies, which it may keep.
  void run(std::span<const View> inputs, const Landing& landing) override;
  std::vector<at::Tensor> compute(std::vector<at::Tensor> inputs) override;
  PythonScript::Step train(std::span<const View> inputs, std::span<const View> targets);
  void save(const std::string& path);

 private:
  [[noreturn]] void fail_call(const char* what, const Raised& error) const;

  Device device_;
  std::shared_ptr<PythonScript> script_;
};

}  // namespace torchspan
