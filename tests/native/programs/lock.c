/* SPDX-License-Identifier: MIT */
/* Register and unregister parts of 4096 bytes: lock [+|-]OFFSET:BYTES...; "+null" is NULL. Prints
 * a status and its message for each. */
#include "raw.h"

static char memory[4096];

int main(int count, char** arguments) {
  for (int i = 1; i < count; i++) {
    const char* rest = arguments[i] + 1;
    char* colon;
    char* data = NULL;
    size_t bytes = 1;
    if (strcmp(rest, "null") != 0) {
      data = memory + strtoull(rest, &colon, 10);
      bytes = *colon == ':' ? strtoull(colon + 1, NULL, 10) : 0;
    }
    const tspan_status status =
        arguments[i][0] == '+' ? tspan_memory_register(data, bytes) : tspan_memory_unregister(data);
    printf("%d %s\n", status, status == TSPAN_OK ? "" : tspan_last_error());
  }
  return 0;
}
