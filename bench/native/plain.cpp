// SPDX-License-Identifier: MIT
// The plain way to call TorchScript from a compiled program: the input wrapped once, forward, the
// result copied out.
#include <torch/script.h>

#include <cstring>

namespace {

torch::jit::Module module;
std::vector<torch::jit::IValue> inputs;

}  // namespace

extern "C" int plain_open(const char* path, float* input, int64_t rows, int64_t width) {
  try {
    module = torch::jit::load(path);
    module.eval();
    inputs = {torch::from_blob(input, {rows, width})};
    return 1;
  } catch (const std::exception&) {
    return 0;
  }
}

extern "C" void plain_run(float* output) {
  torch::NoGradGuard no_gradients;
  at::Tensor result = module.forward(inputs).toTensor();
  std::memcpy(output, result.data_ptr<float>(), result.nbytes());
}
