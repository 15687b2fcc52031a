/* SPDX-License-Identifier: MIT */
/* Train the network of a Python script from C, save it and run it. */
#include <stdio.h>
#include <stdlib.h>
#include <torchspan.h>

static void check(tspan_status status) {
  if (status == TSPAN_OK) return;
  fprintf(stderr, "%s\n", tspan_last_error());
  exit(1);
}

static tspan_array array(float* data, const int64_t* shape) {
  return (tspan_array){.data = data,
                       .device = {.type = 1},
                       .ndim = 2,
                       .dtype = {.kind = TSPAN_FLOAT, .bits = 32, .lanes = 1},
                       .shape = shape};
}

int main(int argc, char** argv) {
  float x[5][5] = {{0}}, twice[5][5] = {{0}}, row[5] = {0, 1, 2, 3, 4}, y[5];
  const int64_t square[2] = {5, 5}, single[2] = {1, 5};
  const tspan_array inputs = array(&x[0][0], square), targets = array(&twice[0][0], square);
  const tspan_array input = array(row, single), output = array(y, single);
  double loss;
  int completed = 0;
  if (argc != 2) {
    fprintf(stderr, "usage: script_train_c SCRIPT\n");
    return 2;
  }
  for (int i = 0; i < 5; i++) x[i][i] = 1, twice[i][i] = 2;

  tspan_model* net;
  check(tspan_model_load(argv[1], "cpu", &net));
  while (!completed) check(tspan_model_train(net, &inputs, 1, &targets, 1, &loss, &completed));
  check(tspan_model_save(net, "doubling.pt"));
  check(tspan_model_run(net, &input, 1, &output, 1));
  printf("%5.1f,%5.1f,%5.1f,%5.1f,%5.1f\n", y[0], y[1], y[2], y[3], y[4]);
  check(tspan_model_close(net));
  return 0;
}
