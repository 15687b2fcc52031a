// SPDX-License-Identifier: MIT
// One AOTInductor build for the CPU, called through its own C interface: the shortest way in.
#include <c10/core/InferenceMode.h>
#include <dlfcn.h>
#include <torch/csrc/inductor/aoti_runtime/interface.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>

#include <array>
#include <atomic>
#include <mutex>

#include "cache.hpp"
#include "runner.hpp"
#include "status.hpp"

namespace torchspan {
namespace {

constexpr int on_cpu = 0;  // c10::DeviceType::CPU

// Each container holds the weights once more; of a small build that is worth its shorter calls.
constexpr std::uintmax_t light_bytes = 8 << 20;

// Tensors that C owns until they are given away.
class Handles {
 public:
  explicit Handles(std::size_t count) : count_(count) {
    if (count > few_.size()) many_.resize(count);
    handles_ = count > few_.size() ? many_.data() : few_.data();
    give_away();
  }
  ~Handles() {
    for (std::size_t index = 0; index < count_; ++index) {
      if (handles_[index] != nullptr) aoti_torch_delete_tensor_object(handles_[index]);
    }
  }
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  AtenTensorHandle* data() { return handles_; }
  AtenTensorHandle& operator[](std::size_t index) { return handles_[index]; }
  std::size_t size() const { return count_; }
  void give_away() { std::fill(handles_, handles_ + count_, nullptr); }

 private:
  // Most models have a few, which then cost no allocation a call.
  std::array<AtenTensorHandle, 8> few_;
  std::vector<AtenTensorHandle> many_;
  AtenTensorHandle* handles_;
  std::size_t count_;
};

void require_torch(AOTITorchError code) {
  if (code != AOTI_TORCH_SUCCESS) throw std::runtime_error("torch could not make a tensor");
}

// A build's message; of a check of indices, which keeps no message of its own, what it means.
std::string explain(const std::string& text) {
  if (text.empty()) return "the build does not say why";
  const bool check =
      text.find("Expected u") != text.npos && text.find(">= 1 but received 0") != text.npos;
  if (!check) return text;
  return "an index is out of range, as of an embedding or a gather, or a check of the model's own "
         "failed (" +
         first_line(text.c_str()) + ")";
}

View view_result(AtenTensorHandle tensor) {
  View view;
  std::int32_t type = 0;
  std::int64_t ndim = 0, *sizes = nullptr, *strides = nullptr;
  void* data = nullptr;
  require_torch(aoti_torch_get_dtype(tensor, &type));
  require_torch(aoti_torch_get_dim(tensor, &ndim));
  require_torch(aoti_torch_get_sizes(tensor, &sizes));
  require_torch(aoti_torch_get_strides(tensor, &strides));
  require_torch(aoti_torch_get_data_ptr(tensor, &data));
  view.dtype = find_dtype(type);
  if (view.dtype == nullptr || ndim > most_dimensions) {
    throw std::runtime_error("it gave a result of a kind that torchspan does not know");
  }
  view.data = static_cast<char*>(data);
  view.ndim = static_cast<int>(ndim);
  std::copy(sizes, sizes + ndim, view.sizes);
  std::copy(strides, strides + ndim, view.strides);
  return view;
}

class Container : public Runner {
 public:
  Container(const std::filesystem::path& library, int calls) {
    const bool light = std::filesystem::file_size(library) <= light_bytes;
    // Never closed again: a build's threads and their memory may outlive the model.
    void* opened = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) {
      fail(TSPAN_ERROR_MODEL_FILE, "the build ", library.string(),
           " cannot be opened: ", ::dlerror());
    }
    find(opened, "AOTInductorModelContainerRun", run_);
    find(opened, "AOTInductorModelContainerRunSingleThreaded", run_alone_);
    find(opened, "AOTInductorModelContainerDelete", delete_);
    find(opened, "AOTInductorModelContainerGetNumOutputs", count_);
    find(opened, "AOTInductorModelContainerCreateWithDevice", create_);
    // Builds made by torch 2.11 cannot say what went wrong.
    message_ = reinterpret_cast<decltype(message_)>(::dlsym(opened, "AOTInductorGetLastError"));
    require_success(create_(&container_, static_cast<std::size_t>(calls), "cpu", nullptr));
    if (light) require_success(create_(&alone_, 1, "cpu", nullptr));
    require_success(count_(container_, &outputs_));
  }
  ~Container() override {
    if (container_ != nullptr) delete_(container_);
    if (alone_ != nullptr) delete_(alone_);
  }

