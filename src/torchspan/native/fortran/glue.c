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

int32_t tspan_fortran_train(const handle* from, const CFI_cdesc_t* x, const CFI_cdesc_t* target,
                            double* loss, int32_t* completed) {
  tspan_model* model = tspan_fortran_handle_get(from);
  array_list inputs, targets;
  int answer = 0;
  if (model == NULL) return fail_without_model();
  int32_t status = tspan_fortran_list(&inputs, x, "input");
  if (status != TSPAN_OK) return status;
  status = tspan_fortran_list(&targets, target, "target");
  if (status == TSPAN_OK) {
    status = tspan_fortran_pass(tspan_model_train(model, inputs.arrays, inputs.count,
                                                  targets.arrays, targets.count, loss, &answer));
    *completed = answer;
    tspan_fortran_list_free(&targets);
  }
  tspan_fortran_list_free(&inputs);
  return status;
}

int32_t tspan_fortran_save(const handle* from, const char* path) {
  tspan_model* model = tspan_fortran_handle_get(from);
  if (model == NULL) return fail_without_model();
  return tspan_fortran_pass(tspan_model_save(model, path));
}

/* Run, or submit where there is room for a request. */
static int32_t start(const handle* from, const CFI_cdesc_t* x, const CFI_cdesc_t* y,
                     tspan_request** request) {
  tspan_model* model = tspan_fortran_handle_get(from);
  array_list inputs, outputs;
  if (model == NULL) return fail_without_model();
  int32_t status = tspan_fortran_list(&inputs, x, "input");
  if (status != TSPAN_OK) return status;
  status = tspan_fortran_list(&outputs, y, "output");
  if (status == TSPAN_OK) {
    if (request != NULL)
      status = tspan_model_submit(model, inputs.arrays, inputs.count, outputs.arrays, outputs.count,
                                  request);
    else
      status = tspan_model_run(model, inputs.arrays, inputs.count, outputs.arrays, outputs.count);
    tspan_fortran_pass(status);
    tspan_fortran_list_free(&outputs);
  }
  tspan_fortran_list_free(&inputs);
  return status;
}

int32_t tspan_fortran_run(const handle* from, const CFI_cdesc_t* x, const CFI_cdesc_t* y) {
  return start(from, x, y, NULL);
}

int32_t tspan_fortran_submit(const handle* from, const CFI_cdesc_t* x, const CFI_cdesc_t* y,
                             handle* to) {
  tspan_request* request = NULL;
  const int32_t status = start(from, x, y, &request);
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
