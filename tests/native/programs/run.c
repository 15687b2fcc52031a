/* SPDX-License-Identifier: MIT */
/* Run a model on arrays from files: run MODEL DEVICES run|submit IN... -- OUT... */
#include "raw.h"

#define MOST_ARRAYS 8

static raw opened[MOST_ARRAYS];
static tspan_array arrays[MOST_ARRAYS];

static void require(tspan_status status) {
  if (status == TSPAN_OK) return;
  printf("%d %s\n", status, tspan_last_error());
  exit(0);
}

static void submit(tspan_model* model, size_t inputs, size_t outputs) {
  tspan_request* request;
  tspan_array copies[MOST_ARRAYS];
  memcpy(copies, arrays, sizeof copies);
  require(tspan_model_submit(model, copies, inputs, copies + inputs, outputs, &request));
  /* The descriptions were copied, so they may go. */
  memset(copies, 0xff, sizeof copies);
  int done = 0;
  require(tspan_request_test(request, &done));
  require(tspan_request_wait(request));
}

int main(int count, char** arguments) {
  if (count < 4) stop("run MODEL DEVICES run|submit IN... -- OUT...");
  size_t number = 0, inputs = 0;
  int loading = 1;
  for (int i = 4; i < count; i++) {
    if (strcmp(arguments[i], "--") == 0) {
      loading = 0;
      inputs = number;
      continue;
    }
    raw_open(&opened[number], arguments[i], loading);
    arrays[number] = opened[number].array;
    number++;
  }
  size_t outputs = number - inputs;
  tspan_model* model;
  const char* json;
  int takes, gives;
  require(tspan_model_load(arguments[1], arguments[2], &model));
  require(tspan_model_describe(model, &json));
  require(tspan_model_counts(model, &takes, &gives));
  if (strcmp(arguments[3], "submit") == 0) {
    submit(model, inputs, outputs);
  } else {
    require(tspan_model_run(model, arrays, inputs, arrays + inputs, outputs));
  }
  for (size_t i = inputs; i < number; i++) raw_write(&opened[i]);
  printf("0 %d %d %s\n", takes, gives, json);
  require(tspan_model_close(model));
  return 0;
}
