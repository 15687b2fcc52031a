/* SPDX-License-Identifier: MIT */
/* Register the memory of Fortran arrays. */
#include "capture.h"

/* The bytes of an array that has them to itself, or -1 after an error. */
static int64_t count_bytes(const tspan_array* array, size_t number) {
  int64_t bytes = array->dtype.bits / 8;
  int64_t step = 1;
  for (int i = array->ndim - 1; i >= 0; i--) {
    if (array->shape[i] == 0) return 0;
    if (array->shape[i] > 1 && array->strides[i] != step)
      return tspan_fortran_fail(-1,
                                "array %zu is a section with gaps. Give the whole array that it is "
                                "a part of.",
                                number);
    step *= array->shape[i];
  }
  return bytes * step;
}

/* Do one thing or the other to each array of an argument. */
static int32_t lock_all(const CFI_cdesc_t* argument, int locking) {
  array_list list;
  int32_t status = tspan_fortran_list(&list, argument, "array");
  if (status != TSPAN_OK) return status;
  for (size_t i = 0; i < list.count && status == TSPAN_OK; i++) {
    const int64_t bytes = count_bytes(&list.arrays[i], i + 1);
    void* data = list.arrays[i].data;
    if (data == NULL)
      status = tspan_fortran_fail(TSPAN_ERROR_ARGUMENT,
                                  "array %zu is not allocated. Allocate it first.", i + 1);
    else if (bytes < 0)
      status = TSPAN_ERROR_ARGUMENT;
    else if (locking)
      status = tspan_fortran_pass(tspan_memory_register(data, (size_t)bytes));
    else
      status = tspan_fortran_pass(tspan_memory_unregister(data));
  }
  tspan_fortran_list_free(&list);
  return status;
}

int32_t tspan_fortran_register(const CFI_cdesc_t* array) { return lock_all(array, 1); }

int32_t tspan_fortran_unregister(const CFI_cdesc_t* array) { return lock_all(array, 0); }
