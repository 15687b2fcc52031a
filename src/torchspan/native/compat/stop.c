/* SPDX-License-Identifier: MIT */
/* The one place where a front ends a program. */
#include "stop.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int32_t tspan_compat_check(int32_t status) {
  if (status == TSPAN_OK) return TSPAN_OK;
  const char* wish = getenv("TORCHSPAN_ON_ERROR");
  if (wish != NULL && strcmp(wish, "return") == 0) return status;
  fflush(stdout);
  fprintf(stderr, "torchspan: %s\n", tspan_last_error());
  exit(EXIT_FAILURE);
}

int32_t tspan_compat_fail(int32_t status, const char* format, ...) {
  char message[512];
  va_list values;
  va_start(values, format);
  vsnprintf(message, sizeof message, format, values);
  va_end(values);
  return tspan_compat_check(tspan_error_keep(status, message));
}
