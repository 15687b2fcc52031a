/* SPDX-License-Identifier: MIT */
/* Use one module from ten threads at once, with and without gradients, and a training loop of each
 * thread's own: tensor_threads MODEL.pt, which takes float32 (rows, 3) and gives (rows, 2) first.
 */
#include <math.h>
#include <pthread.h>

#include "raw.h"
#include "torchspan_tensor.h"

enum { THREADS = 10, CALLS = 40, ROWS = 5 };

static tspan_module* module;
static float expected[THREADS][ROWS * 2], gradients[THREADS][ROWS * 3];

static tspan_tensor* wrap(float* data, int64_t columns, int requires_grad) {
  const int64_t shape[2] = {ROWS, columns};
  const tspan_array array = {data, {1, 0}, 2, {TSPAN_FLOAT, 32, 1}, shape, NULL, 0};
  tspan_tensor* tensor;
  return tspan_tensor_wrap(&array, requires_grad, &tensor) == TSPAN_OK ? tensor : NULL;
}

static void fill(int thread, float* input) {
  for (int i = 0; i < ROWS * 3; i++) input[i] = (float)((i * (thread + 3)) % 17) / 17;
}

static const char* differ(const float* one, const float* other, int count) {
  for (int i = 0; i < count; i++) {
    if (fabsf(one[i] - other[i]) > 1e-5f) return "a result is wrong";
  }
  return NULL;
}

/* Run once, and differentiate the sum of the result: into `output` and `slopes`. */
static const char* compute(int thread, float* output, float* slopes) {
  float input[ROWS * 3];
  tspan_tensor *results[2], *total, *gradient;
  fill(thread, input);
  tspan_tensor *x = wrap(input, 3, 1), *y = wrap(output, 2, 0), *g = wrap(slopes, 3, 0);
  const tspan_tensor* inputs[1] = {x};
  if (tspan_module_run(module, inputs, 1, &y, 1) != TSPAN_OK) return "a run failed";
  if (tspan_module_forward(module, inputs, 1, 1, results, 2) != TSPAN_OK) return "a forward failed";
  if (tspan_tensor_sum(results[0], &total) != TSPAN_OK) return "a sum failed";
  if (tspan_tensor_backward(total, NULL, 0) != TSPAN_OK) return "a backward failed";
  if (tspan_tensor_gradient(x, &gradient) != TSPAN_OK) return "no gradient";
  if (tspan_tensor_assign(gradient, g) != TSPAN_OK) return "an assignment failed";
  if (tspan_tensor_add(x, y, &total) != TSPAN_ERROR_ARGUMENT) return "no error";
  if (!strstr(tspan_last_error(), "do not fit")) return "another thread's message";
  tspan_tensor* made[] = {x, y, g, results[0], results[1], gradient};
  for (int i = 0; i < 6; i++) tspan_tensor_delete(made[i]);
  return NULL;
}

static void* work(void* argument) {
  int thread = (int)(intptr_t)argument;
  for (int call = 0; call < CALLS; call++) {
    float output[ROWS * 2] = {0}, slopes[ROWS * 3] = {0};
    const char* said = compute(thread, output, slopes);
    if (!said) said = differ(output, expected[thread], ROWS * 2);
    if (!said) said = differ(slopes, gradients[thread], ROWS * 3);
    if (said) return (void*)(intptr_t)said;
  }
  return NULL;
}

int main(int count, char** arguments) {
  pthread_t threads[THREADS];
  int wrong = 0;
  if (count != 2) stop("tensor_threads MODEL.pt");
  if (tspan_module_load(arguments[1], NULL, &module) != TSPAN_OK) stop(tspan_last_error());
  for (int i = 0; i < THREADS; i++) {
    const char* said = compute(i, expected[i], gradients[i]);
    if (said) stop(said);
  }
  for (int i = 0; i < THREADS; i++) {
    if (pthread_create(&threads[i], NULL, work, (void*)(intptr_t)i)) stop("no thread");
  }
  for (int i = 0; i < THREADS; i++) {
    void* said;
    pthread_join(threads[i], &said);
    if (said) printf("%s\n", (const char*)said), wrong = 1;
  }
  /* Left open on purpose: what lives until a program ends must not hurt it. */
  printf("%s\n", wrong ? "wrong" : "right");
  return 0;
}
