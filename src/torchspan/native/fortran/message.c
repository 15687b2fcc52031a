/* SPDX-License-Identifier: MIT */
/* This thread's message: the glue's own, or else the library's. */
#include <stdarg.h>
#include <stdio.h>

#include "capture.h"

static _Thread_local char own_message[512];

int32_t tspan_fortran_fail(int32_t status, const char* format, ...) {
  va_list values;
  va_start(values, format);
  vsnprintf(own_message, sizeof own_message, format, values);
  va_end(values);
  return status;
}

int32_t tspan_fortran_pass(int32_t status) {
  if (status != TSPAN_OK) own_message[0] = '\0';
  return status;
}

const char* tspan_fortran_message(void) {
  return own_message[0] != '\0' ? own_message : tspan_last_error();
}
