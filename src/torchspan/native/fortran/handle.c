/* SPDX-License-Identifier: MIT */
/* A list of slots under one lock; reading a handle takes no lock. */
#include "handle.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct handle_slot {
  _Atomic int64_t generation;
  _Atomic(void*) object;
  void (*free_object)(void*);
  int64_t owners;
  handle_slot* next_free;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static handle_slot* free_slots;

static int is_live(const handle* from) {
  return from->slot != NULL && atomic_load(&from->slot->generation) == from->generation;
}

/* With the lock held: everyone who still has this handle has nothing from now on. */
static void retire(handle_slot* slot) {
  atomic_fetch_add(&slot->generation, 1);
  atomic_store(&slot->object, NULL);
  slot->next_free = free_slots;
  free_slots = slot;
}

int tspan_fortran_handle_make(handle* to, void* object, void (*free_object)(void*)) {
  pthread_mutex_lock(&lock);
  handle_slot* slot = free_slots;
  if (slot != NULL)
    free_slots = slot->next_free;
  else if ((slot = calloc(1, sizeof *slot)) != NULL)
    atomic_init(&slot->generation, 1);
  if (slot != NULL) {
    atomic_store(&slot->object, object);
    slot->free_object = free_object;
    slot->owners = 1;
    to->slot = slot;
    to->generation = atomic_load(&slot->generation);
  }
  pthread_mutex_unlock(&lock);
  return slot != NULL;
}

void* tspan_fortran_handle_get(const handle* from) {
  if (from->slot == NULL) return NULL;
  void* object = atomic_load(&from->slot->object);
  return is_live(from) ? object : NULL;
}

void* tspan_fortran_handle_take(handle* from) {
  void* object = NULL;
  pthread_mutex_lock(&lock);
  if (is_live(from)) {
    object = atomic_load(&from->slot->object);
    retire(from->slot);
  }
  pthread_mutex_unlock(&lock);
  return object;
}

/* One more owner; the count of a handle that is gone stays as it is. */
void tspan_fortran_handle_share(const handle* from) {
  pthread_mutex_lock(&lock);
  if (is_live(from)) from->slot->owners++;
  pthread_mutex_unlock(&lock);
}

/* One owner less; the last one frees the object. */
void tspan_fortran_handle_release(handle* from) {
  void* object = NULL;
  void (*free_object)(void*) = NULL;
  pthread_mutex_lock(&lock);
  if (is_live(from) && --from->slot->owners == 0) {
    object = atomic_load(&from->slot->object);
    free_object = from->slot->free_object;
    retire(from->slot);
  }
  pthread_mutex_unlock(&lock);
  from->slot = NULL;
  if (free_object != NULL) free_object(object);
}

/* Where a variable lies, for C_LOC wants a TARGET that users need not declare. */
intptr_t tspan_fortran_handle_address(const handle* at) { return (intptr_t)at; }
