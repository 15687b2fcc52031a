/* SPDX-License-Identifier: MIT */
/* Time calls of a .pt2 through torchspan and of a .pt the plain way, in turn: calls NET.pt2 NET.pt
 * WIDTH ROWS. Prints the median microseconds a call of each. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "torchspan.h"

enum { ROUNDS = 31 };

int plain_open(const char* path, float* input, int64_t rows, int64_t width);
void plain_run(float* output);

static tspan_model* model;
static tspan_array in, out;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static void run_span(void) {
  if (tspan_model_run(model, &in, 1, &out, 1) == TSPAN_OK) return;
  fprintf(stderr, "%s\n", tspan_last_error());
  exit(1);
}

static void run_plain(void) { plain_run(out.data); }

static double time_calls(void (*call)(void), int calls) {
  double start = now();
  for (int i = 0; i < calls; i++) call();
  return (now() - start) / calls;
}

static int compare(const void* left, const void* right) {
  double a = *(const double*)left, b = *(const double*)right;
  return (a > b) - (a < b);
}

int main(int count, char** arguments) {
  if (count != 5) return 1;
  const int64_t width = atoll(arguments[3]), rows = atoll(arguments[4]);
  const int64_t shape[2] = {rows, width};
  double span[ROUNDS], plain[ROUNDS];
  in = (tspan_array){
      calloc((size_t)(rows * width), 4), {1, 0}, 2, {TSPAN_FLOAT, 32, 1}, shape, NULL, 0};
  out = in;
  out.data = calloc((size_t)(rows * width), 4);
  for (int64_t i = 0; i < rows * width; i++) ((float*)in.data)[i] = (float)(i % 31) / 31;
  if (tspan_model_load(arguments[1], "cpu", &model) != TSPAN_OK ||
      !plain_open(arguments[2], in.data, rows, width)) {
    fprintf(stderr, "cannot open: %s\n", tspan_last_error());
    return 1;
  }
  for (int i = 0; i < 20; i++) run_span(), run_plain();
  const int calls = 1 + (int)(10000 / time_calls(run_plain, 10));
  for (int i = 0; i < ROUNDS; i++) {
    span[i] = time_calls(run_span, calls);
    plain[i] = time_calls(run_plain, calls);
  }
  qsort(span, ROUNDS, sizeof *span, compare);
  qsort(plain, ROUNDS, sizeof *plain, compare);
  printf("%.3f %.3f\n", span[ROUNDS / 2], plain[ROUNDS / 2]);
  return 0;
}
