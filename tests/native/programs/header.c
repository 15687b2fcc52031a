/* SPDX-License-Identifier: MIT */
/* The header needs nothing but itself, and the library is the one that it describes. */
#include <stdio.h>

#include "torchspan.h"

int main(void) {
  printf("%s %d %d '%s'\n", tspan_version(), tspan_abi_version(), TSPAN_ABI_VERSION,
         tspan_last_error());
  return 0;
}
