/* SPDX-License-Identifier: MIT */
/* Fortran arrays as the glue keeps them, and as the C interface wants them. */
#ifndef TORCHSPAN_FORTRAN_CAPTURE_H
#define TORCHSPAN_FORTRAN_CAPTURE_H

#include <ISO_Fortran_binding.h>
#include <stdint.h>

#include "torchspan.h"

#define MAX_RANK 15

/* What array(x) returns: array_type of torchspan_array.f90 has the same components. Fortran's order
 * and bytes; nothing is judged yet, for a function in an expression cannot return an error. */
typedef struct captured_array {
  int64_t mark;
  void* data;
  int64_t element_size;
  int32_t type; /* a CFI_type_t */
  int32_t rank;
  int64_t extent[MAX_RANK];
  int64_t step[MAX_RANK]; /* bytes from one element to the next */
  char device[16];        /* what device= said, as far as it fits */
} captured_array;

/* An array of the C interface with the memory that it points to. */
typedef struct viewed_array {
  int64_t shape[MAX_RANK];
  int64_t strides[MAX_RANK];
} viewed_array;

/* The inputs or the outputs of one call. */
typedef struct array_list {
  size_t count;
  tspan_array* arrays;
  viewed_array* views;
  tspan_array few_arrays[8];
  viewed_array few_views[8];
} array_list;

/* Read one argument: an array, or an array of array_type. `role` is "input" or "output". After a
 * status other than TSPAN_OK the message is set and there is nothing to free. */
int32_t tspan_fortran_list(array_list* list, const CFI_cdesc_t* argument, const char* role);

/* Free what a list of many arrays holds. */
void tspan_fortran_list_free(array_list* list);

/* Set this thread's message for an error of the glue's own; returns `status`. */
int32_t tspan_fortran_fail(int32_t status, const char* format, ...);

/* Say that the message of the last error is the library's; returns `status`. */
int32_t tspan_fortran_pass(int32_t status);

#endif
