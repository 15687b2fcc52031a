/* SPDX-License-Identifier: MIT */
/* A time loop that calls a model every step, into its own memory, while it computes on. */
#include <stdio.h>
#include <stdlib.h>
#include <torchspan.h>

enum { STEPS = 20, COLUMNS = 3000, LEVELS = 64 };

static float state[COLUMNS][LEVELS], tendency[COLUMNS][LEVELS], advected[COLUMNS][LEVELS];

static void check(tspan_status status) {
  if (status == TSPAN_OK) return;
  fprintf(stderr, "%s\n", tspan_last_error());
  exit(1);
}

static void advect(void) {
  for (int i = 0; i < COLUMNS; i++) {
    const float* before = state[(i + COLUMNS - 1) % COLUMNS];
    for (int j = 0; j < LEVELS; j++) advected[i][j] = 0.5f * before[j] + 0.5f * state[i][j];
  }
}

int main(void) {
  const int64_t shape[2] = {COLUMNS, LEVELS};
  tspan_array input = {.data = state,
                       .device = {.type = 1},
                       .ndim = 2,
                       .dtype = {.kind = TSPAN_FLOAT, .bits = 32, .lanes = 1},
                       .shape = shape};
  tspan_array output = input;
  tspan_model* net;
  tspan_request* pending;
  double sum = 0;
  output.data = tendency;
  for (int i = 0; i < COLUMNS; i++)
    for (int j = 0; j < LEVELS; j++) state[i][j] = (float)((7 * i + 3 * j) % 101) / 101;

  check(tspan_model_load("tendency.pt2", "cpu:0,cpu:1", &net));
  for (int step = 0; step < STEPS; step++) {
    check(tspan_model_submit(net, &input, 1, &output, 1, &pending));
    advect(); /* while the devices work */
    check(tspan_request_wait(pending));
    for (int i = 0; i < COLUMNS; i++)
      for (int j = 0; j < LEVELS; j++) state[i][j] = advected[i][j] + 0.01f * tendency[i][j];
  }
  check(tspan_model_close(net));
  for (int i = 0; i < COLUMNS; i++)
    for (int j = 0; j < LEVELS; j++) sum += state[i][j];
  printf("mean%8.4f, first%8.4f\n", sum / (COLUMNS * LEVELS), state[0][0]);
  return 0;
}
