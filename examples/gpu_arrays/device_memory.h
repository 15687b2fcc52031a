/* SPDX-License-Identifier: MIT */
/* Three calls that a program with its data on a GPU makes. */
#ifndef DEVICE_MEMORY_H
#define DEVICE_MEMORY_H

#include <stddef.h>

void* device_allocate(size_t bytes);
void device_copy(void* to, const void* from, size_t bytes);
void device_free(void* memory);

#endif
