/* SPDX-License-Identifier: MIT */
/* Call a model many times, rightly and wrongly, and print how much memory that took for good:
 * memory MODEL DEVICES CALLS. */
#include <unistd.h>

#include "raw.h"

enum { ROWS = 4, WIDTH = 64 };

static long resident(void) {
  long whole, pages;
  FILE* file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%ld %ld", &whole, &pages) != 2) stop("no statm");
  fclose(file);
  return pages * sysconf(_SC_PAGESIZE);
}

static void call(tspan_model* model, long number) {
  static float input[ROWS * WIDTH], output[ROWS * WIDTH];
  const int64_t shape[2] = {1 + number % ROWS, WIDTH}, wrong[2] = {1, WIDTH + 1};
  /* Every other input lies in Fortran order, and so is copied. */
  const int64_t across[2] = {1, ROWS};
  tspan_array in = {input, {1, 0}, 2, {TSPAN_FLOAT, 32, 1}, shape, number % 2 ? across : NULL, 0};
  const tspan_array out = {output, {1, 0}, 2, {TSPAN_FLOAT, 32, 1}, shape, NULL, 0};
  tspan_request* request;
  if (number % 3 == 0) {
    if (tspan_model_submit(model, &in, 1, &out, 1, &request) != TSPAN_OK) stop(tspan_last_error());
    if (tspan_request_wait(request) != TSPAN_OK) stop(tspan_last_error());
  } else if (tspan_model_run(model, &in, 1, &out, 1) != TSPAN_OK) {
    stop(tspan_last_error());
  }
  in.shape = wrong;
  if (tspan_model_run(model, &in, 1, &out, 1) != TSPAN_ERROR_ARGUMENT) stop("no error");
}

int main(int count, char** arguments) {
  if (count != 4) stop("memory MODEL DEVICES CALLS");
  tspan_model* model;
  if (tspan_model_load(arguments[1], arguments[2], &model) != TSPAN_OK) stop(tspan_last_error());
  for (long i = 0; i < 2000; i++) call(model, i);
  long before = resident();
  for (long i = 0; i < atol(arguments[3]); i++) call(model, i);
  printf("%ld\n", resident() - before);
  return tspan_model_close(model);
}
