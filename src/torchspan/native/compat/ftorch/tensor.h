/* SPDX-License-Identifier: MIT */
/* Tensors as module ftorch_tensor has them: the place of a variable's handle. */
#ifndef TORCHSPAN_FTORCH_TENSOR_H
#define TORCHSPAN_FTORCH_TENSOR_H

#include "stop.h"
#include "torchspan_tensor.h"

/* "cuda:1" for a kind and an index of FTorch's; 0 where there is no such kind. */
int tspan_ftorch_device(int32_t kind, int32_t index, char text[24]);

/* Write values into a tensor of the same dtype and shape, which may be on another device. */
tspan_status tspan_ftorch_write(const tspan_tensor* from, tspan_tensor* to);

/* Write a result into a variable's memory and delete the result. A variable that was never made
 * takes it over, where `may_take` says so. */
int32_t tspan_ftorch_land(tspan_tensor* result, tspan_tensor** at, int may_take);

/* Put a new tensor into a variable; what the variable held before is deleted. */
void tspan_ftorch_put(tspan_tensor** at, tspan_tensor* tensor);

#endif
