/* SPDX-License-Identifier: MIT */
/* Optimizers, which a variable of torch_optim holds. */
#include "tensor.h"

static int32_t put(tspan_status status, tspan_optimizer* made, tspan_optimizer** at) {
  if (status != TSPAN_OK) return tspan_compat_check(status);
  if (*at != NULL) tspan_optimizer_delete(*at);
  *at = made;
  return TSPAN_OK;
}

int32_t tspan_ftorch_sgd(tspan_optimizer** at, const tspan_tensor* const* parameters, int32_t count,
                         double learning_rate, double momentum, double weight_decay,
                         double dampening, int32_t nesterov) {
  tspan_optimizer* made = NULL;
  const tspan_sgd options = {learning_rate, momentum, dampening, weight_decay, nesterov};
  const tspan_status status = tspan_optimizer_sgd(parameters, (size_t)count, &options, &made);
  return put(status, made, at);
}

int32_t tspan_ftorch_adam(tspan_optimizer** at, int32_t decoupled,
                          const tspan_tensor* const* parameters, int32_t count,
                          double learning_rate, double beta_1, double beta_2, double eps,
                          double weight_decay, int32_t amsgrad) {
  tspan_optimizer* made = NULL;
  const tspan_adam options = {learning_rate, beta_1, beta_2, eps, weight_decay, amsgrad};
  const tspan_status status = (decoupled ? tspan_optimizer_adamw : tspan_optimizer_adam)(
      parameters, (size_t)count, &options, &made);
  return put(status, made, at);
}

static int32_t fail_unmade(void) {
  return tspan_compat_fail(TSPAN_ERROR_ARGUMENT,
                           "this optimizer was never made, or it was deleted. Call "
                           "torch_optim_SGD, torch_optim_Adam or torch_optim_AdamW first.");
}

int32_t tspan_ftorch_optim_step(tspan_optimizer* optimizer) {
  if (optimizer == NULL) return fail_unmade();
  return tspan_compat_check(tspan_optimizer_step(optimizer));
}

int32_t tspan_ftorch_optim_zero(tspan_optimizer* optimizer) {
  if (optimizer == NULL) return fail_unmade();
  return tspan_compat_check(tspan_optimizer_zero_gradients(optimizer));
}

int32_t tspan_ftorch_optim_delete(tspan_optimizer** at) {
  tspan_optimizer* optimizer = *at;
  *at = NULL;
  return tspan_compat_check(tspan_optimizer_delete(optimizer));
}

/* For a variable that goes out of scope, which may be a copy of one that is gone. */
void tspan_ftorch_optim_forget(tspan_optimizer** at) {
  tspan_optimizer_delete(*at);
  *at = NULL;
}
