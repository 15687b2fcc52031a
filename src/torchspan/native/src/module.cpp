// SPDX-License-Identifier: MIT
// The C interface to modules, and what all kinds of them share.
#include "module.hpp"

#include <algorithm>
#include <mutex>
#include <shared_mutex>

namespace torchspan {
namespace {

// What a handle holds: those who run it share the lock, those who change it own it.
struct Opened {
  std::unique_ptr<Module> module;
  std::unique_ptr<std::shared_mutex> mutex = std::make_unique<std::shared_mutex>();
};

Handles<tspan_module, Opened>& modules() {
  static Handles<tspan_module, Opened> all("module");
  return all;
}

Opened& find(const tspan_module* handle) { return modules().find(handle, "module"); }

std::unique_ptr<Module> open(const std::string& path, const Home& home) {
  if (path.ends_with(".py")) return open_python_module(path, home);
  Archive archive(path);
  Description description = describe(archive);
  if (description.kind == Description::Kind::torchscript) return open_script_module(path, home);
  return open_compiled_module(path, std::move(description), home);
}

std::vector<at::Tensor> read_inputs(const Module& module, const tspan_tensor* const* handles,
                                    std::size_t count) {
  std::vector<at::Tensor> inputs;
  inputs.reserve(count);
  for (const Tensor* each : find_tensors(handles, count, "inputs")) {
    if (!(each->home == module.home())) {
      fail(TSPAN_ERROR_ARGUMENT, "inputs[", inputs.size(), "] is on ", each->home.name(),
           "; the module is on ", module.home().name(), ". Move it with tspan_tensor_to.");
    }
    inputs.push_back(each->value);
  }
  return inputs;
}

std::string describe(const Module& module) {
  std::string text;
  for (const Module::Named& each : module.parameters()) {
    text += say(each.name, ": ", dtype_name(each.value), " ", shape_text(each.value),
                each.value.requires_grad() ? ", requires gradients\n" : "\n",
                print_tensor(each.value), "\n");
  }
  return text;
}

}  // namespace

void require_results(std::size_t wanted, std::size_t given) {
  if (wanted <= given) return;
  fail(TSPAN_ERROR_ARGUMENT, wanted, wanted == 1 ? " output is" : " outputs are",
       " wanted; this model gives ", given, ". Ask for ", given, " or fewer.");
}

void Module::run(const std::vector<at::Tensor>& inputs, std::span<Tensor* const> outputs) {
  take_results(forward(inputs, false), outputs);
}

void Module::take_results(const std::vector<at::Tensor>& results,
                          std::span<Tensor* const> outputs) const {
  require_results(outputs.size(), results.size());
  // All are checked before any is written to.
  for (std::size_t index = 0; index < outputs.size(); ++index) {
    const Tensor result{results[index], home_};
    try {
      require_same_kind(result, *outputs[index]);
      require_same_shape(result.value, outputs[index]->value);
    } catch (const Error& error) {
      fail(error.code, "outputs[", index, "]: ", error.what());
    }
  }
  for (std::size_t index = 0; index < outputs.size(); ++index) {
    write_values(results[index], *outputs[index]);
  }
}

void Module::fail_run() const {
  try {
    throw;
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    const std::string what = error.what();
    if (lacks_memory(what)) {
      fail(TSPAN_ERROR_MEMORY, home_.name(),
           " has too little memory for this call: ", first_line(what.c_str()),
           ". Run smaller batches.");
    }
    fail(TSPAN_ERROR_MODEL, "the model failed on ", home_.name(), ": ", what);
  }
}

std::span<const Module::Named> Module::parameters() const {
  fail(TSPAN_ERROR_MODEL, "this module has no parameters that can be had; a TorchScript .pt has.");
}

void Module::set_training(bool training) {
  if (!training) return;
  fail(TSPAN_ERROR_MODEL, "this module cannot be trained; a TorchScript .pt can.");
}

Module::Step Module::train(const std::vector<at::Tensor>&, const at::Tensor&) {
  fail(TSPAN_ERROR_MODEL,
       "this module defines no training step of its own. Train it with a loss, "
       "tspan_tensor_backward and an optimizer.");
}

void Module::save(const std::string&) {
  fail(TSPAN_ERROR_MODEL, "this module cannot be saved; a TorchScript .pt can.");
}

}  // namespace torchspan

using namespace torchspan;

