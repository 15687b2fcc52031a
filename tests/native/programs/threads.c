/* SPDX-License-Identifier: MIT */
/* Call one model from ten threads at once, each of which also errs: threads MODEL DEVICES ROWS
 * CALLS. */
#include <pthread.h>

#include "raw.h"

enum { THREADS = 10, WIDTH = 64 };

static tspan_model* model;
static const char *path, *devices;
static int64_t rows, calls;
static float *inputs[THREADS], *expected[THREADS];

static void fill(int thread, float* input) {
  for (int64_t i = 0; i < rows * WIDTH; i++) input[i] = (float)((i * (thread + 3)) % 17) / 17;
}

static tspan_status run(tspan_model* opened, float* input, float* output, int64_t width) {
  const int64_t shape[2] = {rows, WIDTH}, given[2] = {rows, width};
  const tspan_array in = {input, {1, 0}, 2, {TSPAN_FLOAT, 32, 1}, given, NULL, 0};
  const tspan_array out = {output, {1, 0}, 2, {TSPAN_FLOAT, 32, 1}, shape, NULL, 0};
  return tspan_model_run(opened, &in, 1, &out, 1);
}

static void* work(void* argument) {
  int thread = (int)(intptr_t)argument;
  const size_t bytes = sizeof(float) * (size_t)(rows * WIDTH);
  float *input = inputs[thread], *output = malloc(bytes);
  char message[512];
  tspan_model* own;
  if (tspan_model_load(path, devices, &own) != TSPAN_OK) return "a load failed";
  for (int64_t call = 0; call < calls; call++) {
    memset(output, 0, bytes);
    if (run(call % 2 ? model : own, input, output, WIDTH) != TSPAN_OK) return "a run failed";
    for (int64_t i = 0; i < rows * WIDTH; i++) {
      float off = output[i] - expected[thread][i];
      if (off > 1e-5f || off < -1e-5f) return "a result is wrong";
    }
    if (run(model, input, output, 30 + thread) != TSPAN_ERROR_ARGUMENT) return "no error";
    snprintf(message, sizeof message, "(%d, %d)", (int)rows, 30 + thread);
    if (!strstr(tspan_last_error(), message)) return "another thread's message";
  }
  free(output);
  return tspan_model_close(own) == TSPAN_OK ? NULL : "a close failed";
}

int main(int count, char** arguments) {
  if (count != 5) stop("threads MODEL DEVICES ROWS CALLS");
  pthread_t threads[THREADS];
  int wrong = 0;
  path = arguments[1], devices = arguments[2];
  rows = atoll(arguments[3]), calls = atoll(arguments[4]);
  if (tspan_model_load(path, devices, &model) != TSPAN_OK) stop(tspan_last_error());
  for (int i = 0; i < THREADS; i++) {
    inputs[i] = malloc(sizeof(float) * (size_t)(rows * WIDTH));
    expected[i] = malloc(sizeof(float) * (size_t)(rows * WIDTH));
    fill(i, inputs[i]);
    if (run(model, inputs[i], expected[i], WIDTH) != TSPAN_OK) stop(tspan_last_error());
  }
  for (int i = 0; i < THREADS; i++) {
    if (pthread_create(&threads[i], NULL, work, (void*)(intptr_t)i)) stop("no thread");
  }
  for (int i = 0; i < THREADS; i++) {
    void* said;
    pthread_join(threads[i], &said);
    if (said == NULL) continue;
    printf("%s\n", (const char*)said);
    wrong = 1;
  }
  /* Left open on purpose: workers must end by themselves when the program does. */
  printf("%s\n", wrong ? "wrong" : "right");
  return 0;
}
