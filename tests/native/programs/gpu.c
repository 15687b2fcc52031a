/* SPDX-License-Identifier: MIT */
/* Arrays in a GPU's memory: gpu CASE MODEL DEVICES ROWS. The model is the MLP, whose results on the
 * same rows in host memory are what every case must give. */
#include <math.h>

#include "raw.h"
#include "runtime.h"

enum { WIDTH = 64, CUDA = 2 };

static tspan_model* model;
static int64_t shape[2];
static size_t bytes;
static float *x, *wanted, *y;

static void require(tspan_status status) {
  if (status != TSPAN_OK) stop(tspan_last_error());
}

static tspan_array array(void* data, int type, int index) {
  return (tspan_array){data, {type, index}, 2, {TSPAN_FLOAT, 32, 1}, shape, NULL, 0};
}

static void run(tspan_array in, tspan_array out) {
  require(tspan_model_run(model, &in, 1, &out, 1));
}

static void compare(const char* what) {
  for (size_t i = 0; i < bytes / sizeof *y; i++) {
    if (fabsf(y[i] - wanted[i]) <= 1e-4F + 1e-3F * fabsf(wanted[i])) continue;
    fprintf(stderr, "%s: element %zu is %g, and %g was expected\n", what, i, (double)y[i],
            (double)wanted[i]);
    exit(4);
  }
  memset(y, 0x7f, bytes);
}

/* From any memory to any other, said or recognised. */
static void run_places(void) {
  void *in = gpu_memory(x, bytes), *out = gpu_memory(NULL, bytes);
  for (int said = 1; said <= CUDA; said++) {
    run(array(in, said, 0), array(out, said, 0));
    gpu_require(gpu.copy(y, out, bytes, TO_HOST));
    compare("from the device to the device");
    gpu_require(gpu.fill(out, 0, bytes));
    run(array(x, 1, 0), array(out, said, 0));
    gpu_require(gpu.copy(y, out, bytes, TO_HOST));
    compare("from the host to the device");
    run(array(in, said, 0), array(y, 1, 0));
    compare("from the device to the host");
  }
  tspan_array inside = array(in, CUDA, 0), back = array(y, 1, 0);
  require(tspan_model_run(model, &inside, 1, &back, 1));
  compare("again");
}

/* A part of an allocation that kernels would not take as it lies. */
static void run_unaligned(void) {
  char* in = gpu_memory(NULL, bytes + 4);
  char* out = gpu_memory(NULL, bytes + 4);
  gpu_require(gpu.copy(in + 4, x, bytes, TO_DEVICE));
  run(array(in + 4, CUDA, 0), array(out + 4, CUDA, 0));
  gpu_require(gpu.copy(y, out + 4, bytes, TO_HOST));
  compare("unaligned memory");
}

/* The model begins after a slow copy on the caller's stream, and a copy there begins after it. */
static void run_stream(void) {
  void *in = gpu_memory(NULL, bytes), *out = gpu_memory(NULL, bytes), *stream;
  const tspan_array from = array(in, CUDA, 0), to = array(out, CUDA, 0);
  gpu_require(gpu.make_stream(&stream, NON_BLOCKING));
  for (int round = 0; round < 20; round++) {
    void* const used = round % 2 ? stream : NULL;
    gpu_require(gpu.fill(in, 0, bytes));
    gpu_require(gpu.fill(out, 0, bytes));
    gpu_require(gpu.settle_device());
    gpu_require(gpu.copy_on(in, x, bytes, TO_DEVICE, used));
    require(tspan_model_run_on(model, used, &from, 1, &to, 1));
    gpu_require(gpu.copy_on(y, out, bytes, TO_HOST, used));
    gpu_require(gpu.settle(used));
    compare("on a stream");
  }
  const tspan_array here = array(y, 1, 0);
  gpu_require(gpu.copy_on(in, x, bytes, TO_DEVICE, stream));
  require(tspan_model_run_on(model, stream, &from, 1, &here, 1));
  compare("on a stream, to the host");
}

static void run_registered(void) {
  require(tspan_memory_register(x, bytes));
  require(tspan_memory_register(y, bytes));
  for (int round = 0; round < 3; round++) {
    run(array(x, 1, 0), array(y, 1, 0));
    compare("registered");
  }
  if (tspan_memory_register(x, bytes) != TSPAN_ERROR_ARGUMENT) stop("registered twice");
  require(tspan_memory_unregister(x));
  run(array(x, 1, 0), array(y, 1, 0));
  compare("one of them registered");
  require(tspan_memory_unregister(y));
  run(array(x, 1, 0), array(y, 1, 0));
  compare("none registered");
}

/* Errors leave nothing behind that the next kernel would find. */
static void run_wrong(void) {
  const tspan_array in = array(x, CUDA, 0), out = array(y, 1, 0), far = array(y, CUDA, 99);
  tspan_model* on_cpu;
  if (tspan_model_run(model, &in, 1, &out, 1) != TSPAN_ERROR_ARGUMENT) stop("a host's address");
  printf("%s\n", tspan_last_error());
  if (tspan_model_run(model, &out, 1, &far, 1) != TSPAN_ERROR_DEVICE) stop("no such device");
  printf("%s\n", tspan_last_error());
  if (tspan_memory_register((void*)16, 64) == TSPAN_OK) stop("memory that is nobody's");
  printf("%s\n", tspan_last_error());
  void* there = gpu_memory(x, bytes);
  const tspan_array said = array(there, CUDA, 0);
  require(tspan_model_load(getenv("MODEL"), "cpu", &on_cpu));
  if (tspan_model_run(on_cpu, &said, 1, &out, 1) != TSPAN_ERROR_ARGUMENT) stop("on a CPU");
  printf("%s\n", tspan_last_error());
  run(array(x, 1, 0), array(y, 1, 0));
  compare("after errors");
}

int main(int count, char** arguments) {
  static const struct {
    const char* name;
    void (*run)(void);
  } cases[] = {{"places", run_places},
               {"unaligned", run_unaligned},
               {"stream", run_stream},
               {"registered", run_registered},
               {"wrong", run_wrong}};
  if (count != 5) stop("gpu CASE MODEL DEVICES ROWS");
  shape[0] = atoll(arguments[4]);
  shape[1] = WIDTH;
  bytes = (size_t)(shape[0] * WIDTH) * sizeof *x;
  x = malloc(bytes), y = malloc(bytes), wanted = malloc(bytes);
  for (size_t i = 0; i < bytes / sizeof *x; i++) x[i] = (float)(i % 31) / 31;
  require(tspan_model_load(arguments[2], "cpu", &model));
  run(array(x, 1, 0), array(wanted, 1, 0));
  require(tspan_model_close(model));
  require(tspan_model_load(arguments[2], arguments[3], &model));
  gpu_open();
  gpu_require(gpu.set_device(0));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    if (strcmp(cases[i].name, arguments[1]) == 0) cases[i].run();
  }
  printf("done\n");
  return tspan_model_close(model);
}
