// SPDX-License-Identifier: MIT
// A build's container called through its C interface and nothing else: no check, no choice of
// build.
#include <c10/core/InferenceMode.h>
#include <dlfcn.h>
#include <torch/csrc/inductor/aoti_runtime/interface.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>

#include <cstring>

namespace {

constexpr int float32 = 6, on_cpu = 0;

AOTInductorModelContainerHandle container;
decltype(&AOTInductorModelContainerRun) run;
float* data;
std::int64_t sizes[2], strides[2];

}  // namespace

extern "C" int bare_open(const char* library, float* input, std::int64_t rows, std::int64_t width) {
  void* opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) return 0;
  auto create = reinterpret_cast<decltype(&AOTInductorModelContainerCreateWithDevice)>(
      dlsym(opened, "AOTInductorModelContainerCreateWithDevice"));
  run = reinterpret_cast<decltype(run)>(dlsym(opened, "AOTInductorModelContainerRun"));
  data = input;
  sizes[0] = rows;
  sizes[1] = strides[0] = width;
  strides[1] = 1;
  return create(&container, 1, "cpu", nullptr) == AOTI_RUNTIME_SUCCESS;
}

extern "C" void bare_run(float* output) {
  c10::InferenceMode inference;
  AtenTensorHandle given, result;
  aoti_torch_create_tensor_from_blob(data, 2, sizes, strides, 0, float32, on_cpu, 0, &given);
  run(container, &given, 1, &result, 1, nullptr, nullptr);
  void* values;
  aoti_torch_get_data_ptr(result, &values);
  std::memcpy(output, values, static_cast<std::size_t>(sizes[0] * sizes[1]) * sizeof(float));
  aoti_torch_delete_tensor_object(result);
}
