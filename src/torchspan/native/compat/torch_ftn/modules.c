/* SPDX-License-Identifier: MIT */
/* Modules and scripts: opened, run, trained and saved. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "glue.h"

enum { USE_DEVICE = 1, USE_INFERENCE_MODE = 2 };

void torch_ftn_module_free(ftn_module* module) {
  tspan_optimizer_delete(module->optimizer);
  tspan_module_delete(module->module);
  *module = (ftn_module){NULL, NULL, ""};
}

static int32_t find_device(int32_t flags, char* name) {
  tspan_device device;
  size_t count;
  if (flags < 0 || flags > (USE_DEVICE | USE_INFERENCE_MODE))
    return tspan_compat_fail(TSPAN_ERROR_ARGUMENT,
                             "flags are %d; they are 0 or a sum of module_use_device and "
                             "module_use_inference_mode.",
                             (int)flags);
  strcpy(name, "cpu:0");
  if ((flags & USE_DEVICE) == 0) return TSPAN_OK;
  const tspan_status status = tspan_devices_find("rank", &device, 1, &count);
  if (status != TSPAN_OK) return tspan_compat_check(status);
  if (strncmp(device.name, "cpu", 3) == 0)
    return tspan_compat_fail(TSPAN_ERROR_DEVICE,
                             "module_use_device asks for an accelerator, and this process has "
                             "none. Load the module without the flag, or set "
                             "TORCHSPAN_PRETEND_CUDA=1 to try the program without one.");
  strcpy(name, device.name);
  return TSPAN_OK;
}

void torch_ftn_load(ftn_module* module, const char* path, int32_t flags) {
  torch_ftn_module_free(module);
  if (find_device(flags, module->device) == TSPAN_OK)
    tspan_compat_check(tspan_module_load(path, module->device, &module->module));
}

static int32_t require_loaded(const ftn_module* module) {
  if (module->module != NULL) return TSPAN_OK;
  return tspan_compat_fail(TSPAN_ERROR_ARGUMENT, "this module is not loaded: call load first.");
}

static tspan_status fail_memory(void) {
  return tspan_error_keep(TSPAN_ERROR_MEMORY, "no memory is left for a list of tensors.");
}

/* The tensors of a call on the module's device; those that were not there are copies. */
typedef struct moved {
  tspan_tensor **here, **copies;
  size_t count;
} moved;

static void free_moved(moved* tensors) {
  for (size_t i = 0; i < tensors->count; i++)
    if (tensors->copies[i] != NULL) tspan_tensor_delete(tensors->copies[i]);
  free(tensors->here);
}

static tspan_status move(const ftn_module* module, tspan_tensor* const* from, size_t count,
                         moved* to) {
  *to = (moved){calloc(2 * count + 1, sizeof *to->here), NULL, count};
  if (to->here == NULL) {
    to->count = 0;
    return fail_memory();
  }
  to->copies = to->here + count;
  for (size_t i = 0; i < count; i++) {
    tspan_device device;
    tspan_status status = tspan_tensor_device(from[i], &device);
    to->here[i] = from[i];
    if (status == TSPAN_OK && strcmp(device.name, module->device) != 0) {
      status = tspan_tensor_to(from[i], NULL, module->device, &to->copies[i]);
      to->here[i] = to->copies[i];
    }
    if (status != TSPAN_OK) return status;
  }
  return TSPAN_OK;
}

void torch_ftn_forward(const ftn_module* module, tspan_tensor* const* inputs, int64_t count,
                       ftn_tensor* output) {
  moved given;
  tspan_tensor* result = NULL;
  if (require_loaded(module) != TSPAN_OK) return;
  tspan_status status = move(module, inputs, (size_t)count, &given);
  if (status == TSPAN_OK)
    status = tspan_module_forward(module->module, (const tspan_tensor* const*)given.here,
                                  given.count, 0, &result, 1);
  free_moved(&given);
  tspan_compat_check(status);
  /* Only now, because the output of one call may be an input of the next. */
  torch_ftn_tensor_free(output);
  output->tensor = result;
}

