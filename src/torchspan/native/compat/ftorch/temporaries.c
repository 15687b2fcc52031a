/* SPDX-License-Identifier: MIT */
/* A hash table of places for each thread, which only grows: a program has few. */
#include "temporaries.h"

#include <stdint.h>
#include <stdlib.h>

typedef struct place {
  tspan_tensor* const* at;
  tspan_tensor* tensor;
} place;

static _Thread_local struct {
  place* places;
  size_t room, used;
} table;

static place* find(tspan_tensor* const* at) {
  size_t i = (size_t)(((uintptr_t)at >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> 20);
  for (;; i++) {
    place* each = &table.places[i & (table.room - 1)];
    if (each->at == at || each->at == NULL) return each;
  }
}

/* 0 where no memory is left: then a temporary stays. */
static int grow(void) {
  place* old = table.places;
  const size_t old_room = table.room, room = old_room == 0 ? 64 : 2 * old_room;
  place* places = calloc(room, sizeof *places);
  if (places == NULL) return 0;
  table.places = places;
  table.room = room;
  for (size_t i = 0; i < old_room; i++)
    if (old[i].at != NULL) *find(old[i].at) = old[i];
  free(old);
  return 1;
}

static void remember(tspan_tensor* const* at) {
  if (2 * table.used >= table.room && !grow()) return;
  place* found = find(at);
  if (found->tensor == *at) return;
  if (found->at == NULL)
    table.used++;
  else
    tspan_tensor_delete(found->tensor);
  found->at = at;
  found->tensor = *at;
}

tspan_tensor* tspan_ftorch_use(tspan_tensor* const* at, int32_t is_temporary) {
  if (*at == NULL)
    tspan_compat_fail(TSPAN_ERROR_ARGUMENT,
                      "this tensor was never made, or it was deleted. Make it first, with "
                      "torch_tensor_from_array for example.");
  else if (is_temporary)
    remember(at);
  return *at;
}
