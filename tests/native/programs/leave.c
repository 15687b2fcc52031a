/* SPDX-License-Identifier: MIT */
/* End the program while devices work for it: leave MODEL DEVICES. */
#include "raw.h"

enum { ROWS = 20000, WIDTH = 64 };

int main(int count, char** arguments) {
  if (count != 3) stop("leave MODEL DEVICES");
  const int64_t shape[2] = {ROWS, WIDTH};
  tspan_array in = {calloc(ROWS * WIDTH, 4), {1, 0}, 2, {TSPAN_FLOAT, 32, 1}, shape, NULL, 0};
  tspan_array out = in;
  tspan_model* model;
  tspan_request* request;
  int done = 1;
  out.data = calloc(ROWS * WIDTH, 4);
  if (tspan_model_load(arguments[1], arguments[2], &model) != TSPAN_OK) stop(tspan_last_error());
  for (int i = 0; i < 3; i++) {
    if (tspan_model_submit(model, &in, 1, &out, 1, &request) != TSPAN_OK) stop(tspan_last_error());
  }
  if (tspan_request_test(request, &done) != TSPAN_OK) stop(tspan_last_error());
  printf("%s\n", done ? "done" : "under way");
  return 0;
}
