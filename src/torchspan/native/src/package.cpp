// SPDX-License-Identifier: MIT
// AOTInductor builds through torch's loader, which serves every device and every operator.
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include "runner.hpp"
#include "status.hpp"
#include "tensors.hpp"

namespace torchspan {
namespace {

class Package : public TensorRunner {
 public:
  Package(const std::filesystem::path& folder, const at::Device& device, int calls)
      : loader_(folder.string(), "model", false, static_cast<std::size_t>(calls),
                device.is_cpu() ? -1 : device.index()) {}

  std::vector<at::Tensor> compute(std::vector<at::Tensor> inputs) override {
    return loader_.boxed_run(std::move(inputs));
  }

 private:
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
