/* SPDX-License-Identifier: MIT */
/* Print the devices that each argument names, or the error. */
#include <stdio.h>

#include "torchspan.h"

int main(int count, char** arguments) {
  for (int i = 1; i < count; i++) {
    tspan_device devices[4];
    size_t found = 0, again = 0;
    tspan_status status = tspan_devices_find(arguments[i], devices, 4, &found);
    if (status != TSPAN_OK) {
      printf("%d %s\n", status, tspan_last_error());
      continue;
    }
    if (tspan_devices_find(arguments[i], NULL, 0, &again) != TSPAN_OK || again != found) return 1;
    printf("0 %zu", found);
    for (size_t j = 0; j < found && j < 4; j++) {
      printf(" %s=%s", devices[j].name, devices[j].backing);
    }
    printf("\n");
  }
  return 0;
}
