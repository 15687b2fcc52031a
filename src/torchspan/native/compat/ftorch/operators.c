/* SPDX-License-Identifier: MIT */
/* Operators, reductions and losses: two tensors in, one out. */
#include "temporaries.h"
#include "tensor.h"

typedef tspan_status (*binary)(const tspan_tensor*, const tspan_tensor*, tspan_tensor**);

static const binary binaries[] = {tspan_tensor_add, tspan_tensor_subtract, tspan_tensor_multiply,
                                  tspan_tensor_divide};

/* The result is NULL after an error that the program goes on from. */
tspan_tensor* tspan_ftorch_combine(int32_t operation, const tspan_tensor* left,
                                   const tspan_tensor* right) {
  tspan_tensor* result = NULL;
  tspan_compat_check(binaries[operation](left, right, &result));
  return result;
}

tspan_tensor* tspan_ftorch_negate(const tspan_tensor* tensor) {
  tspan_tensor* result = NULL;
  tspan_compat_check(tspan_tensor_negate(tensor, &result));
  return result;
}

tspan_tensor* tspan_ftorch_power(const tspan_tensor* tensor, double exponent) {
  tspan_tensor* result = NULL;
  tspan_compat_check(tspan_tensor_power(tensor, exponent, &result));
  return result;
}

tspan_tensor* tspan_ftorch_power_integer(const tspan_tensor* tensor, int64_t exponent) {
  tspan_tensor* result = NULL;
  tspan_compat_check(tspan_tensor_power_integer(tensor, exponent, &result));
  return result;
}

/* A number counts as a tensor without dimensions, of the tensor's dtype if that can hold it. */
static tspan_status make_number(const tspan_tensor* like, double number, int is_real,
                                tspan_tensor** made) {
  const char* dtype;
  tspan_device device;
  tspan_status status = tspan_tensor_dtype(like, &dtype);
  if (status == TSPAN_OK) status = tspan_tensor_device(like, &device);
  if (status != TSPAN_OK) return status;
  if (is_real && dtype[0] != 'f') dtype = "float64";
  status = tspan_tensor_empty(0, NULL, dtype, device.name, 0, made);
  return status == TSPAN_OK ? tspan_tensor_fill(number, *made) : status;
}

/* `first` is 1 where the number stands left of the operator. */
tspan_tensor* tspan_ftorch_combine_number(int32_t operation, const tspan_tensor* tensor,
                                          double number, int32_t first, int32_t is_real) {
  tspan_tensor *other = NULL, *result = NULL;
  tspan_status status = make_number(tensor, number, is_real, &other);
  if (status == TSPAN_OK)
    status = first ? binaries[operation](other, tensor, &result)
                   : binaries[operation](tensor, other, &result);
  tspan_tensor_delete(other);
  tspan_compat_check(status);
  return result;
}

int32_t tspan_ftorch_assign(tspan_tensor** to, const tspan_tensor* from) {
  tspan_tensor* copy = NULL;
  if (*to != NULL) return tspan_compat_check(tspan_ftorch_write(from, *to));
  const int32_t status = tspan_compat_check(tspan_tensor_clone(from, &copy));
  if (status == TSPAN_OK) *to = copy;
  return status;
}

/* The sum of integers is an int64 in PyTorch; the output has the tensor's own dtype. */
int32_t tspan_ftorch_reduce(int32_t mean, const tspan_tensor* tensor, tspan_tensor** output) {
  const char* dtype;
  tspan_tensor *result = NULL, *same = NULL;
  tspan_status status = tspan_tensor_dtype(tensor, &dtype);
  if (status == TSPAN_OK) status = (mean ? tspan_tensor_mean : tspan_tensor_sum)(tensor, &result);
  if (status == TSPAN_OK && dtype[0] != 'f') {
    status = tspan_tensor_to(result, dtype, NULL, &same);
    tspan_tensor_delete(result);
    result = same;
  }
  if (status != TSPAN_OK) return tspan_compat_check(status);
  return tspan_ftorch_land(result, output, 0);
}

int32_t tspan_ftorch_loss(int32_t entropy, const tspan_tensor* input, const tspan_tensor* target,
                          int32_t reduction, tspan_tensor** loss) {
  tspan_tensor* result = NULL;
  const tspan_status status = (entropy ? tspan_loss_cross_entropy : tspan_loss_mse)(
      input, target, (tspan_reduction)reduction, &result);
  if (status != TSPAN_OK) return tspan_compat_check(status);
  return tspan_ftorch_land(result, loss, 0);
}

int32_t tspan_ftorch_gradient(const tspan_tensor* tensor, tspan_tensor** gradient) {
  tspan_tensor *result = NULL, *copy = NULL;
  tspan_status status = tspan_tensor_gradient(tensor, &result);
  if (status == TSPAN_OK && *gradient == NULL) {
    status = tspan_tensor_clone(result, &copy);
    tspan_tensor_delete(result);
    result = copy;
  }
  if (status != TSPAN_OK) return tspan_compat_check(status);
  return tspan_ftorch_land(result, gradient, 1);
}
