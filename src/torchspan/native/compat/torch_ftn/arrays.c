/* SPDX-License-Identifier: MIT */
/* Between Fortran's array descriptors and tensors, whose dimensions are named from the other end.
 */
#include <stdio.h>
#include <string.h>

#include "glue.h"

#ifdef TORCH_FTN_OPENACC
void acc_map_data(void* host, void* device, size_t bytes);
void acc_unmap_data(void* host);
#endif

enum { MOST = CFI_MAX_RANK };

/* Compilers number types in their own way, so each is asked for by its name. */
static int find_kind(const CFI_cdesc_t* array) {
  const CFI_type_t type = array->type;
  if (array->elem_len != 4 && array->elem_len != 8) return -1;
  if (type == CFI_type_float || type == CFI_type_double) return TSPAN_FLOAT;
  if (type == CFI_type_int32_t || type == CFI_type_int64_t || type == CFI_type_int ||
      type == CFI_type_long || type == CFI_type_long_long)
    return TSPAN_INT;
  return -1;
}

/* See a descriptor as an array in `sizes` and `strides`. */
static int32_t view(const CFI_cdesc_t* from, tspan_array* to, int64_t* sizes, int64_t* strides) {
  const int kind = find_kind(from);
  if (kind < 0)
    return tspan_compat_fail(TSPAN_ERROR_ARGUMENT,
                             "an array has a kind of %lld bytes an element that torch_ftn does not "
                             "take. Give it as real(real32 or real64) or integer(int32 or int64).",
                             (long long)from->elem_len);
  for (int i = 0; i < from->rank; i++) {
    const int last = from->rank - 1 - i;
    if (from->dim[i].extent < 0)
      return tspan_compat_fail(TSPAN_ERROR_ARGUMENT,
                               "an assumed-size array has no last extent. Give a section with "
                               "bounds, such as x(:, 1:n).");
    if (from->dim[i].sm % (CFI_index_t)from->elem_len != 0)
      return tspan_compat_fail(
          TSPAN_ERROR_ARGUMENT,
          "elements of an array lie %lld bytes apart in dimension %d, which is "
          "no multiple of their %lld bytes. Copy it to an array first.",
          (long long)from->dim[i].sm, i + 1, (long long)from->elem_len);
    sizes[last] = from->dim[i].extent;
    strides[last] = from->dim[i].sm / (CFI_index_t)from->elem_len;
  }
  if (from->base_addr == NULL)
    return tspan_compat_fail(TSPAN_ERROR_ARGUMENT,
                             "an array is not allocated, or a pointer not associated.");
  *to = (tspan_array){from->base_addr, {1, 0}, from->rank, {0, 0, 1}, sizes, strides, 0};
  to->dtype.kind = (uint8_t)kind;
  to->dtype.bits = (uint8_t)(8 * from->elem_len);
  return TSPAN_OK;
}

void torch_ftn_wrap(const CFI_cdesc_t* array, tspan_tensor** tensor) {
  int64_t sizes[MOST], strides[MOST];
  tspan_array seen;
  *tensor = NULL;
  if (array->rank < 1 || array->rank > 7) {
    tspan_compat_fail(TSPAN_ERROR_ARGUMENT,
                      "an array has rank %d; torch_ftn takes ranks 1 to 7, and scalars by "
                      "add_scalar.",
                      (int)array->rank);
    return;
  }
  if (view(array, &seen, sizes, strides) == TSPAN_OK)
    tspan_compat_check(tspan_tensor_wrap(&seen, 0, tensor));
}

void torch_ftn_scalar(const CFI_cdesc_t* value, tspan_tensor** tensor) {
  int64_t none[MOST];
  tspan_array seen;
  *tensor = NULL;
  if (value->rank != 0) {
    tspan_compat_fail(TSPAN_ERROR_ARGUMENT,
                      "add_scalar was given an array of rank %d. Give it to add_array.",
                      (int)value->rank);
    return;
  }
  if (view(value, &seen, none, none) == TSPAN_OK)
    tspan_compat_check(tspan_tensor_create(&seen, NULL, 0, tensor));
}

void torch_ftn_share(const tspan_tensor* from, tspan_tensor** tensor) {
  *tensor = NULL;
  if (from == NULL) {
    tspan_compat_fail(TSPAN_ERROR_ARGUMENT,
                      "this torch_tensor is empty: call from_array, or a module's forward, first.");
    return;
  }
  tspan_compat_check(tspan_tensor_share(from, tensor));
}

static void free_copy(ftn_tensor* tensor) {
#ifdef TORCH_FTN_OPENACC
  tspan_array host;
  if (tensor->copy != NULL && tspan_tensor_view(tensor->copy, &host) == TSPAN_OK)
    acc_unmap_data(host.data);
#endif
  tspan_tensor_delete(tensor->copy);
  tensor->copy = NULL;
}

void torch_ftn_tensor_free(ftn_tensor* tensor) {
  free_copy(tensor);
  tspan_tensor_delete(tensor->tensor);
  tensor->tensor = NULL;
}

