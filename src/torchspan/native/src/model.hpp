// SPDX-License-Identifier: MIT
// A model file opened on one or many devices: check, split, run on all of them.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "python_runner.hpp"
#include "replica.hpp"
#include "request.hpp"

namespace torchspan {

class Model {
 public:
  Model(const std::string& path, const std::string& devices);

  const std::string& json() const { return description_.json; }
  int input_count() const;
  int output_count() const;

  // Run a call; on one device in this thread, without a worker.
  void run(std::span<const tspan_array> inputs, std::span<const tspan_array> outputs) {
    run_in({}, inputs, outputs);
  }
  // Run a call as a part of a stream of the first device's.
  void run_on(void* stream, std::span<const tspan_array> inputs,
              std::span<const tspan_array> outputs);
  // Start a call on the devices' workers.
  std::shared_ptr<Request> submit(std::span<const tspan_array> inputs,
                                  std::span<const tspan_array> outputs) {
    return start({}, inputs, outputs);
  }

  // Take a training step, or save, by the functions of a Python script.
  PythonScript::Step train(std::span<const tspan_array> inputs,
                           std::span<const tspan_array> targets);
  void save(const std::string& path);

 private:
  void run_in(std::optional<Queue> queue, std::span<const tspan_array> inputs,
              std::span<const tspan_array> outputs);
  std::shared_ptr<Request> start(std::optional<Queue> queue, std::span<const tspan_array> inputs,
                                 std::span<const tspan_array> outputs);
  void open_compiled(Archive& archive, const std::vector<Device>& devices);
  void open_torchscript(const std::string& path, const std::vector<Device>& devices);
  void open_python(const std::string& path, const std::vector<Device>& devices);
  void describe_inputs(const char* kind, const std::optional<std::vector<std::string>>& names);
  PythonRunner& only_script(const char* verb) const;
  bool nothing_to_do(const Call& call) const;

  Device first_;
  Places places_;
  Description description_;
  Checker checker_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::shared_ptr<PythonRunner> script_;
  std::atomic<unsigned> turn_ = 0;
};

}  // namespace torchspan
