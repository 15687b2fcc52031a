/* SPDX-License-Identifier: MIT */
/* Models: TorchScript and .pt2 files as modules, and Python scripts, which run as torchspan.h runs
 * them. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensor.h"

/* Scripts by the numbers that programs hold, which are never used again, so that a copy of a
 * model that was deleted is told apart. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  tspan_model** models;
  size_t count, room;
} scripts;

static int32_t fail_unloaded(void) {
  return tspan_compat_fail(TSPAN_ERROR_ARGUMENT,
                           "this model was never loaded, or it was deleted. Call torch_model_load "
                           "first.");
}

/* The script's number from 1; 0 where no memory is left. */
static uintptr_t keep_script(tspan_model* model) {
  uintptr_t number = 0;
  pthread_mutex_lock(&lock);
  if (scripts.count == scripts.room) {
    const size_t room = scripts.room == 0 ? 8 : 2 * scripts.room;
    tspan_model** models = realloc(scripts.models, room * sizeof *models);
    if (models != NULL) {
      scripts.models = models;
      scripts.room = room;
    }
  }
  if (scripts.count < scripts.room) {
    scripts.models[scripts.count] = model;
    number = ++scripts.count;
  }
  pthread_mutex_unlock(&lock);
  return number;
}

static tspan_model* find_script(const void* handle, int take) {
  tspan_model* model = NULL;
  const uintptr_t number = (uintptr_t)handle;
  pthread_mutex_lock(&lock);
  if (number >= 1 && number <= scripts.count) {
    model = scripts.models[number - 1];
    if (take) scripts.models[number - 1] = NULL;
  }
  pthread_mutex_unlock(&lock);
  return model;
}

static tspan_status release(void* handle, int32_t is_script) {
  return is_script ? tspan_model_close(find_script(handle, 1)) : tspan_module_delete(handle);
}

int32_t tspan_ftorch_model_delete(void** at, int32_t is_script) {
  void* handle = *at;
  *at = NULL;
  return tspan_compat_check(release(handle, is_script));
}

/* For a variable that goes out of scope, which may be a copy of one that is gone. */
void tspan_ftorch_model_forget(void** at, int32_t is_script) {
  release(*at, is_script);
  *at = NULL;
}

static int is_python(const char* path) {
  const size_t length = strlen(path);
  return length > 3 && strcmp(path + length - 3, ".py") == 0;
}

static tspan_status open_script(const char* path, const char* device, void** handle) {
  tspan_model* model = NULL;
  const tspan_status status = tspan_model_load(path, device, &model);
  if (status != TSPAN_OK) return status;
  *handle = (void*)keep_script(model);
  if (*handle != NULL) return TSPAN_OK;
  tspan_model_close(model);
  return tspan_error_keep(TSPAN_ERROR_MEMORY, "the host has too little memory for a model.");
}

static tspan_status open_module(const char* path, const char* device, int32_t requires_grad,
                                int32_t is_training, void** handle) {
  tspan_module* module = NULL;
  tspan_status status = tspan_module_load(path, device, &module);
  if (status == TSPAN_OK && is_training) status = tspan_module_set_training(module, 1);
  if (status == TSPAN_OK && requires_grad) status = tspan_module_set_requires_grad(module, 1);
  if (status == TSPAN_OK)
    *handle = module;
  else
    tspan_module_delete(module);
  return status;
}

int32_t tspan_ftorch_model_load(void** at, int32_t* is_script, const char* path,
                                int32_t device_type, int32_t index, int32_t requires_grad,
                                int32_t is_training) {
  char device[24];
  void* handle = NULL;
  if (!tspan_ftorch_device(device_type, index, device)) return TSPAN_ERROR_DEVICE;
  const int python = is_python(path);
  if (python && (requires_grad || is_training))
    return tspan_compat_fail(TSPAN_ERROR_ARGUMENT,
                             "%s is a Python script, which is run without gradients. Leave "
                             "requires_grad and is_training out, or save its model as .pt.",
                             path);
  const tspan_status status = python
                                  ? open_script(path, device, &handle)
                                  : open_module(path, device, requires_grad, is_training, &handle);
  if (status != TSPAN_OK) return tspan_compat_check(status);
  if (*at != NULL) release(*at, *is_script);
  *at = handle;
  *is_script = python;
  return TSPAN_OK;
}

static tspan_status view_all(tspan_tensor* const* tensors, size_t count, tspan_array* arrays) {
  tspan_status status = TSPAN_OK;
  for (size_t i = 0; i < count && status == TSPAN_OK; i++)
    status = tspan_tensor_view(tensors[i], &arrays[i]);
  return status;
}