/* Assigning an empty one empties; assigning one to itself keeps it. */
void torch_ftn_assign(const tspan_tensor* from, ftn_tensor* to) {
  tspan_tensor* shared = NULL;
  if (from != NULL && tspan_compat_check(tspan_tensor_share(from, &shared)) != TSPAN_OK) return;
  torch_ftn_tensor_free(to);
  to->tensor = shared;
}

/* A host array of a tensor on a device: a copy, which OpenACC takes for the device's memory. */
static tspan_status fetch(ftn_tensor* tensor, tspan_array* seen) {
  if (seen->device.type == 1) return TSPAN_OK;
  free_copy(tensor);
  tspan_status status = tspan_tensor_to(tensor->tensor, NULL, "cpu", &tensor->copy);
  if (status != TSPAN_OK) return status;
#ifdef TORCH_FTN_OPENACC
  void* device = (char*)seen->data + seen->byte_offset;
  size_t bytes = seen->dtype.bits / 8;
  for (int i = 0; i < seen->ndim; i++) bytes *= (size_t)seen->shape[i];
  status = tspan_tensor_view(tensor->copy, seen);
  if (status == TSPAN_OK) acc_map_data(seen->data, device, bytes);
  return status;
#else
  return tspan_tensor_view(tensor->copy, seen);
#endif
}

/* A tensor that says one element several times has no form in Fortran; a clone of it has. */
static tspan_status spread(ftn_tensor* tensor, tspan_array* seen) {
  int repeats = 0;
  for (int i = 0; i < seen->ndim; i++)
    repeats = repeats || (seen->strides[i] == 0 && seen->shape[i] > 1);
  if (!repeats) return TSPAN_OK;
  tspan_tensor* whole = NULL;
  const tspan_status status = tspan_tensor_clone(tensor->tensor, &whole);
  if (status != TSPAN_OK) return status;
  torch_ftn_tensor_free(tensor);
  tensor->tensor = whole;
  return tspan_tensor_view(whole, seen);
}

static int32_t fit(const ftn_tensor* tensor, const tspan_array* seen, const CFI_cdesc_t* pointer,
                   int kind) {
  const char* dtype = "";
  if (seen->dtype.kind != kind || seen->dtype.bits != 8 * pointer->elem_len) {
    const tspan_status status = tspan_tensor_dtype(tensor->tensor, &dtype);
    if (status != TSPAN_OK) return tspan_compat_check(status);
    return tspan_compat_fail(TSPAN_ERROR_ARGUMENT,
                             "to_array was given a pointer to %s%d; the tensor has dtype %s. "
                             "Declare the pointer with that kind.",
                             kind == TSPAN_INT ? "int" : "real", (int)(8 * pointer->elem_len),
                             dtype);
  }
  if (seen->ndim == pointer->rank) return TSPAN_OK;
  char shape[160] = "";
  size_t used = 0;
  for (int i = seen->ndim - 1; i >= 0 && used < sizeof shape; i--)
    used += (size_t)snprintf(shape + used, sizeof shape - used, "%s%lld",
                             i == seen->ndim - 1 ? "" : ", ", (long long)seen->shape[i]);
  return tspan_compat_fail(TSPAN_ERROR_ARGUMENT,
                           "to_array was given a pointer of rank %d; the tensor is (%s) in "
                           "Fortran's order, of rank %d.",
                           (int)pointer->rank, shape, (int)seen->ndim);
}

static void point(ftn_tensor* tensor, CFI_cdesc_t* pointer, int kind) {
  tspan_array seen;
  pointer->base_addr = NULL;
  if (tensor->tensor == NULL) {
    tspan_compat_fail(TSPAN_ERROR_ARGUMENT,
                      "this torch_tensor is empty: call from_array, or a module's forward, first.");
    return;
  }
  tspan_status status = tspan_tensor_view(tensor->tensor, &seen);
  if (status == TSPAN_OK) status = spread(tensor, &seen);
  if (tspan_compat_check(status) != TSPAN_OK || fit(tensor, &seen, pointer, kind) != TSPAN_OK)
    return;
  if (tspan_compat_check(fetch(tensor, &seen)) != TSPAN_OK) return;
  pointer->base_addr = (char*)seen.data + seen.byte_offset;
  for (int i = 0; i < seen.ndim; i++) {
    const int last = seen.ndim - 1 - i;
    pointer->dim[i].lower_bound = 1;
    pointer->dim[i].extent = (CFI_index_t)seen.shape[last];
    pointer->dim[i].sm = (CFI_index_t)seen.strides[last] * (CFI_index_t)pointer->elem_len;
  }
}

void torch_ftn_point_real32(ftn_tensor* tensor, CFI_cdesc_t* pointer) {
  point(tensor, pointer, TSPAN_FLOAT);
}

void torch_ftn_point_real64(ftn_tensor* tensor, CFI_cdesc_t* pointer) {
  point(tensor, pointer, TSPAN_FLOAT);
}

void torch_ftn_point_int32(ftn_tensor* tensor, CFI_cdesc_t* pointer) {
  point(tensor, pointer, TSPAN_INT);
}

void torch_ftn_point_int64(ftn_tensor* tensor, CFI_cdesc_t* pointer) {
  point(tensor, pointer, TSPAN_INT);
}
