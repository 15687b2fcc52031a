/* SPDX-License-Identifier: MIT */
/* CUDA's or ROCm's runtime, which the library has loaded with torch: no toolkit is needed. */
#ifndef RUNTIME_H
#define RUNTIME_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef RTLD_DEFAULT /* older headers have it only for GNU programs */
#define RTLD_DEFAULT ((void*)0)
#endif

enum { TO_DEVICE = 1, TO_HOST = 2, NON_BLOCKING = 1 };

static struct {
  int (*set_device)(int);
  int (*allocate)(void**, size_t);
  int (*release)(void*);
  int (*copy)(void*, const void*, size_t, int);
  int (*copy_on)(void*, const void*, size_t, int, void*);
  int (*fill)(void*, int, size_t);
  int (*make_stream)(void**, unsigned);
  int (*settle)(void*);
  int (*settle_device)(void);
} gpu;

static inline void gpu_require(int status) {
  if (status == 0) return;
  fprintf(stderr, "the runtime says %d\n", status);
  exit(3);
}

static inline void gpu_find(const char* name, void* function) {
  char symbol[64];
  void* found = NULL;
  for (int i = 0; i < 2 && found == NULL; i++) {
    snprintf(symbol, sizeof symbol, "%s%s", i ? "hip" : "cuda", name);
    found = dlsym(RTLD_DEFAULT, symbol);
  }
  if (found == NULL) {
    fprintf(stderr, "no %s in this process\n", symbol);
    exit(3);
  }
  memcpy(function, &found, sizeof found);
}

static inline void gpu_open(void) {
  gpu_find("SetDevice", &gpu.set_device);
  gpu_find("Malloc", &gpu.allocate);
  gpu_find("Free", &gpu.release);
  gpu_find("Memcpy", &gpu.copy);
  gpu_find("MemcpyAsync", &gpu.copy_on);
  gpu_find("Memset", &gpu.fill);
  gpu_find("StreamCreateWithFlags", &gpu.make_stream);
  gpu_find("StreamSynchronize", &gpu.settle);
  gpu_find("DeviceSynchronize", &gpu.settle_device);
}

/* Memory of the current device, with a copy of `from` in it. */
static inline void* gpu_memory(const void* from, size_t bytes) {
  void* memory = NULL;
  gpu_require(gpu.allocate(&memory, bytes));
  if (from) gpu_require(gpu.copy(memory, from, bytes, TO_DEVICE));
  return memory;
}

#endif
