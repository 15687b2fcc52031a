// SPDX-License-Identifier: MIT
// A model file opened for tensors: what each kind of file can do beyond being run.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "description.hpp"
#include "tensor.hpp"

namespace torchspan {

// Safe to call from several threads but for what changes it, which nobody may call meanwhile.
class Module {
 public:
  struct Named {
    std::string name;
    at::Tensor value;
  };
  struct Step {
    bool complete;
    double loss;
  };

  explicit Module(Home home) : home_(home) {}
  virtual ~Module() = default;
  const Home& home() const { return home_; }

  // Run on tensors of its device; results carry their graphs where `gradient`.
  virtual std::vector<at::Tensor> forward(const std::vector<at::Tensor>& inputs, bool gradient) = 0;
  // Run without gradients into tensors' memory.
  virtual void run(const std::vector<at::Tensor>& inputs, std::span<Tensor* const> outputs);

  // What a kind of file cannot do is an error of its own, which these are.
  virtual std::span<const Named> parameters() const;
  virtual bool training() const { return false; }
  virtual void set_training(bool training);
  virtual Step train(const std::vector<at::Tensor>& inputs, const at::Tensor& target);
  virtual void save(const std::string& path);

 protected:
  // Take results into the caller's outputs, of which there may be fewer.
  void take_results(const std::vector<at::Tensor>& results, std::span<Tensor* const> outputs) const;
  // Say that the model failed while it ran; to be called inside a catch block.
  [[noreturn]] void fail_run() const;

 private:
  Home home_;
};

// Open each kind of file on a device.
std::unique_ptr<Module> open_script_module(const std::string& path, const Home& home);
std::unique_ptr<Module> open_python_module(const std::string& path, const Home& home);
std::unique_ptr<Module> open_compiled_module(const std::string& path, Description description,
                                             const Home& home);

// Check that a model gives as many results as are wanted.
void require_results(std::size_t wanted, std::size_t given);

}  // namespace torchspan
