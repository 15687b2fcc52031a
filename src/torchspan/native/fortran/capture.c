/* SPDX-License-Identifier: MIT */
/* Read Fortran's array descriptors.
 *
 * Fortran's first dimension varies fastest and C's last: x(nx, ny, batch) is told to the model as
 * (batch, ny, nx), the same memory with its dimensions named from the other end. Sections keep
 * their strides. */
#include "capture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tells an array of array_type from an array of a user's own type. */
#define MARK INT64_C(0x746f726368737061)

void tspan_fortran_capture(const CFI_cdesc_t* from, captured_array* to) {
  to->mark = MARK;
  to->data = from->base_addr;
  to->element_size = (int64_t)from->elem_len;
  to->type = (int32_t)from->type;
  to->rank = (int32_t)from->rank;
  to->device[0] = '\0';
  for (int i = 0; i < to->rank; i++) {
    to->extent[i] = (int64_t)from->dim[i].extent;
    to->step[i] = (int64_t)from->dim[i].sm;
  }
}

void tspan_fortran_place(captured_array* to, const char* device) {
  snprintf(to->device, sizeof to->device, "%s", device);
}

/* Compilers number types in their own way, so each is asked for by its name. */
static int find_kind(int32_t type, int64_t size) {
  if (type == CFI_type_Bool && size == 1) return TSPAN_BOOL;
  if (type == CFI_type_float || type == CFI_type_double) return TSPAN_FLOAT;
  if (type == CFI_type_float_Complex || type == CFI_type_double_Complex) return TSPAN_COMPLEX;
  if (size <= 8 &&
      (type == CFI_type_int8_t || type == CFI_type_int16_t || type == CFI_type_int32_t ||
       type == CFI_type_int64_t || type == CFI_type_signed_char || type == CFI_type_short ||
       type == CFI_type_int || type == CFI_type_long || type == CFI_type_long_long))
    return TSPAN_INT;
  return -1;
}

static int is_empty(const captured_array* from) {
  for (int i = 0; i < from->rank; i++)
    if (from->extent[i] == 0) return 1;
  return 0;
}

/* Where an array is said to be; what a text leaves out is 0. */
static int32_t read_device(const captured_array* from, tspan_array* to, const char* role,
                           size_t number) {
  static const struct {
    const char* name;
    int32_t type;
  } kinds[] = {{"cpu", 1}, {"cuda", 2}, {"hip", 10}, {"xpu", 14}, {"mps", 8}};
  const char* text = from->device;
  const size_t letters = strcspn(text, ":");
  const char* digits = text[letters] == ':' ? text + letters + 1 : "0";
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (strlen(kinds[i].name) != letters || strncmp(text, kinds[i].name, letters) != 0) continue;
    if (*digits == '\0' || strlen(digits) > 4 || strspn(digits, "0123456789") != strlen(digits))
      break;
    to->device.type = kinds[i].type;
    to->device.index = (int32_t)strtol(digits, NULL, 10);
    return TSPAN_OK;
  }
  return tspan_fortran_fail(TSPAN_ERROR_ARGUMENT,
                            "%s %zu is said to be on '%s', which is no device. Write for example "
                            "device=\"cuda:0\".",
                            role, number, text);
}

/* Judge an array and give it its C form. */
static int32_t view(const captured_array* from, tspan_array* to, viewed_array* memory,
                    const char* role, size_t number) {
  const int kind = find_kind(from->type, from->element_size);
  if (kind < 0)
    return tspan_fortran_fail(
        TSPAN_ERROR_ARGUMENT,
        "%s %zu has a kind of %lld bytes an element that models do not take. Give it as "
        "integer(int8, int16, int32 or int64), real(real32 or real64), complex of these, or "
        "logical(c_bool).",
        role, number, (long long)from->element_size);
  if (from->data == NULL && !is_empty(from))
    return tspan_fortran_fail(TSPAN_ERROR_ARGUMENT, "%s %zu is not allocated.", role, number);
  for (int i = 0; i < from->rank; i++) {
    const int last = from->rank - 1 - i;
    if (from->extent[i] < 0)
      return tspan_fortran_fail(TSPAN_ERROR_ARGUMENT,
                                "%s %zu is an assumed-size array, so its last extent is not known. "
                                "Give a section with bounds, such as x(:, 1:n).",
                                role, number);
    if (from->extent[i] > 1 && from->step[i] % from->element_size != 0)
      return tspan_fortran_fail(TSPAN_ERROR_ARGUMENT,
                                "elements of %s %zu lie %lld bytes apart in dimension %d, which is "
                                "no multiple of their %lld bytes. Copy it to an array first.",
                                role, number, (long long)from->step[i], i + 1,
                                (long long)from->element_size);
    memory->shape[last] = from->extent[i];
    memory->strides[last] = from->step[i] / from->element_size;
  }
  memset(to, 0, sizeof *to);
  to->data = from->data;
  to->device.type = 1;
  if (from->device[0] != '\0') {
    const int32_t status = read_device(from, to, role, number);
    if (status != TSPAN_OK) return status;
  }
  to->ndim = from->rank;
  to->dtype.kind = (uint8_t)kind;
  to->dtype.bits = (uint8_t)(8 * from->element_size);
  to->dtype.lanes = 1;
  to->shape = memory->shape;
  to->strides = memory->strides;
  return TSPAN_OK;
}

/* Whether an argument is an array of array_type, or one. */
static int is_list(const CFI_cdesc_t* argument) {
  if (argument->elem_len != sizeof(captured_array) || argument->rank > 1) return 0;
  if (argument->rank == 1 && argument->dim[0].extent < 1) return 1;
  return argument->base_addr != NULL && ((const captured_array*)argument->base_addr)->mark == MARK;
}

static int32_t make_room(array_list* list) {
  list->arrays = list->few_arrays;
  list->views = list->few_views;
  if (list->count <= sizeof list->few_arrays / sizeof *list->few_arrays) return TSPAN_OK;
  list->arrays = malloc(list->count * sizeof *list->arrays);
  list->views = malloc(list->count * sizeof *list->views);
  if (list->arrays != NULL && list->views != NULL) return TSPAN_OK;
  tspan_fortran_list_free(list);
  return tspan_fortran_fail(TSPAN_ERROR_MEMORY, "no memory is left for %zu descriptors.",
                            list->count);
}

int32_t tspan_fortran_list(array_list* list, const CFI_cdesc_t* argument, const char* role) {
  captured_array one;
  const int several = is_list(argument);
  list->count = several && argument->rank == 1 ? (size_t)argument->dim[0].extent : 1;
  const int32_t room = make_room(list);
  if (room != TSPAN_OK) return room;
  if (!several) tspan_fortran_capture(argument, &one);
  for (size_t i = 0; i < list->count; i++) {
    const char* place = argument->base_addr;
    if (several && argument->rank == 1) place += (CFI_index_t)i * argument->dim[0].sm;
    const captured_array* from = several ? (const captured_array*)place : &one;
    const int32_t status = view(from, &list->arrays[i], &list->views[i], role, i + 1);
    if (status != TSPAN_OK) {
      tspan_fortran_list_free(list);
      return status;
    }
  }
  return TSPAN_OK;
}

void tspan_fortran_list_free(array_list* list) {
  if (list->arrays != list->few_arrays) free(list->arrays);
  if (list->views != list->few_views) free(list->views);
  list->arrays = NULL;
  list->views = NULL;
}
