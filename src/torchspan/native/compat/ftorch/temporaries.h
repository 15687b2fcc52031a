/* SPDX-License-Identifier: MIT */
/* Free the results of operators.
 *
 * The result of `a * b` in `c = a * b + d` is no variable, and gfortran before 13 finalises no
 * function result: somebody else must delete it. Whoever uses it cannot, for it may be a dummy
 * argument (`call f(a * b)`), used again in the next statement. But two tensors cannot be in one
 * place: when a place that held one temporary holds another, the first is gone. So each use of a
 * temporary says where it is, and what was there before is deleted; a statement keeps its last
 * temporaries until it runs again, and memory stays flat. Compilers that finalise results delete
 * them at once; deleting a handle again is no harm, because handles are never used again.
 *
 * Temporaries that the compiler copies bit by bit (SOURCE= in ALLOCATE, structure constructors)
 * live as long as what they were copied from. Assign them to a variable instead. */
#ifndef TORCHSPAN_FTORCH_TEMPORARIES_H
#define TORCHSPAN_FTORCH_TEMPORARIES_H

#include "tensor.h"

/* The handle at a place where a tensor is used; one that was never made is an error. */
tspan_tensor* tspan_ftorch_use(tspan_tensor* const* at, int32_t is_temporary);

#endif
