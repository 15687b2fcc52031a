/* SPDX-License-Identifier: MIT */
/* Handles that Fortran variables share.
 *
 * Fortran copies variables bit by bit in places where no procedure of ours is called (SOURCE= in
 * ALLOCATE, array constructors). So a handle is a slot and the generation of what lies in it: slots
 * are never freed, only used again under the next generation, and a stale copy is an error instead
 * of a crash. */
#ifndef TORCHSPAN_FORTRAN_HANDLE_H
#define TORCHSPAN_FORTRAN_HANDLE_H

#include <stdint.h>

typedef struct handle_slot handle_slot;

/* handle_type of torchspan_handle.f90 begins like this. */
typedef struct handle {
  handle_slot* slot;
  int64_t generation;
} handle;

/* Put an object under a new handle that has one owner; 0 where no memory is left. The last owner to
 * release it calls `free_object`. */
int tspan_fortran_handle_make(handle* to, void* object, void (*free_object)(void*));

/* The object, or NULL where it is gone. */
void* tspan_fortran_handle_get(const handle* from);

/* Take the object away from all owners: NULL where it is gone already. */
void* tspan_fortran_handle_take(handle* from);

#endif