static int32_t run_script(void* handle, tspan_tensor* const* inputs, size_t input_count,
                          tspan_tensor* const* outputs, size_t output_count) {
  tspan_model* model = find_script(handle, 0);
  if (model == NULL) return fail_unloaded();
  tspan_array* arrays = malloc((input_count + output_count + 1) * sizeof *arrays);
  if (arrays == NULL)
    return tspan_compat_fail(TSPAN_ERROR_MEMORY, "the host has too little memory for this call.");
  tspan_status status = view_all(inputs, input_count, arrays);
  if (status == TSPAN_OK) status = view_all(outputs, output_count, arrays + input_count);
  if (status == TSPAN_OK)
    status = tspan_model_run(model, arrays, input_count, arrays + input_count, output_count);
  free(arrays);
  return tspan_compat_check(status);
}

/* An output that was made with requires_grad is no leaf of this step's graph, but its result. */
static int32_t take_result(tspan_tensor* result, tspan_tensor** output) {
  int wanted = 0;
  if (*output != NULL && tspan_tensor_requires_grad(*output, &wanted) == TSPAN_OK && wanted)
    tspan_tensor_set_requires_grad(*output, 0);
  return tspan_ftorch_land(result, output, 1);
}

static int32_t run_with_graph(tspan_module* module, tspan_tensor* const* inputs, size_t input_count,
                              tspan_tensor** outputs, size_t output_count) {
  tspan_tensor** results = malloc((output_count + 1) * sizeof(tspan_tensor*));
  if (results == NULL)
    return tspan_compat_fail(TSPAN_ERROR_MEMORY, "the host has too little memory for this call.");
  int32_t status = tspan_compat_check(tspan_module_forward(
      module, (const tspan_tensor* const*)inputs, input_count, 1, results, output_count));
  for (size_t i = 0; i < output_count && results[i] != NULL; i++) {
    if (status == TSPAN_OK)
      status = take_result(results[i], &outputs[i]);
    else
      tspan_tensor_delete(results[i]);
  }
  free(results);
  return status;
}

int32_t tspan_ftorch_model_forward(void* handle, int32_t is_script, tspan_tensor* const* inputs,
                                   int32_t input_count, tspan_tensor** outputs,
                                   int32_t output_count, int32_t requires_grad) {
  if (handle == NULL) return fail_unloaded();
  if (is_script && requires_grad)
    return tspan_compat_fail(TSPAN_ERROR_ARGUMENT,
                             "a Python script gives no gradients. Save its model as .pt.");
  if (is_script)
    return run_script(handle, inputs, (size_t)input_count, outputs, (size_t)output_count);
  if (requires_grad)
    return run_with_graph(handle, inputs, (size_t)input_count, outputs, (size_t)output_count);
  return tspan_compat_check(tspan_module_run(handle, (const tspan_tensor* const*)inputs,
                                             (size_t)input_count, outputs, (size_t)output_count));
}

int32_t tspan_ftorch_model_save(void* handle, int32_t is_script, const char* path) {
  if (handle == NULL) return fail_unloaded();
  if (!is_script) return tspan_compat_check(tspan_module_save(handle, path));
  tspan_model* model = find_script(handle, 0);
  return model == NULL ? fail_unloaded() : tspan_compat_check(tspan_model_save(model, path));
}

/* What a script cannot be asked for; 1 if the model can. */
static int is_module(const void* handle, int32_t is_script) {
  if (handle == NULL)
    fail_unloaded();
  else if (is_script)
    tspan_compat_fail(TSPAN_ERROR_ARGUMENT,
                      "a Python script's parameters stay in Python. Save its model as .pt.");
  return handle != NULL && !is_script;
}

int32_t tspan_ftorch_model_parameters(void* handle, int32_t is_script, tspan_tensor** parameters,
                                      int32_t capacity) {
  size_t count = 0;
  if (!is_module(handle, is_script)) return TSPAN_ERROR_ARGUMENT;
  const tspan_status status = tspan_module_parameters(handle, NULL, 0, &count);
  if (status != TSPAN_OK) return tspan_compat_check(status);
  if (count != (size_t)capacity)
    return tspan_compat_fail(TSPAN_ERROR_ARGUMENT,
                             "output_tensors has %d tensors; the model has %zu parameters. Give "
                             "%zu.",
                             capacity, count, count);
  return tspan_compat_check(tspan_module_parameters(handle, parameters, count, &count));
}

int32_t tspan_ftorch_model_print(void* handle, int32_t is_script) {
  const char* text;
  if (!is_module(handle, is_script)) return TSPAN_ERROR_ARGUMENT;
  const tspan_status status = tspan_module_text(handle, &text);
  if (status != TSPAN_OK) return tspan_compat_check(status);
  fputs(text, stdout);
  fflush(stdout);
  return TSPAN_OK;
}

int32_t tspan_ftorch_model_is_training(void* handle, int32_t is_script) {
  int training = 0;
  if (handle == NULL) fail_unloaded();
  if (handle != NULL && !is_script) tspan_compat_check(tspan_module_training(handle, &training));
  return training;
}
