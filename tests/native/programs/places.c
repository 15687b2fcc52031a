/* SPDX-License-Identifier: MIT */
/* Run two rows that are said to be on a device: places MODEL DEVICES TYPE INDEX run|submit|STREAM.
 * A number for STREAM is one's address. Prints the status and the message or the results' sum. */
#include "raw.h"

enum { ROWS = 2, WIDTH = 64 };

int main(int count, char** arguments) {
  if (count != 6) stop("places MODEL DEVICES TYPE INDEX run|submit|STREAM");
  static float input[ROWS * WIDTH], output[ROWS * WIDTH];
  const int64_t shape[2] = {ROWS, WIDTH};
  tspan_model* model;
  tspan_array in = {input, {1, 0}, 2, {TSPAN_FLOAT, 32, 1}, shape, NULL, 0}, out = in;
  out.data = output;
  for (int i = 0; i < ROWS * WIDTH; i++) input[i] = 1;
  if (tspan_model_load(arguments[1], arguments[2], &model) != TSPAN_OK) stop(tspan_last_error());
  in.device.type = out.device.type = atoi(arguments[3]);
  in.device.index = out.device.index = atoi(arguments[4]);
  tspan_status status;
  if (strcmp(arguments[5], "run") == 0) {
    status = tspan_model_run(model, &in, 1, &out, 1);
  } else if (strcmp(arguments[5], "submit") == 0) {
    tspan_request* request;
    status = tspan_model_submit(model, &in, 1, &out, 1, &request);
    if (status == TSPAN_OK) status = tspan_request_wait(request);
  } else {
    void* stream = (void*)(uintptr_t)strtoull(arguments[5], NULL, 0);
    status = tspan_model_run_on(model, stream, &in, 1, &out, 1);
  }
  double sum = 0;
  for (int i = 0; i < ROWS * WIDTH; i++) sum += output[i];
  if (status == TSPAN_OK)
    printf("0 %.4f\n", sum);
  else
    printf("%d %s\n", status, tspan_last_error());
  return tspan_model_close(model);
}