void torch_ftn_optimizer(ftn_module* module, float learning_rate) {
  tspan_sgd options = TSPAN_SGD_DEFAULTS;
  size_t count = 0;
  if (require_loaded(module) != TSPAN_OK) return;
  tspan_optimizer_delete(module->optimizer);
  module->optimizer = NULL;
  options.learning_rate = learning_rate;
  tspan_status status = tspan_module_parameters(module->module, NULL, 0, &count);
  tspan_tensor** parameters = calloc(count + 1, sizeof *parameters);
  if (parameters == NULL) status = fail_memory();
  if (status == TSPAN_OK)
    status = tspan_module_parameters(module->module, parameters, count, &count);
  if (status == TSPAN_OK)
    status = tspan_optimizer_sgd((const tspan_tensor* const*)parameters, count, &options,
                                 &module->optimizer);
  for (size_t i = 0; parameters != NULL && i < count; i++) tspan_tensor_delete(parameters[i]);
  free(parameters);
  tspan_compat_check(status);
}

static tspan_status step(ftn_module* module, moved* given, float* loss) {
  const size_t count = given->count - 1;
  tspan_tensor *result = NULL, *error = NULL;
  double value = NAN;
  tspan_status status = tspan_module_set_training(module->module, 1);
  if (status == TSPAN_OK)
    status = tspan_module_forward(module->module, (const tspan_tensor* const*)given->here, count, 1,
                                  &result, 1);
  if (status == TSPAN_OK) status = tspan_loss_mse(result, given->here[count], TSPAN_MEAN, &error);
  if (status == TSPAN_OK) status = tspan_optimizer_zero_gradients(module->optimizer);
  if (status == TSPAN_OK) status = tspan_tensor_backward(error, NULL, 0);
  if (status == TSPAN_OK) status = tspan_optimizer_step(module->optimizer);
  if (status == TSPAN_OK) status = tspan_tensor_value(error, &value);
  tspan_tensor_delete(error);
  tspan_tensor_delete(result);
  *loss = (float)value;
  return status;
}

/* Inputs and target of a step on the module's device; the target is the last. */
static tspan_status move_step(const ftn_module* module, tspan_tensor* const* inputs, size_t count,
                              tspan_tensor* target, moved* to) {
  tspan_tensor** all = calloc(count + 1, sizeof *all);
  *to = (moved){NULL, NULL, 0};
  if (all == NULL) return fail_memory();
  for (size_t i = 0; i < count; i++) all[i] = inputs[i];
  all[count] = target;
  const tspan_status status = move(module, all, count + 1, to);
  free(all);
  return status;
}

void torch_ftn_train(ftn_module* module, tspan_tensor* const* inputs, int64_t count,
                     tspan_tensor* target, float* loss) {
  moved given;
  *loss = NAN;
  if (require_loaded(module) != TSPAN_OK) return;
  if (module->optimizer == NULL) {
    tspan_compat_fail(TSPAN_ERROR_ARGUMENT,
                      "this torch_module has no optimizer: call create_optimizer_sgd first.");
    return;
  }
  tspan_status status = move_step(module, inputs, (size_t)count, target, &given);
  if (status == TSPAN_OK) {
    status = step(module, &given, loss);
    /* Whatever went wrong, forward finds the module out of training mode. */
    tspan_module_set_training(module->module, 0);
  }
  free_moved(&given);
  tspan_compat_check(status);
}

/* The same by the script's own function; gives whether it says that training is complete. */
int32_t torch_ftn_train_script(ftn_module* module, tspan_tensor* const* inputs, int64_t count,
                               tspan_tensor* target, float* loss) {
  moved given;
  int complete = 0;
  double value = NAN;
  *loss = NAN;
  if (require_loaded(module) != TSPAN_OK) return 0;
  tspan_status status = move_step(module, inputs, (size_t)count, target, &given);
  if (status == TSPAN_OK)
    status = tspan_module_train(module->module, (const tspan_tensor* const*)given.here,
                                given.count - 1, given.here[given.count - 1], &complete, &value);
  free_moved(&given);
  tspan_compat_check(status);
  if (status != TSPAN_OK) return 0;
  *loss = (float)value;
  return complete;
}

void torch_ftn_save(const ftn_module* module, const char* path) {
  if (require_loaded(module) == TSPAN_OK)
    tspan_compat_check(tspan_module_save(module->module, path));
}
