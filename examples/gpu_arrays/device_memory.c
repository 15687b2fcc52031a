/* SPDX-License-Identifier: MIT */
/* Memory of a GPU; where there is none, or no CUDA toolkit, the host's, as of pretended GPUs. */
#include "device_memory.h"

#include <stdlib.h>
#include <string.h>

#ifdef USE_CUDA
#include <cuda_runtime_api.h>

static int has_gpu(void) {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

void* device_allocate(size_t bytes) {
  void* memory = NULL;
  if (!has_gpu()) return malloc(bytes);
  return cudaMalloc(&memory, bytes) == cudaSuccess ? memory : NULL;
}

void device_copy(void* to, const void* from, size_t bytes) {
  if (!has_gpu())
    memcpy(to, from, bytes);
  else
    cudaMemcpy(to, from, bytes, cudaMemcpyDefault);
}

void device_free(void* memory) {
  if (!has_gpu())
    free(memory);
  else
    cudaFree(memory);
}
#else
void* device_allocate(size_t bytes) { return malloc(bytes); }

void device_copy(void* to, const void* from, size_t bytes) { memcpy(to, from, bytes); }

void device_free(void* memory) { free(memory); }
#endif
