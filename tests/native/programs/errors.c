/* SPDX-License-Identifier: MIT */
/* Go wrong in every way that a call can, one after another, and then right:
 * errors MODEL CUT BAD.pt HUNGRY.pt.
 *
 * MODEL takes float32 (batch, 64) and gives the same; CUT is truncated, BAD raises for any input,
 * and HUNGRY wants more memory than there is. */
#include "raw.h"

static tspan_model* model;
static float input[2 * 64], output[2 * 64];
static int64_t shape[2] = {2, 64};

static tspan_array array_of(float* data) {
  tspan_array array = {data, {1, 0}, 2, {TSPAN_FLOAT, 32, 1}, shape, NULL, 0};
  return array;
}

static void report(const char* what, tspan_status status) {
  printf("%s|%d|%s\n", what, status, status == TSPAN_OK ? "" : tspan_last_error());
}

static void load(const char* what, const char* path, const char* devices) {
  tspan_model* opened = (tspan_model*)&shape;
  tspan_status status = tspan_model_load(path, devices, &opened);
  report(what, status);
  if (opened != NULL) stop("a handle came out of a load that failed");
}

static void run(const char* what, tspan_array in, tspan_array out) {
  report(what, tspan_model_run(model, &in, 1, &out, 1));
}

static void give_wrong_inputs(void) {
  const tspan_array right = array_of(input), out = array_of(output);
  const int64_t wide[2] = {2, 65}, negative[2] = {-2, 64}, cube[3] = {2, 8, 8};
  tspan_array wrong = right, two[2] = {right, right};
  wrong.dtype.bits = 64;
  run("input dtype", wrong, out);
  wrong = right, wrong.dtype.lanes = 4;
  run("input lanes", wrong, out);
  wrong = right, wrong.shape = wide;
  run("input size", wrong, out);
  wrong = right, wrong.shape = negative;
  run("input negative", wrong, out);
  wrong = right, wrong.shape = cube, wrong.ndim = 3;
  run("input rank", wrong, out);
  wrong = right, wrong.ndim = 99;
  run("input ndim", wrong, out);
  wrong = right, wrong.shape = NULL;
  run("input shape", wrong, out);
  wrong = right, wrong.data = NULL;
  run("input data", wrong, out);
  wrong = right, wrong.device.type = 2;
  run("input device", wrong, out);
  report("input count", tspan_model_run(model, two, 2, &out, 1));
  report("input null", tspan_model_run(model, NULL, 1, &out, 1));
  report("null on a stream", tspan_model_run_on(model, NULL, NULL, 1, &out, 1));
}

static void give_wrong_outputs(void) {
  const tspan_array right = array_of(output), in = array_of(input);
  const int64_t long_[2] = {3, 64}, narrow[2] = {2, 63}, still[2] = {0, 1};
  tspan_array wrong = right;
  wrong.dtype.kind = TSPAN_INT;
  run("output dtype", in, wrong);
  wrong = right, wrong.shape = long_;
  run("output rows", in, wrong);
  wrong = right, wrong.shape = narrow;
  run("output size", in, wrong);
  wrong = right, wrong.ndim = 1;
  run("output rank", in, wrong);
  wrong = right, wrong.device.type = 2;
  run("output device", in, wrong);
  wrong = right, wrong.strides = still;
  run("output strides", in, wrong);
  report("output count", tspan_model_run(model, &in, 1, NULL, 0));
  for (int i = 0; i < 2 * 64; i++) {
    if (output[i] != -1.0f) stop("an output was written to");
  }
}

static void give_null(void) {
  const tspan_array in = array_of(input), out = array_of(output);
  tspan_request* request;
  const char* json;
  int number;
  tspan_model* none;
  report("null load", tspan_model_load(NULL, "cpu", &none));
  report("null model", tspan_model_load("x", "cpu", NULL));
  report("null run", tspan_model_run(NULL, &in, 1, &out, 1));
  report("null submit", tspan_model_submit(NULL, &in, 1, &out, 1, &request));
  report("null request", tspan_model_submit(model, &in, 1, &out, 1, NULL));
  report("null test", tspan_request_test(NULL, &number));
  report("null wait", tspan_request_wait(NULL));
  report("null describe", tspan_model_describe(NULL, &json));
  report("null json", tspan_model_describe(model, NULL));
  report("null counts", tspan_model_counts(model, &number, NULL));
  report("null close", tspan_model_close(NULL));
}

static void fail_inside(const char* how, const char* path, const char* devices) {
  const tspan_array in = array_of(input), out = array_of(output);
  char what[32];
  tspan_model* bad;
  tspan_request* request;
  if (tspan_model_load(path, devices, &bad) != TSPAN_OK) stop(tspan_last_error());
  snprintf(what, sizeof what, "%s run", how);
  report(what, tspan_model_run(bad, &in, 1, &out, 1));
  snprintf(what, sizeof what, "%s submit", how);
  report(what, tspan_model_submit(bad, &in, 1, &out, 1, &request));
  snprintf(what, sizeof what, "%s wait", how);
  report(what, tspan_request_wait(request));
  snprintf(what, sizeof what, "%s close", how);
  report(what, tspan_model_close(bad));
}

int main(int count, char** arguments) {
  if (count != 5) stop("errors MODEL CUT BAD.pt HUNGRY.pt");
  for (int i = 0; i < 2 * 64; i++) output[i] = -1.0f;
  load("missing", "no/such/file.pt2", "cpu");
  load("folder", ".", "cpu");
  load("truncated", arguments[2], "cpu");
  load("no device", arguments[1], "cuda:7");
  load("no list", arguments[1], "some thing");
  if (tspan_model_load(arguments[1], "cpu", &model) != TSPAN_OK) stop(tspan_last_error());
  give_null();
  give_wrong_inputs();
  give_wrong_outputs();
  fail_inside("raise", arguments[3], "cpu");
  fail_inside("raise", arguments[3], "cpu:0,cpu:1");
  fail_inside("memory", arguments[4], "cpu");
  fail_inside("memory", arguments[4], "cpu:0,cpu:1");
  run("right", array_of(input), array_of(output));
  report("close", tspan_model_close(model));
  run("closed", array_of(input), array_of(output));
  report("close again", tspan_model_close(model));
  return 0;
}
