/* SPDX-License-Identifier: MIT */
/* Find a and b of the line a x + b through measured points, by gradients. */
#include <stdio.h>
#include <stdlib.h>

#include "torchspan_tensor.h"

enum { POINTS = 50 };

static void check(tspan_status status) {
  if (status == TSPAN_OK) return;
  fprintf(stderr, "%s\n", tspan_last_error());
  exit(1);
}

/* A tensor over an array of ours: what torch computes is seen in the array. */
static tspan_tensor* wrap(double* data, int64_t size, int requires_grad) {
  const tspan_array array = {data, {1, 0}, 1, {TSPAN_FLOAT, 64, 1}, &size, NULL, 0};
  tspan_tensor* tensor;
  check(tspan_tensor_wrap(&array, requires_grad, &tensor));
  return tensor;
}

int main(void) {
  double time[POINTS], measured[POINTS], slope[1] = {0}, start[1] = {0};
  for (int i = 0; i < POINTS; i++) {
    time[i] = 0.1 * i;
    measured[i] = 3 * time[i] - 2;
  }
  tspan_tensor *x = wrap(time, POINTS, 0), *y = wrap(measured, POINTS, 0);
  tspan_tensor *a = wrap(slope, 1, 1), *b = wrap(start, 1, 1);
  const tspan_tensor* parameters[] = {a, b};
  tspan_sgd options = TSPAN_SGD_DEFAULTS;
  options.learning_rate = 0.01;
  options.momentum = 0.9;
  tspan_optimizer* optimizer;
  check(tspan_optimizer_sgd(parameters, 2, &options, &optimizer));
  for (int step = 0; step < 500; step++) {
    tspan_tensor *product, *line, *loss;
    check(tspan_optimizer_zero_gradients(optimizer));
    check(tspan_tensor_multiply(a, x, &product));
    check(tspan_tensor_add(product, b, &line));
    check(tspan_loss_mse(line, y, TSPAN_MEAN, &loss));
    check(tspan_tensor_backward(loss, NULL, 0));
    check(tspan_optimizer_step(optimizer));
    tspan_tensor* made[] = {product, line, loss};
    for (int i = 0; i < 3; i++) check(tspan_tensor_delete(made[i]));
  }
  printf("%.3f x + %.3f\n", slope[0], start[0]);
  tspan_tensor* kept[] = {x, y, a, b};
  for (int i = 0; i < 4; i++) check(tspan_tensor_delete(kept[i]));
  check(tspan_optimizer_delete(optimizer));
  return 0;
}
