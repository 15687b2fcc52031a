/* SPDX-License-Identifier: MIT */
/* What becomes of errors in programs whose API has no place for them. */
#ifndef TORCHSPAN_COMPAT_STOP_H
#define TORCHSPAN_COMPAT_STOP_H

#include <stdint.h>

#include "torchspan.h"

/* Go on after TSPAN_OK. Else print the message of tspan_last_error() and end the program, or, with
 * TORCHSPAN_ON_ERROR=return, return the status. */
int32_t tspan_compat_check(int32_t status);

/* The same for an error of a front's own, which becomes this thread's message. */
int32_t tspan_compat_fail(int32_t status, const char* format, ...);

#endif
