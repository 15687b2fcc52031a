/* SPDX-License-Identifier: MIT */
/* Three inputs, one of them shared by all columns, and two outputs, over two virtual CPUs. */
#include <stdio.h>
#include <stdlib.h>
#include <torchspan.h>

enum { LEVELS = 40, COLUMNS = 1001 };

static float profile[COLUMNS][LEVELS], surface[COLUMNS][2], grid[LEVELS];
static float rates[COLUMNS][LEVELS], cover[COLUMNS][1];

static void check(tspan_status status) {
  if (status == TSPAN_OK) return;
  fprintf(stderr, "%s\n", tspan_last_error());
  exit(1);
}

static tspan_array array(void* data, int ndim, const int64_t* shape) {
  return (tspan_array){.data = data,
                       .device = {.type = 1},
                       .ndim = ndim,
                       .dtype = {.kind = TSPAN_FLOAT, .bits = 32, .lanes = 1},
                       .shape = shape};
}

static double mean(const float* values, int count) {
  double sum = 0;
  for (int i = 0; i < count; i++) sum += values[i];
  return sum / count;
}

int main(void) {
  const int64_t wide[2] = {COLUMNS, LEVELS}, two[2] = {COLUMNS, 2}, one[2] = {COLUMNS, 1};
  const int64_t levels[1] = {LEVELS};
  const tspan_array inputs[3] = {array(profile, 2, wide), array(surface, 2, two),
                                 array(grid, 1, levels)};
  const tspan_array outputs[2] = {array(rates, 2, wide), array(cover, 2, one)};
  for (int i = 0; i < COLUMNS; i++) {
    for (int j = 0; j < LEVELS; j++) profile[i][j] = (float)((i + 3 * j) % 17) / 17;
    for (int j = 0; j < 2; j++) surface[i][j] = (float)((2 * i + j) % 5) / 5;
  }
  for (int j = 0; j < LEVELS; j++) grid[j] = (float)j / (LEVELS - 1);

  tspan_model* net;
  check(tspan_model_load("heating.pt2", "cpu:0,cpu:1", &net));
  check(tspan_model_run(net, inputs, 3, outputs, 2));
  printf("mean rate%8.4f, cover%8.4f\n", mean(&rates[0][0], COLUMNS * LEVELS),
         mean(&cover[0][0], COLUMNS));
  check(tspan_model_close(net));
  return 0;
}
