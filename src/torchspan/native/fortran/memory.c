/* SPDX-License-Identifier: MIT */
/* Register the memory of Fortran arrays. */
#include "capture.h"

/* The bytes of an array that has them to itself, or -1 after an error. */
static int64_t count_bytes(const CFI_cdesc_t* array) {
  int64_t bytes = (int64_t)array->elem_len;
  if (array->base_addr == NULL)
    return tspan_fortran_fail(-1, "the array is not allocated. Allocate it first.");
  for (int i = 0; i < array->rank; i++) {
    const int64_t extent = (int64_t)array->dim[i].extent;
    if (extent < 0)
      return tspan_fortran_fail(-1,
                                "the array is an assumed-size one, so its last extent is not "
                                "known. Give a section with bounds, such as x(:, 1:n).");
    if (extent == 0) return 0;
    if (extent > 1 && (int64_t)array->dim[i].sm != bytes)
      return tspan_fortran_fail(-1,
                                "the array is a section with gaps. Give the whole array that it "
                                "is a part of.");
    bytes *= extent;
  }
  return bytes;
}

int32_t tspan_fortran_register(const CFI_cdesc_t* array) {
  const int64_t bytes = count_bytes(array);
  if (bytes < 0) return TSPAN_ERROR_ARGUMENT;
  return tspan_fortran_pass(tspan_memory_register(array->base_addr, (size_t)bytes));
}

int32_t tspan_fortran_unregister(const CFI_cdesc_t* array) {
  if (count_bytes(array) < 0) return TSPAN_ERROR_ARGUMENT;
  return tspan_fortran_pass(tspan_memory_unregister(array->base_addr));
}