tspan_status tspan_module_load(const char* path, const char* device, tspan_module** module) {
  return giving(module, "module", [&] {
    require(path, "path");
    const Home home = find_home(device);
    return modules().add({open(path, home)});
  });
}

tspan_status tspan_module_forward(tspan_module* module, const tspan_tensor* const* inputs,
                                  size_t input_count, int gradient, tspan_tensor** outputs,
                                  size_t output_count) {
  return guarded([&] {
    if (output_count > 0) require(outputs, "outputs");
    std::fill(outputs, outputs + output_count, nullptr);
    Opened& opened = find(module);
    std::shared_lock lock(*opened.mutex);
    const bool wanted = read_flag(gradient, "gradient");
    auto results = opened.module->forward(read_inputs(*opened.module, inputs, input_count), wanted);
    require_results(output_count, results.size());
    for (std::size_t index = 0; index < output_count; ++index) {
      outputs[index] = give_tensor(std::move(results[index]), opened.module->home());
    }
  });
}

tspan_status tspan_module_run(tspan_module* module, const tspan_tensor* const* inputs,
                              size_t input_count, tspan_tensor* const* outputs,
                              size_t output_count) {
  return guarded([&] {
    Opened& opened = find(module);
    std::shared_lock lock(*opened.mutex);
    const auto found = find_tensors(outputs, output_count, "outputs");
    opened.module->run(read_inputs(*opened.module, inputs, input_count), found);
  });
}

tspan_status tspan_module_parameters(tspan_module* module, tspan_tensor** parameters,
                                     size_t capacity, size_t* count) {
  return guarded([&] {
    require(count, "count");
    if (capacity > 0) require(parameters, "parameters");
    const Module& found = *find(module).module;
    const auto all = found.parameters();
    for (std::size_t index = 0; index < std::min(capacity, all.size()); ++index) {
      parameters[index] = give_tensor(all[index].value, found.home());
    }
    *count = all.size();
  });
}

tspan_status tspan_module_parameter_name(const tspan_module* module, size_t index,
                                         const char** name) {
  return guarded([&] {
    require(name, "name");
    const auto all = find(module).module->parameters();
    if (index >= all.size()) {
      fail(TSPAN_ERROR_ARGUMENT, "there is no parameter ", index, "; the module has ", all.size(),
           ", counted from 0.");
    }
    *name = all[index].name.c_str();
  });
}

tspan_status tspan_module_text(const tspan_module* module, const char** text) {
  return guarded([&] {
    require(text, "text");
    *text = keep_text(describe(*find(module).module));
  });
}

tspan_status tspan_module_set_requires_grad(tspan_module* module, int requires_grad) {
  return guarded([&] {
    Opened& opened = find(module);
    std::unique_lock lock(*opened.mutex);
    const bool wanted = read_flag(requires_grad, "requires_grad");
    for (const Module::Named& each : opened.module->parameters()) {
      if (is_differentiable(each.value)) each.value.set_requires_grad(wanted);
    }
  });
}

tspan_status tspan_module_set_training(tspan_module* module, int training) {
  return guarded([&] {
    Opened& opened = find(module);
    std::unique_lock lock(*opened.mutex);
    opened.module->set_training(read_flag(training, "training"));
  });
}

tspan_status tspan_module_training(const tspan_module* module, int* training) {
  return guarded([&] {
    require(training, "training");
    *training = find(module).module->training() ? 1 : 0;
  });
}

tspan_status tspan_module_train(tspan_module* module, const tspan_tensor* const* inputs,
                                size_t input_count, const tspan_tensor* target, int* complete,
                                double* loss) {
  return guarded([&] {
    require(complete, "complete");
    require(loss, "loss");
    Opened& opened = find(module);
    const Tensor& wanted = find_tensor(target, "target");
    std::unique_lock lock(*opened.mutex);
    const auto given = read_inputs(*opened.module, inputs, input_count);
    const Module::Step step = opened.module->train(given, wanted.value);
    *complete = step.complete ? 1 : 0;
    *loss = step.loss;
  });
}

tspan_status tspan_module_save(tspan_module* module, const char* path) {
  return guarded([&] {
    require(path, "path");
    Opened& opened = find(module);
    std::unique_lock lock(*opened.mutex);
    opened.module->save(path);
  });
}

tspan_status tspan_module_delete(tspan_module* module) {
  return guarded([&] {
    if (module != nullptr) modules().remove(module, "module");
  });
}
