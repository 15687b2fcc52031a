/* SPDX-License-Identifier: MIT */
/* What module torch_ftn calls. Each ends the program on an error, or leaves its results empty. */
#ifndef TORCH_FTN_GLUE_H
#define TORCH_FTN_GLUE_H

#include <ISO_Fortran_binding.h>

#include "stop.h"
#include "torchspan_tensor.h"

/* What a torch_tensor has: its tensor, and the host's copy of one that is on a device. */
typedef struct ftn_tensor {
  tspan_tensor *tensor, *copy;
} ftn_tensor;

/* What a module has; `device` is the name of the one that it is on. */
typedef struct ftn_module {
  tspan_module* module;
  tspan_optimizer* optimizer;
  char device[16];
} ftn_module;

/* Free what a torch_tensor has, also what another one has freed already. */
void torch_ftn_tensor_free(ftn_tensor* tensor);

#endif
