/* SPDX-License-Identifier: MIT */
/* Call scripts from the threads of OpenMP, which are this program's and torch's: teams SCRIPT... */
#include <omp.h>

#include "raw.h"

enum { SIZE = 1000 };

static const int64_t shape[1] = {SIZE};

static tspan_array array_of(float* data) {
  tspan_array array = {data, {1, 0}, 1, {TSPAN_FLOAT, 32, 1}, shape, NULL, 0};
  return array;
}

int main(int count, char** given) {
  tspan_model* models[8];
  int wrong = 0;
  for (int i = 1; i < count; i++)
    if (tspan_model_load(given[i], "cpu", &models[i - 1])) stop(tspan_last_error());
#pragma omp parallel for num_threads(4) reduction(+ : wrong)
  for (int call = 0; call < 200; call++) {
    float x[SIZE], y[SIZE];
    for (int i = 0; i < SIZE; i++) x[i] = (float)(call + i);
    const tspan_array in = array_of(x), out = array_of(y);
    if (tspan_model_run(models[call % (count - 1)], &in, 1, &out, 1)) stop(tspan_last_error());
    for (int i = 0; i < SIZE; i++) wrong += y[i] != x[i] * (float)(1 + call % (count - 1));
  }
  printf("%d\n", wrong);
  return 0;
}
