// SPDX-License-Identifier: MIT
// What every kind of opened model is: something that runs one batch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "array.hpp"
#include "devices.hpp"

namespace torchspan {

// Where the results of one run go: rows of the caller's outputs.
class Landing {
 public:
  explicit Landing(std::span<const View> outputs) : outputs_(outputs) {}

  // Say how many results there are, before the first one.
  void expect(std::size_t count) const;
  // Whether a result, wherever it is, has the dtype and shape of its output; if not, an error.
  void check(std::size_t index, const View& result) const;
  // Check and copy one result in the host's memory.
  void take(std::size_t index, const View& result) const;

 private:
  std::span<const View> outputs_;
};

// A model opened on one device; safe to call from several threads.
class Runner {
 public:
  virtual ~Runner() = default;
  // Run contiguous inputs in the host's memory, on the CPU.
  virtual void run(std::span<const View> inputs, const Landing& landing) = 0;
};

// Open the AOTInductor build unpacked in `folder`; up to `calls` runs go on at the same time.
std::shared_ptr<Runner> open_build(const std::filesystem::path& folder, const Device& device,
                                   int calls);

// The same through torch's own loader: for accelerators, and for operators without a C form.
std::shared_ptr<Runner> open_package(const std::filesystem::path& folder, const Device& device,
                                     int calls);

// A TorchScript model: its runner and the names of its inputs, where it takes a certain number.
struct Script {
  std::shared_ptr<Runner> runner;
  std::optional<std::vector<std::string>> inputs;
};
Script open_torchscript(const std::filesystem::path& path, const Device& device);

}  // namespace torchspan
