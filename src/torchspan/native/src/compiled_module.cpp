// SPDX-License-Identifier: MIT
// Compiled models on tensors: a .pt2 run without gradients, through the model behind torchspan.h.
#include <ATen/ops/empty.h>

#include <map>

#include "model.hpp"
#include "module.hpp"

namespace torchspan {
namespace {

tspan_array array_of(const at::Tensor& tensor) {
  const Dtype* dtype = find_dtype(static_cast<int>(tensor.scalar_type()));
  if (dtype == nullptr) {
    fail(TSPAN_ERROR_ARGUMENT, "a tensor is ", dtype_name(tensor), ", which no model file takes.");
  }
  return {tensor.data_ptr(),
          {1, 0},
          static_cast<int>(tensor.dim()),
          {dtype->kind, dtype->bits, 1},
          tensor.sizes().data(),
          tensor.strides().data(),
          0};
}

std::vector<tspan_array> arrays_of(const std::vector<at::Tensor>& tensors) {
  std::vector<tspan_array> arrays;
  for (const at::Tensor& each : tensors) arrays.push_back(array_of(each));
  return arrays;
}

class CompiledModule : public Module {
 public:
  CompiledModule(const std::string& path, Description description, const Home& home)
      : Module(home), description_(std::move(description)), model_(path, home.name()) {}

  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& inputs, bool gradient) override {
    if (gradient) {
      fail(TSPAN_ERROR_MODEL,
           "this model is compiled and has no gradients. Run it with gradient "
           "0, or save it as TorchScript (.pt).");
    }
    std::vector<at::Tensor> results = make_results(inputs);
    const std::vector<at::Tensor> here = fetch(inputs);
    model_.run(arrays_of(here), arrays_of(results));
    for (at::Tensor& each : results) each = each.to(home().backing);
    return results;
  }

  void run(const std::vector<at::Tensor>& inputs, std::span<Tensor* const> outputs) override {
    std::vector<at::Tensor> targets;
    for (const Tensor* each : outputs) {
      // Written to as memory, which leaves graphs and other devices out.
      if (!each->value.is_cpu() || each->value.requires_grad() || !(each->home == home())) {
        return Module::run(inputs, outputs);
      }
      targets.push_back(each->value);
    }
    model_.run(arrays_of(fetch(inputs)), arrays_of(targets));
    for (const at::Tensor& each : targets) each.unsafeGetTensorImpl()->bump_version();
  }

 private:
  static std::vector<at::Tensor> fetch(const std::vector<at::Tensor>& tensors) {
    std::vector<at::Tensor> here;
    for (const at::Tensor& each : tensors) here.push_back(each.detach().resolve_conj().cpu());
    return here;
  }

  // Results by the file's description, whose named sizes the inputs give.
  std::vector<at::Tensor> make_results(const std::vector<at::Tensor>& inputs) const {
    std::map<std::string, std::int64_t> sizes;
    for (std::size_t index = 0; index < std::min(inputs.size(), description_.inputs->size());
         ++index) {
      const auto& shape = *(*description_.inputs)[index].shape;
      for (std::size_t dim = 0; dim < shape.size(); ++dim) {
        const auto* name = std::get_if<std::string>(&shape[dim]);
        const bool there = static_cast<std::int64_t>(dim) < inputs[index].dim();
        if (name != nullptr && there) sizes[*name] = inputs[index].size(std::int64_t(dim));
      }
    }
    std::vector<at::Tensor> results;
    for (const Spec& spec : *description_.outputs) {
      at::DimVector shape;
      for (const Dimension& each : *spec.shape) {
        const auto* size = std::get_if<std::int64_t>(&each);
        const auto* name = std::get_if<std::string>(&each);
        const bool known = size != nullptr || (name != nullptr && sizes.contains(*name));
        if (!known) {
          fail(TSPAN_ERROR_MODEL, "the file does not say how large its output '", spec.name,
               "' becomes: ", spec.shape_text(), ". Make it, and use tspan_module_run.");
        }
        shape.push_back(size != nullptr ? *size : sizes[*name]);
      }
      results.push_back(at::empty(shape, find_scalar_type(spec.dtype.c_str())));
    }
    return results;
  }

  Description description_;
  Model model_;
};

}  // namespace

std::unique_ptr<Module> open_compiled_module(const std::string& path, Description description,
                                             const Home& home) {
  return std::make_unique<CompiledModule>(path, std::move(description), home);
}

}  // namespace torchspan
