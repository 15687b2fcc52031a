/* SPDX-License-Identifier: MIT */
/* One model for any number of rows: a column, a row of columns, and a whole grid in one call. */
#include <stdio.h>
#include <stdlib.h>
#include <torchspan.h>

enum { LEVELS = 4, NX = 6, NY = 5 };

static void check(tspan_status status) {
  if (status == TSPAN_OK) return;
  fprintf(stderr, "%s\n", tspan_last_error());
  exit(1);
}

static double run(tspan_model* net, float* grid, int columns) {
  float result[NX * NY * LEVELS];
  const int64_t shape[2] = {columns, LEVELS};
  tspan_array input = {.data = grid,
                       .device = {.type = 1},
                       .ndim = 2,
                       .dtype = {.kind = TSPAN_FLOAT, .bits = 32, .lanes = 1},
                       .shape = shape};
  tspan_array output = input;
  double sum = 0;
  output.data = result;
  check(tspan_model_run(net, &input, 1, &output, 1));
  for (int i = 0; i < columns * LEVELS; i++) sum += result[i];
  return sum;
}

int main(void) {
  float grid[NX * NY * LEVELS]; /* (NY, NX, LEVELS) */
  for (int i = 0; i < NX * NY * LEVELS; i++) grid[i] = (float)(i % 11) / 11;

  tspan_model* net;
  check(tspan_model_load("column.pt2", "cpu", &net));
  const double one = run(net, grid, 1), row = run(net, grid, NX);
  const double whole = run(net, grid, NX * NY); /* seen as (NX * NY, LEVELS) */
  printf("sums of 1, %d and %d columns:%9.4f%9.4f%9.4f\n", NX, NX * NY, one, row, whole);
  check(tspan_model_close(net));
  return 0;
}
