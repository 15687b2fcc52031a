// SPDX-License-Identifier: MIT
// AOTInductor builds through torch's loader, which serves every device and every operator.
#include <c10/core/InferenceMode.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include "runner.hpp"
#include "status.hpp"
#include "tensors.hpp"

namespace torchspan {
namespace {

class Package : public Runner {
 public:
  Package(const std::filesystem::path& folder, const at::Device& device, int calls)
      : device_(device),
        loader_(folder.string(), "model", false, static_cast<std::size_t>(calls),
                device.is_cpu() ? -1 : device.index()) {}

  void run(std::span<const View> inputs, const Landing& landing) override {
    c10::InferenceMode inference;
    std::vector<at::Tensor> given;
    for (const View& view : inputs) given.push_back(make_tensor(view, device_));
    std::vector<at::Tensor> results = loader_.boxed_run(std::move(given));
    landing.expect(results.size());
    for (std::size_t index = 0; index < results.size(); ++index) {
      at::Tensor here = fetch_tensor(results[index]);
      landing.take(index, view_tensor(here));
    }
  }

 private:
  at::Device device_;
  torch::inductor::AOTIModelPackageLoader loader_;
};

}  // namespace

std::shared_ptr<Runner> open_package(const std::filesystem::path& folder, const Device& device,
                                     int calls) {
  try {
    return std::make_shared<Package>(folder, at::Device(device.backing), calls);
  } catch (const std::exception& error) {
    fail(TSPAN_ERROR_MODEL_FILE, "the build in ", folder.string(),
         " cannot be opened: ", first_line(error.what()));
  }
}

}  // namespace torchspan
