/* SPDX-License-Identifier: MIT */
/* Run a model three times on numbers that stay in a GPU's memory, from C. */
#include <stdio.h>
#include <stdlib.h>
#include <torchspan.h>

#include "device_memory.h"

enum { STEPS = 3, WIDTH = 5 };

static const int64_t shape[2] = {1, WIDTH};

static void check(tspan_status status) {
  if (status == TSPAN_OK) return;
  fprintf(stderr, "%s\n", tspan_last_error());
  exit(1);
}

/* An array on cuda:0: 2 is CUDA, as in DLPack. */
static tspan_array on_device(void* data) {
  return (tspan_array){.data = data,
                       .device = {.type = 2, .index = 0},
                       .ndim = 2,
                       .dtype = {.kind = TSPAN_FLOAT, .bits = 32, .lanes = 1},
                       .shape = shape};
}

int main(int argc, char** argv) {
  float v[WIDTH] = {0, 1, 2, 3, 4};
  tspan_model* net;
  if (argc != 2) {
    fprintf(stderr, "usage: gpu_arrays_infer_c MODEL\n");
    return 2;
  }
  tspan_array x = on_device(device_allocate(sizeof v)), y = on_device(device_allocate(sizeof v));
  device_copy(x.data, v, sizeof v);
  check(tspan_model_load(argv[1], "cuda:0", &net));
  for (int step = 0; step < STEPS; step++) {
    /* In the default stream: the call returns at once, and the next one waits for it. */
    check(tspan_model_run_on(net, NULL, &x, 1, &y, 1));
    const tspan_array before = x;
    x = y, y = before;
  }
  device_copy(v, x.data, sizeof v);
  printf("[%5.1f,%5.1f,%5.1f,%5.1f,%5.1f]\n", v[0], v[1], v[2], v[3], v[4]);
  check(tspan_model_close(net));
  device_free(x.data);
  device_free(y.data);
  return 0;
}
