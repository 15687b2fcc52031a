/* SPDX-License-Identifier: MIT */
/* Time rows from and to host memory through a GPU, and what the parts cost alone: accelerator MODEL
 * DEVICE WIDTH ROWS ROUNDS. Prints a name and the median microseconds of each in turn. */
#include <math.h>
#include <stdint.h>
#include <time.h>

#include "runtime.h"
#include "torchspan.h"

enum { MOST_ROUNDS = 1001 };

static tspan_model* model;
static int64_t shape[2];
static size_t bytes;
static void *locked_x, *locked_y, *there_x, *there_y, *x, *y;

static void require(tspan_status status) {
  if (status == TSPAN_OK) return;
  fprintf(stderr, "%s\n", tspan_last_error());
  exit(1);
}

static tspan_array array(void* data, int type) {
  return (tspan_array){data, {type, 0}, 2, {TSPAN_FLOAT, 32, 1}, shape, NULL, 0};
}

static void run(void* from, void* to, int type) {
  const tspan_array in = array(from, type), out = array(to, type);
  require(tspan_model_run(model, &in, 1, &out, 1));
}

static void run_ordinary(void) { run(x, y, 1); }
static void run_registered(void) { run(locked_x, locked_y, 1); }
static void run_there(void) { run(there_x, there_y, 2); }

static void copy_in(void) {
  gpu_require(gpu.copy_on(there_x, locked_x, bytes, TO_DEVICE, NULL));
  gpu_require(gpu.settle(NULL));
}

static void copy_out(void) {
  gpu_require(gpu.copy_on(locked_y, there_y, bytes, TO_HOST, NULL));
  gpu_require(gpu.settle(NULL));
}

static const struct {
  const char* name;
  void (*run)(void);
} parts[] = {{"ordinary", run_ordinary},
             {"registered", run_registered},
             {"there", run_there},
             {"copy_in", copy_in},
             {"copy_out", copy_out}};

enum { PARTS = sizeof parts / sizeof *parts };

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static int compare(const void* left, const void* right) {
  const double a = *(const double*)left, b = *(const double*)right;
  return (a > b) - (a < b);
}

static void make_arrays(void) {
  float* numbers = x = malloc(bytes);
  y = malloc(bytes), locked_x = malloc(bytes), locked_y = malloc(bytes);
  for (size_t i = 0; i < bytes / sizeof *numbers; i++) numbers[i] = (float)(i % 31) / 31;
  memcpy(locked_x, x, bytes);
  memset(y, 0, bytes), memset(locked_y, 0, bytes);
  require(tspan_memory_register(locked_x, bytes));
  require(tspan_memory_register(locked_y, bytes));
  there_x = gpu_memory(x, bytes), there_y = gpu_memory(NULL, bytes);
}

int main(int count, char** arguments) {
  static double times[PARTS][MOST_ROUNDS];
  if (count != 6) return 1;
  shape[1] = atoll(arguments[3]), shape[0] = atoll(arguments[4]);
  const int rounds = atoi(arguments[5]) < MOST_ROUNDS ? atoi(arguments[5]) : MOST_ROUNDS;
  bytes = (size_t)(shape[0] * shape[1]) * sizeof(float);
  require(tspan_model_load(arguments[1], arguments[2], &model));
  gpu_open();
  make_arrays();
  for (int round = -3; round < rounds; round++) {
    for (int part = 0; part < PARTS; part++) {
      const double start = now();
      parts[part].run();
      if (round >= 0) times[part][round] = now() - start;
    }
  }
  for (size_t i = 0; i < bytes / sizeof(float); i++) {
    if (fabsf(((float*)y)[i] - ((float*)locked_y)[i]) > 1e-4F) return 2;
  }
  for (int part = 0; part < PARTS; part++) {
    qsort(times[part], (size_t)rounds, sizeof **times, compare);
    printf("%s %.3f\n", parts[part].name, times[part][rounds / 2]);
  }
  return 0;
}
