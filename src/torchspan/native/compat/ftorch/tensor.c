/* SPDX-License-Identifier: MIT */
/* Make tensors from Fortran's arguments, and ask of them in FTorch's terms. */
#include "tensor.h"

#include <ISO_Fortran_binding.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RANK 15

static const struct {
  int32_t number;
  const char* name;
} kinds[] = {{0, "cpu"}, {1, "cuda"}, {2, "hip"}, {12, "xpu"}, {13, "mps"}};

/* By torch_kUInt8 and so on. */
static const struct {
  const char* name;
  uint8_t kind, bits;
} dtypes[] = {{"uint8", TSPAN_UINT, 8},     {"int8", TSPAN_INT, 8},
              {"int16", TSPAN_INT, 16},     {"int32", TSPAN_INT, 32},
              {"int64", TSPAN_INT, 64},     {"float16", TSPAN_FLOAT, 16},
              {"float32", TSPAN_FLOAT, 32}, {"float64", TSPAN_FLOAT, 64}};

#define DTYPES ((int32_t)(sizeof dtypes / sizeof *dtypes))

static int32_t fail_dtype(int32_t dtype) {
  return tspan_compat_fail(TSPAN_ERROR_ARGUMENT,
                           "there is no data type %d. Give torch_kFloat32 or another of "
                           "ftorch_types.",
                           dtype);
}

int tspan_ftorch_device(int32_t kind, int32_t index, char text[24]) {
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (kinds[i].number != kind) continue;
    if (kind == 0)
      strcpy(text, "cpu");
    else
      snprintf(text, 24, "%s:%d", kinds[i].name, index < 0 ? 0 : index);
    return 1;
  }
  tspan_compat_fail(TSPAN_ERROR_DEVICE,
                    "there is no device type %d. Give torch_kCPU, torch_kCUDA or another of "
                    "ftorch_devices.",
                    kind);
  return 0;
}

void tspan_ftorch_put(tspan_tensor** at, tspan_tensor* tensor) {
  if (*at != NULL) tspan_tensor_delete(*at);
  *at = tensor;
}

int32_t tspan_ftorch_delete(tspan_tensor** at) {
  tspan_tensor* tensor = *at;
  *at = NULL;
  return tspan_compat_check(tspan_tensor_delete(tensor));
}

/* A variable that goes out of scope may be a copy, made by the compiler, of one that is gone. */
void tspan_ftorch_forget(tspan_tensor** at) { tspan_ftorch_put(at, NULL); }

void tspan_ftorch_fail_shape(int32_t ndims, int32_t sizes) {
  tspan_compat_fail(TSPAN_ERROR_ARGUMENT, "ndims is %d, and tensor_shape has %d sizes.", ndims,
                    sizes);
}

static int32_t make(const tspan_array* array, int32_t device_type, int32_t index,
                    int32_t requires_grad, tspan_tensor** at) {
  char device[24];
  tspan_tensor* tensor = NULL;
  if (!tspan_ftorch_device(device_type, index, device)) return TSPAN_ERROR_DEVICE;
  const int32_t status = device_type == 0
                             ? tspan_tensor_wrap(array, requires_grad, &tensor)
                             : tspan_tensor_create(array, device, requires_grad, &tensor);
  if (status != TSPAN_OK) return tspan_compat_check(status);
  tspan_ftorch_put(at, tensor);
  return TSPAN_OK;
}

/* The layout says in which order indices run through the memory, from 1. */
static int32_t set_strides(int32_t rank, const int64_t* shape, const int32_t* layout,
                           int64_t* strides) {
  int64_t step = 1;
  int seen[MAX_RANK] = {0};
  for (int32_t i = 0; i < rank; i++) {
    const int32_t dim = layout[i] - 1;
    if (dim < 0 || dim >= rank || seen[dim]++)
      return tspan_compat_fail(TSPAN_ERROR_ARGUMENT,
                               "layout(%d) is %d; a layout of rank %d holds each number from 1 to "
                               "%d once.",
                               i + 1, layout[i], rank, rank);
    strides[dim] = step;
    step *= shape[dim];
  }
  return TSPAN_OK;
}

