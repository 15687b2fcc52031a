/* SPDX-License-Identifier: MIT */
/* Memory of a GPU, by the CUDA toolkit; without one, the host's, which is that of pretended GPUs.
 */
#include "device_memory.h"

#ifdef USE_CUDA
#include <cuda_runtime_api.h>

void* device_allocate(size_t bytes) {
  void* memory = NULL;
  return cudaMalloc(&memory, bytes) == cudaSuccess ? memory : NULL;
}

void device_copy(void* to, const void* from, size_t bytes) {
  cudaMemcpy(to, from, bytes, cudaMemcpyDefault);
}

void device_free(void* memory) { cudaFree(memory); }
#else
#include <stdlib.h>
#include <string.h>

void* device_allocate(size_t bytes) { return malloc(bytes); }

void device_copy(void* to, const void* from, size_t bytes) { memcpy(to, from, bytes); }

void device_free(void* memory) { free(memory); }
#endif
