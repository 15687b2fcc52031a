// SPDX-License-Identifier: MIT
// A Python script on one device, called with the caller's arrays.
#pragma once

#include "python_script.hpp"
#include "runner.hpp"

namespace torchspan {

class PythonRunner : public Runner {
 public:
  // Run the script once for this device.
  PythonRunner(const std::string& path, const Device& device);

  std::optional<std::vector<std::string>> inputs() const { return script_->inputs(); }
  void run(std::span<const View> inputs, const Landing& landing) override;
  PythonScript::Step train(std::span<const View> inputs, std::span<const View> targets);
  void save(const std::string& path);

 private:
  [[noreturn]] void fail_call(const char* what, const Raised& error) const;

  Device device_;
  std::shared_ptr<PythonScript> script_;
};

}  // namespace torchspan