static int32_t fail_layout(int32_t given, int32_t rank) {
  return tspan_compat_fail(TSPAN_ERROR_ARGUMENT,
                           "layout has %d numbers for a tensor of rank %d. Give %d.", given, rank,
                           rank);
}

int32_t tspan_ftorch_from_blob(tspan_tensor** at, void* data, int32_t rank, const int64_t* shape,
                               const int32_t* layout, int32_t layout_size, int32_t dtype,
                               int32_t device_type, int32_t index, int32_t requires_grad) {
  int64_t strides[MAX_RANK];
  if (dtype < 0 || dtype >= DTYPES) return fail_dtype(dtype);
  if (rank > MAX_RANK)
    return tspan_compat_fail(TSPAN_ERROR_ARGUMENT, "ndims is %d; at most %d are possible.", rank,
                             MAX_RANK);
  if (layout_size != rank) return fail_layout(layout_size, rank);
  const int32_t status = set_strides(rank, shape, layout, strides);
  if (status != TSPAN_OK) return status;
  const tspan_array array = {data,  {1, 0},  rank, {dtypes[dtype].kind, dtypes[dtype].bits, 1},
                             shape, strides, 0};
  return make(&array, device_type, index, requires_grad, at);
}

static int find_kind(const CFI_cdesc_t* data) {
  const CFI_type_t type = data->type;
  if (type == CFI_type_float || type == CFI_type_double) return TSPAN_FLOAT;
  if (type == CFI_type_int8_t || type == CFI_type_int16_t || type == CFI_type_int32_t ||
      type == CFI_type_int64_t || type == CFI_type_signed_char || type == CFI_type_short ||
      type == CFI_type_int || type == CFI_type_long || type == CFI_type_long_long)
    return data->elem_len <= 8 ? TSPAN_INT : -1;
  return -1;
}

/* Without a layout (`layout_size` -1) the tensor has the array's own strides, a section's too. */
int32_t tspan_ftorch_from_array(tspan_tensor** at, const CFI_cdesc_t* data, const int32_t* layout,
                                int32_t layout_size, int32_t device_type, int32_t index,
                                int32_t requires_grad) {
  int64_t shape[MAX_RANK], strides[MAX_RANK];
  const int kind = find_kind(data);
  const int64_t size = (int64_t)data->elem_len;
  int contiguous = 1;
  if (data->base_addr == NULL)
    return tspan_compat_fail(TSPAN_ERROR_ARGUMENT, "data_in is not allocated.");
  if (kind < 0)
    return tspan_compat_fail(TSPAN_ERROR_ARGUMENT,
                             "data_in has a kind of %lld bytes an element that tensors do not "
                             "take. Give integers or reals of iso_fortran_env's kinds.",
                             (long long)size);
  for (int i = 0; i < data->rank; i++) {
    shape[i] = data->dim[i].extent;
    if (shape[i] < 0)
      return tspan_compat_fail(TSPAN_ERROR_ARGUMENT,
                               "data_in is an assumed-size array, so its last extent is not known. "
                               "Give a section with bounds, such as x(:, 1:n).");
    strides[i] = data->dim[i].sm / size;
    if (shape[i] > 1 && data->dim[i].sm % size != 0)
      return tspan_compat_fail(TSPAN_ERROR_ARGUMENT,
                               "elements of data_in lie %lld bytes apart in dimension %d, which is "
                               "no multiple of their %lld bytes. Copy it to an array first.",
                               (long long)data->dim[i].sm, i + 1, (long long)size);
    contiguous =
        contiguous && (shape[i] <= 1 || strides[i] == (i == 0 ? 1 : strides[i - 1] * shape[i - 1]));
  }
  if (layout_size >= 0) {
    if (layout_size != data->rank) return fail_layout(layout_size, data->rank);
    if (!contiguous)
      return tspan_compat_fail(TSPAN_ERROR_ARGUMENT,
                               "data_in is a section with gaps, which has no layout. Leave the "
                               "layout out, or copy it to an array first.");
    const int32_t status = set_strides(data->rank, shape, layout, strides);
    if (status != TSPAN_OK) return status;
  }
  const tspan_array array = {
      data->base_addr, {1, 0},  data->rank, {(uint8_t)kind, (uint8_t)(8 * size), 1},
      shape,           strides, 0};
  return make(&array, device_type, index, requires_grad, at);
}

