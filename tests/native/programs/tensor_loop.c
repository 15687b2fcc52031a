/* SPDX-License-Identifier: MIT */
/* Make tensors again in every step of a training loop, and err in each, then print by how many
 * bytes that grew and how many nanoseconds a tensor over an array costs: tensor_loop MODEL.pt
 * STEPS.
 *
 * MODEL takes float32 (4, 3) and gives (4, 2) first. */
#include <time.h>
#include <unistd.h>

#include "raw.h"
#include "torchspan_tensor.h"

static float input[12], result[8], wanted[8], weights[8], loss_value[1];
static const int64_t wide[2] = {4, 3}, narrow[2] = {4, 2}, one[1] = {1};
static tspan_module* module;
static tspan_optimizer *adam, *sgd;
static tspan_tensor *loss, *leaf, *odd;

static void check(tspan_status status) {
  if (status != TSPAN_OK) stop(tspan_last_error());
}

static tspan_tensor* wrap(float* data, int32_t ndim, const int64_t* shape, int requires_grad) {
  const tspan_array array = {data, {1, 0}, ndim, {TSPAN_FLOAT, 32, 1}, shape, NULL, 0};
  tspan_tensor* tensor;
  check(tspan_tensor_wrap(&array, requires_grad, &tensor));
  return tensor;
}

/* Through the module, from its inputs to its parameters. */
static void train_module(void) {
  tspan_tensor *x = wrap(input, 2, wide, 1), *y = wrap(result, 2, narrow, 0);
  tspan_tensor *own, *gradient, *none;
  const tspan_tensor *inputs[1] = {x}, *few[1] = {y};
  check(tspan_optimizer_zero_gradients(adam));
  check(tspan_module_forward(module, inputs, 1, 1, &own, 1));
  check(tspan_tensor_assign(own, y));
  check(tspan_tensor_backward(y, own, 0));
  check(tspan_tensor_gradient(x, &gradient));
  check(tspan_optimizer_step(adam));
  check(tspan_module_run(module, inputs, 1, &y, 1));
  if (tspan_module_forward(module, few, 1, 1, &none, 1) != TSPAN_ERROR_MODEL) stop("no error");
  tspan_tensor* made[] = {x, y, own, gradient};
  for (size_t i = 0; i < sizeof made / sizeof *made; i++) check(tspan_tensor_delete(made[i]));
}

/* Tensors alone, all made again but the leaf and the loss. */
static void train_leaf(void) {
  tspan_tensor *target = wrap(wanted, 2, narrow, 0), *y = wrap(result, 2, narrow, 0);
  tspan_tensor *square, *value, *none;
  check(tspan_tensor_zero_gradient(leaf));
  check(tspan_tensor_multiply(leaf, leaf, &square));
  check(tspan_tensor_assign(square, y));
  check(tspan_loss_mse(y, target, TSPAN_MEAN, &value));
  check(tspan_tensor_assign(value, loss));
  check(tspan_tensor_backward(loss, NULL, 0));
  check(tspan_optimizer_step(sgd));
  if (tspan_tensor_add(leaf, odd, &none) != TSPAN_ERROR_ARGUMENT || none) stop("no error");
  tspan_tensor* made[] = {target, y, square, value};
  for (size_t i = 0; i < sizeof made / sizeof *made; i++) check(tspan_tensor_delete(made[i]));
}

static void step(long number) {
  train_leaf();
  if (number % 10 == 0) train_module();
}

static long resident(void) {
  long whole, pages;
  FILE* file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%ld %ld", &whole, &pages) != 2) stop("no statm");
  fclose(file);
  return pages * sysconf(_SC_PAGESIZE);
}

static double time_wraps(int count) {
  struct timespec start, end;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
  for (int i = 0; i < count; i++) check(tspan_tensor_delete(wrap(input, 2, wide, 0)));
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
  return ((double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec)) /
         count;
}

int main(int count, char** arguments) {
  tspan_tensor* parameters[16];
  size_t there;
  if (count != 3) stop("tensor_loop MODEL.pt STEPS");
  check(tspan_module_load(arguments[1], "cpu", &module));
  check(tspan_module_parameters(module, parameters, 16, &there));
  check(tspan_optimizer_adam((const tspan_tensor* const*)parameters, there, NULL, &adam));
  for (size_t i = 0; i < there; i++) check(tspan_tensor_delete(parameters[i]));
  for (int i = 0; i < 12; i++) input[i] = (float)i / 12;
  for (int i = 0; i < 8; i++) wanted[i] = (float)i, weights[i] = 1;
  loss = wrap(loss_value, 1, one, 0);
  odd = wrap(input, 2, wide, 0);
  leaf = wrap(weights, 2, narrow, 1);
  check(tspan_optimizer_sgd((const tspan_tensor* const*)&leaf, 1, NULL, &sgd));
  for (long i = 0; i < 5000; i++) step(i);
  long before = resident();
  for (long i = 0; i < atol(arguments[2]); i++) step(i);
  printf("%ld ", resident() - before);
  time_wraps(100000);
  printf("%.0f\n", time_wraps(1000000));
  tspan_tensor* kept[] = {loss, odd, leaf};
  for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) check(tspan_tensor_delete(kept[i]));
  check(tspan_optimizer_delete(adam));
  check(tspan_optimizer_delete(sgd));
  return tspan_module_delete(module);
}
