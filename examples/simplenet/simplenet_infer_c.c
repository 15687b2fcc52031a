/* SPDX-License-Identifier: MIT */
/* Run the saved SimpleNet from C. */
#include <stdio.h>
#include <stdlib.h>
#include <torchspan.h>

static void check(tspan_status status) {
  if (status == TSPAN_OK) return;
  fprintf(stderr, "%s\n", tspan_last_error());
  exit(1);
}

int main(int argc, char** argv) {
  float x[5] = {0, 1, 2, 3, 4}, y[5];
  const int64_t shape[2] = {1, 5};
  tspan_array input = {.data = x,
                       .device = {.type = 1},
                       .ndim = 2,
                       .dtype = {.kind = TSPAN_FLOAT, .bits = 32, .lanes = 1},
                       .shape = shape};
  tspan_array output = input;
  output.data = y;
  if (argc != 2) {
    fprintf(stderr, "usage: simplenet_infer_c MODEL\n");
    return 2;
  }

  tspan_model* net;
  check(tspan_model_load(argv[1], "cpu", &net));
  check(tspan_model_run(net, &input, 1, &output, 1));
  printf("%5.1f,%5.1f,%5.1f,%5.1f,%5.1f\n", y[0], y[1], y[2], y[3], y[4]);
  check(tspan_model_close(net));
  return 0;
}
