/* SPDX-License-Identifier: MIT */
/* Print this process's placement, or the error; then, once more, that the program goes on. */
#include <stdio.h>

#include "torchspan.h"

int main(void) {
  tspan_placement place;
  tspan_status status = tspan_placement_find(&place);
  if (status != TSPAN_OK) {
    printf("%d %s\n", status, tspan_last_error());
  } else {
    printf("0 %d %d %d %d %s\n", place.rank, place.size, place.local_rank, place.local_size,
           place.launcher);
  }
  status = tspan_placement_find(NULL);
  printf("%d %s\n", status, tspan_last_error());
  return 0;
}
