// SPDX-License-Identifier: MIT
// A Python script as a model, whose code lies in a library of its own: libtorchspan_python, which
// alone knows Python and is opened when the first script is.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace torchspan {

// A script opened on one device. Any thread may call it; calls take turns at Python's own lock,
// which is free in between.
class PythonScript {
 public:
  struct Step {
    bool completed;
    double loss;
  };

  virtual ~PythonScript() = default;
  // The names of its inputs, where it takes a certain number of them.
  virtual std::optional<std::vector<std::string>> inputs() const = 0;
  // Tensors are handed over: Python alone holds them while it runs.
  virtual std::vector<at::Tensor> forward(std::vector<at::Tensor> inputs) = 0;
  virtual Step train(std::vector<at::Tensor> inputs, std::vector<at::Tensor> targets) = 0;
  virtual void save(const std::string& path) = 0;
};

// What a script raised: one line, and then the traceback.
class Raised : public std::runtime_error {
 public:
  Raised(const std::string& text, bool memory) : std::runtime_error(text), memory(memory) {}
  const bool memory;  // whether there was too little
};

// What libtorchspan_python exports under the name torchspan_python.
struct PythonLibrary {
  const char* version;
  // Start the interpreter of the Python named, or join the one that runs, and open a script;
  // `libraries` is the folder of the torch libraries that this process uses.
  std::shared_ptr<PythonScript> (*open)(const std::string& python, const std::string& libraries,
                                        const std::string& path, const std::string& device);
};

// Open a script on a device of torch's, such as "cuda:0".
std::shared_ptr<PythonScript> open_python_script(const std::string& path,
                                                 const std::string& device);

}  // namespace torchspan