/* `fill` is 0 and 1 for these values, and -1 for none. */
int32_t tspan_ftorch_filled(tspan_tensor** at, int32_t fill, int32_t rank, const int64_t* shape,
                            int32_t dtype, int32_t device_type, int32_t index,
                            int32_t requires_grad) {
  char device[24];
  tspan_tensor* tensor = NULL;
  if (dtype < 0 || dtype >= DTYPES) return fail_dtype(dtype);
  if (!tspan_ftorch_device(device_type, index, device)) return TSPAN_ERROR_DEVICE;
  const int32_t status = (fill < 0    ? tspan_tensor_empty
                          : fill == 0 ? tspan_tensor_zeros
                                      : tspan_tensor_ones)(rank, shape, dtypes[dtype].name, device,
                                                           requires_grad, &tensor);
  if (status != TSPAN_OK) return tspan_compat_check(status);
  tspan_ftorch_put(at, tensor);
  return TSPAN_OK;
}

int32_t tspan_ftorch_get_dtype(const tspan_tensor* tensor) {
  const char* name = "";
  if (tspan_compat_check(tspan_tensor_dtype(tensor, &name)) != TSPAN_OK) return -1;
  for (int32_t i = 0; i < DTYPES; i++)
    if (strcmp(dtypes[i].name, name) == 0) return i;
  tspan_compat_fail(TSPAN_ERROR_ARGUMENT,
                    "the tensor has dtype %s, for which there is no constant.", name);
  return -1;
}

/* `index` is -1 on the CPU. */
int32_t tspan_ftorch_get_device(const tspan_tensor* tensor, int32_t* index) {
  tspan_device device;
  *index = -1;
  if (tspan_compat_check(tspan_tensor_device(tensor, &device)) != TSPAN_OK) return -1;
  const size_t letters = strcspn(device.name, ":");
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (strlen(kinds[i].name) != letters || strncmp(kinds[i].name, device.name, letters) != 0)
      continue;
    if (i > 0) *index = (int32_t)atoi(device.name + letters + (device.name[letters] == ':'));
    return kinds[i].number;
  }
  return -1;
}

/* Shape, or with `strides` 1 the steps between elements; the number of dimensions. */
int32_t tspan_ftorch_get_sizes(const tspan_tensor* tensor, int32_t strides, int32_t capacity,
                               int64_t* sizes) {
  tspan_array view;
  if (tspan_compat_check(tspan_tensor_view(tensor, &view)) != TSPAN_OK) return -1;
  for (int32_t i = 0; i < view.ndim && i < capacity; i++)
    sizes[i] = strides ? view.strides[i] : view.shape[i];
  return view.ndim;
}

tspan_status tspan_ftorch_write(const tspan_tensor* from, tspan_tensor* to) {
  tspan_device places[2];
  const char* names[2];
  tspan_status status = tspan_tensor_dtype(from, &names[0]);
  if (status == TSPAN_OK) status = tspan_tensor_dtype(to, &names[1]);
  if (status == TSPAN_OK) status = tspan_tensor_device(from, &places[0]);
  if (status == TSPAN_OK) status = tspan_tensor_device(to, &places[1]);
  if (status != TSPAN_OK) return status;
  if (strcmp(names[0], names[1]) == 0 && strcmp(places[0].name, places[1].name) != 0)
    return tspan_tensor_convert(from, 0, to);
  return tspan_tensor_assign(from, to);
}

int32_t tspan_ftorch_land(tspan_tensor* result, tspan_tensor** at, int may_take) {
  if (*at == NULL && may_take) {
    *at = result;
    return TSPAN_OK;
  }
  const tspan_status status = tspan_ftorch_write(result, *at);
  tspan_tensor_delete(result);
  return tspan_compat_check(status);
}

/* To stdout, after what Fortran wrote there. */
int32_t tspan_ftorch_print(const tspan_tensor* tensor) {
  const char* text;
  const int32_t status = tspan_tensor_text(tensor, &text);
  if (status != TSPAN_OK) return tspan_compat_check(status);
  puts(text);
  fflush(stdout);
  return TSPAN_OK;
}
