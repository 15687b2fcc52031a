/* SPDX-License-Identifier: MIT */
/* Run the saved SimpleNet on two devices of one kind at the same time, from C. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <torchspan.h>

static const int64_t shape[2] = {1, 5};

static void check(tspan_status status) {
  if (status == TSPAN_OK) return;
  fprintf(stderr, "%s\n", tspan_last_error());
  exit(1);
}

static tspan_array row(float* data) {
  return (tspan_array){.data = data,
                       .device = {.type = 1},
                       .ndim = 2,
                       .dtype = {.kind = TSPAN_FLOAT, .bits = 32, .lanes = 1},
                       .shape = shape};
}

static void show(const char* what, int i, const float* v) {
  printf("%s on device %d: [%5.1f,%5.1f,%5.1f,%5.1f,%5.1f]\n", what, i, v[0], v[1], v[2], v[3],
         v[4]);
}

int main(int argc, char** argv) {
  float x[2][5], y[2][5];
  char device[32];
  tspan_model* nets[2];
  tspan_request* requests[2];
  if (argc != 3) {
    fprintf(stderr, "usage: multigpu_infer_c DEVICE_TYPE MODEL\n");
    return 2;
  }
  const int count = strcmp(argv[1], "mps") == 0 ? 1 : 2; /* no machine has more than one MPS */

  for (int i = 0; i < count; i++) {
    for (int j = 0; j < 5; j++) x[i][j] = (float)(i + j);
    show("input", i, x[i]);
    const tspan_array input = row(x[i]), output = row(y[i]);
    snprintf(device, sizeof device, "%s:%d", argv[1], i);
    check(tspan_model_load(argv[2], device, &nets[i]));
    check(tspan_model_submit(nets[i], &input, 1, &output, 1, &requests[i]));
  }
  for (int i = 0; i < count; i++) {
    check(tspan_request_wait(requests[i]));
    show("output", i, y[i]);
    check(tspan_model_close(nets[i]));
  }
  return 0;
}
