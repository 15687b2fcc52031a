/* SPDX-License-Identifier: MIT */
/* Arrays in raw files, named on the command line as FILE:DTYPE:SIZExSIZE...[:f]. */
#ifndef RAW_H
#define RAW_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "torchspan.h"

#define MOST_DIMENSIONS 8

typedef struct raw {
  char path[512];
  size_t bytes;
  int64_t shape[MOST_DIMENSIONS], strides[MOST_DIMENSIONS];
  tspan_array array;
} raw;

static inline void stop(const char* what) {
  fprintf(stderr, "%s\n", what);
  exit(2);
}

static inline void read_dtype(tspan_array* array, const char* name) {
  static const struct {
    const char* prefix;
    uint8_t kind;
  } kinds[] = {{"float", TSPAN_FLOAT}, {"int", TSPAN_INT},         {"uint", TSPAN_UINT},
               {"bool", TSPAN_BOOL},   {"complex", TSPAN_COMPLEX}, {"bfloat", TSPAN_BFLOAT}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    size_t length = strlen(kinds[i].prefix);
    if (strncmp(name, kinds[i].prefix, length) != 0) continue;
    int bits = atoi(name + length);
    array->dtype.kind = kinds[i].kind;
    array->dtype.bits = (uint8_t)(bits ? bits : 8);
    array->dtype.lanes = 1;
    return;
  }
  stop("no such dtype");
}

/* Take an argument apart and make its memory; `load` says whether the file is read. */
static inline void raw_open(raw* opened, const char* argument, int load) {
  char text[640], *part;
  int64_t elements = 1;
  memset(opened, 0, sizeof *opened);
  snprintf(text, sizeof text, "%s", argument);
  part = strtok(text, ":");
  snprintf(opened->path, sizeof opened->path, "%s", part);
  tspan_array* array = &opened->array;
  array->device.type = 1;
  read_dtype(array, strtok(NULL, ":"));
  part = strtok(NULL, ":");
  char* order = strtok(NULL, ":");
  for (; part && *part; part += strspn(part, "x")) {
    opened->shape[array->ndim++] = strtoll(part, &part, 10);
    elements *= opened->shape[array->ndim - 1];
  }
  array->shape = opened->shape;
  if (order) {
    int64_t stride = 1;
    for (int i = 0; i < array->ndim; i++) {
      opened->strides[i] = stride;
      stride *= opened->shape[i];
    }
    array->strides = opened->strides;
  }
  opened->bytes = (size_t)(elements * array->dtype.bits / 8);
  array->data = malloc(opened->bytes + 1);
  memset(array->data, 0x7f, opened->bytes);
  if (!load) return;
  FILE* file = fopen(opened->path, "rb");
  if (!file || fread(array->data, 1, opened->bytes, file) != opened->bytes) stop(opened->path);
  fclose(file);
}

static inline void raw_write(const raw* opened) {
  FILE* file = fopen(opened->path, "wb");
  if (!file || fwrite(opened->array.data, 1, opened->bytes, file) != opened->bytes) {
    stop(opened->path);
  }
  fclose(file);
}

#endif