  void run(std::span<const View> inputs, const Landing& landing) override {
    c10::InferenceMode inference;
    Handles given(inputs.size());
    for (std::size_t index = 0; index < inputs.size(); ++index) {
      const View& view = inputs[index];
      require_torch(aoti_torch_create_tensor_from_blob(view.data, view.ndim, view.sizes,
                                                       view.strides, 0, view.dtype->torch, on_cpu,
                                                       0, &given[index]));
    }
    Handles results(outputs_);
    auto code = call(given, results);
    // The build takes its inputs over, whether it succeeds or not.
    given.give_away();
    require_success(code);
    landing.expect(results.size());
    for (std::size_t index = 0; index < results.size(); ++index) {
      landing.take(index, view_result(results[index]));
    }
  }

 private:
  template <class Function>
  void find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(library, name));
    if (function == nullptr) {
      fail(TSPAN_ERROR_MODEL_FILE, "the build is none of AOTInductor: it has no ", name,
           ". Save the model again.");
    }
  }

  void require_success(AOTIRuntimeError code) const {
    if (code == AOTI_RUNTIME_SUCCESS) return;
    const char* text = nullptr;
    if (message_ != nullptr) message_(&text);
    throw std::runtime_error(explain(text == nullptr ? "" : text));
  }

  // The call that is alone takes the container that needs no locks; others take the shared one.
  AOTIRuntimeError call(Handles& given, Handles& results) {
    const bool alone = alone_ != nullptr && !taken_.test_and_set(std::memory_order_acquire);
    auto code = (alone ? run_alone_ : run_)(alone ? alone_ : container_, given.data(), given.size(),
                                            results.data(), results.size(), nullptr, nullptr);
    if (alone) taken_.clear(std::memory_order_release);
    return code;
  }

  decltype(&AOTInductorModelContainerRun) run_ = nullptr, run_alone_ = nullptr;
  decltype(&AOTInductorModelContainerDelete) delete_ = nullptr;
  decltype(&AOTInductorModelContainerGetNumOutputs) count_ = nullptr;
  decltype(&AOTInductorModelContainerCreateWithDevice) create_ = nullptr;
  decltype(&AOTInductorGetLastError) message_ = nullptr;
  AOTInductorModelContainerHandle container_ = nullptr, alone_ = nullptr;
  std::atomic_flag taken_;
  std::size_t outputs_ = 0;
};

// Loads are done one at a time, as they change what is shared by the whole process.
std::mutex loading;

}  // namespace

std::shared_ptr<Runner> open_build(const std::filesystem::path& folder, const Device& device,
                                   int calls) {
  std::lock_guard lock(loading);
  std::vector<std::filesystem::path> libraries;
  bool proxied = false;
  for (const auto& each : std::filesystem::directory_iterator(folder / opened_folder)) {
    std::string name = each.path().filename();
    if (name.ends_with(".so")) libraries.push_back(each.path());
    if (name.ends_with(".json") && name.find("extern") != name.npos) proxied = true;
  }
  if (!device.on_cpu() || proxied || libraries.size() != 1) {
    return open_package(folder, device, calls);
  }
  return std::make_shared<Container>(libraries.front(), calls);
}

}  // namespace torchspan
