/* SPDX-License-Identifier: MIT */
/* What the Fortran modules call: the C interface, with handles and descriptors taken apart. */
#include "capture.h"
#include "handle.h"

static void free_model(void* model) { tspan_model_close(model); }

static void free_request(void* request) { tspan_request_wait(request); }

static int32_t fail_without_model(void) {
  return tspan_fortran_fail(TSPAN_ERROR_ARGUMENT,
                            "this model is not open: it was never loaded, or closed. Call load "
                            "first.");
}

static int32_t fail_without_memory(void) {
  return tspan_fortran_fail(TSPAN_ERROR_MEMORY, "no memory is left for a handle.");
}

int32_t tspan_fortran_load(handle* to, const char* path, const char* devices) {
  tspan_model* model = NULL;
  if (tspan_abi_version() != TSPAN_ABI_VERSION)
    return tspan_fortran_fail(TSPAN_ERROR,
                              "libtorchspan has binary interface %d, and this program's Fortran "
                              "module was built for %d. Build both again.",
                              tspan_abi_version(), TSPAN_ABI_VERSION);
  const int32_t status = tspan_model_load(path, devices, &model);
  if (status != TSPAN_OK) return tspan_fortran_pass(status);
  if (tspan_fortran_handle_make(to, model, free_model)) return TSPAN_OK;
  tspan_model_close(model);
  return fail_without_memory();
}

int32_t tspan_fortran_describe(const handle* from, const char** json) {
  const tspan_model* model = tspan_fortran_handle_get(from);
  if (model == NULL) return fail_without_model();
  return tspan_fortran_pass(tspan_model_describe(model, json));
}

int32_t tspan_fortran_save(const handle* from, const char* path) {
  tspan_model* model = tspan_fortran_handle_get(from);
  if (model == NULL) return fail_without_model();
  return tspan_fortran_pass(tspan_model_save(model, path));
}

typedef struct task {
  tspan_model* model;
  array_list inputs, outputs;
} task;

/* `role` is what y is called in messages. */
static int32_t open_task(task* to, const handle* from, const CFI_cdesc_t* x, const CFI_cdesc_t* y,
                         const char* role) {
  to->model = tspan_fortran_handle_get(from);
  if (to->model == NULL) return fail_without_model();
  int32_t status = tspan_fortran_list(&to->inputs, x, "input");
  if (status != TSPAN_OK) return status;
  status = tspan_fortran_list(&to->outputs, y, role);
  if (status != TSPAN_OK) tspan_fortran_list_free(&to->inputs);
  return status;
}

static int32_t close_task(task* from, int32_t status) {
  tspan_fortran_list_free(&from->outputs);
  tspan_fortran_list_free(&from->inputs);
  return tspan_fortran_pass(status);
}

int32_t tspan_fortran_run(const handle* from, const CFI_cdesc_t* x, const CFI_cdesc_t* y) {
  task call;
  const int32_t status = open_task(&call, from, x, y, "output");
  if (status != TSPAN_OK) return status;
  return close_task(&call, tspan_model_run(call.model, call.inputs.arrays, call.inputs.count,
                                           call.outputs.arrays, call.outputs.count));
}

int32_t tspan_fortran_train(const handle* from, const CFI_cdesc_t* x, const CFI_cdesc_t* target,
                            double* loss, int32_t* completed) {
  task step;
  int answer = 0;
  int32_t status = open_task(&step, from, x, target, "target");
  if (status != TSPAN_OK) return status;
  status = tspan_model_train(step.model, step.inputs.arrays, step.inputs.count, step.outputs.arrays,
                             step.outputs.count, loss, &answer);
  *completed = answer;
  return close_task(&step, status);
}

int32_t tspan_fortran_run_on(const handle* from, intptr_t stream, const CFI_cdesc_t* x,
                             const CFI_cdesc_t* y) {
  task call;
  const int32_t status = open_task(&call, from, x, y, "output");
  if (status != TSPAN_OK) return status;
  return close_task(
      &call, tspan_model_run_on(call.model, (void*)stream, call.inputs.arrays, call.inputs.count,
                                call.outputs.arrays, call.outputs.count));
}

int32_t tspan_fortran_submit(const handle* from, const CFI_cdesc_t* x, const CFI_cdesc_t* y,
                             handle* to) {
  tspan_request* request = NULL;
  task call;
  int32_t status = open_task(&call, from, x, y, "output");
  if (status != TSPAN_OK) return status;
  status = close_task(&call, tspan_model_submit(call.model, call.inputs.arrays, call.inputs.count,
                                                call.outputs.arrays, call.outputs.count, &request));
  if (status != TSPAN_OK) return status;
  if (tspan_fortran_handle_make(to, request, free_request)) return TSPAN_OK;
  tspan_request_wait(request);
  return fail_without_memory();
}

static int32_t fail_without_request(void) {
  return tspan_fortran_fail(TSPAN_ERROR_ARGUMENT,
                            "this request was never submitted, or it was waited for already.");
}

int32_t tspan_fortran_test(const handle* from, int32_t* done) {
  tspan_request* request = tspan_fortran_handle_get(from);
  int answer = 0;
  if (request == NULL) return fail_without_request();
  const int32_t status = tspan_request_test(request, &answer);
  *done = answer;
  return tspan_fortran_pass(status);
}

int32_t tspan_fortran_wait(handle* from) {
  tspan_request* request = tspan_fortran_handle_take(from);
  if (request == NULL) return fail_without_request();
  return tspan_fortran_pass(tspan_request_wait(request));
}

int32_t tspan_fortran_placement(tspan_placement* placement) {
  return tspan_fortran_pass(tspan_placement_find(placement));
}

int32_t tspan_fortran_devices(const char* spec, tspan_device* devices, size_t capacity,
                              size_t* count) {
  return tspan_fortran_pass(tspan_devices_find(spec, devices, capacity, count));
}
