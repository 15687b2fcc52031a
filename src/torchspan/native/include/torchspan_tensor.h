/* SPDX-License-Identifier: MIT */
/* Compute with PyTorch's tensors from C: make them over your own memory, calculate, differentiate,
 * train, and run TorchScript modules on them.
 *
 * The rules of torchspan.h hold: C11, a status from every call, results through the last arguments,
 * nothing printed or thrown, and tspan_last_error() for what went wrong.
 *
 * Ownership. A call that gives a handle gives it to the caller, who deletes it. What a handle
 * stands for lives on while something else needs it: a tensor whose graph a result holds may be
 * deleted. Memory of the caller's (tspan_tensor_wrap) stays the caller's: it must outlive every
 * tensor over it and every graph that such a tensor is part of. A handle that was deleted, or that
 * was never made, is told apart from every other and is an error, never a crash. Where a call
 * fails, its result is NULL.
 *
 * Threads. Different tensors may be used by different threads at once, and one tensor may be read
 * by many. A module may be run by many threads at once. Anything else that changes a tensor, a
 * module or an optimizer, deleting included, is for one thread at a time.
 *
 * Dtypes are texts such as "float32", as in a model's description, and devices are texts as in
 * tspan_devices_find that name one device; NULL is "cpu".
 */
#ifndef TORCHSPAN_TENSOR_H
#define TORCHSPAN_TENSOR_H

#include "torchspan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tspan_tensor tspan_tensor;
typedef struct tspan_optimizer tspan_optimizer;
typedef struct tspan_module tspan_module;

/* ---- making tensors -------------------------------------------------------------------------- */

/* A tensor over an array's memory, with its strides, without a copy. What is written to the tensor
 * is seen in the array, and the other way round. `requires_grad` (0 or 1) makes it a leaf of
 * graphs: tspan_tensor_backward accumulates its gradient. */
tspan_status tspan_tensor_wrap(const tspan_array* array, int requires_grad, tspan_tensor** tensor);

/* A tensor on a device with memory of its own and the values, shape and dtype of an array. */
tspan_status tspan_tensor_create(const tspan_array* array, const char* device, int requires_grad,
                                 tspan_tensor** tensor);

/* A new tensor whose values are undefined, 0, or 1; `shape` has `ndim` sizes. */
tspan_status tspan_tensor_empty(int32_t ndim, const int64_t* shape, const char* dtype,
                                const char* device, int requires_grad, tspan_tensor** tensor);
tspan_status tspan_tensor_zeros(int32_t ndim, const int64_t* shape, const char* dtype,
                                const char* device, int requires_grad, tspan_tensor** tensor);
tspan_status tspan_tensor_ones(int32_t ndim, const int64_t* shape, const char* dtype,
                               const char* device, int requires_grad, tspan_tensor** tensor);

/* A copy with memory of its own, in C order. Gradients flow through it. */
tspan_status tspan_tensor_clone(const tspan_tensor* source, tspan_tensor** tensor);

/* A copy of another dtype, on another device, or both; NULL keeps the source's own. Gradients flow
 * through it. */
tspan_status tspan_tensor_to(const tspan_tensor* source, const char* dtype, const char* device,
                             tspan_tensor** tensor);

/* A tensor over the same memory that is part of no graph. */
tspan_status tspan_tensor_detach(const tspan_tensor* source, tspan_tensor** tensor);

/* Another handle of the same tensor, to be deleted by itself. */
tspan_status tspan_tensor_share(const tspan_tensor* source, tspan_tensor** tensor);

/* NULL is fine. */
tspan_status tspan_tensor_delete(tspan_tensor* tensor);

/* ---- asking tensors -------------------------------------------------------------------------- */

/* The tensor's memory, shape, strides and dtype, as an array that is the tensor's own: it is valid
 * until the tensor is deleted or written to by one of the calls below. The device is where the
 * memory is: the host's for a virtual one. */
tspan_status tspan_tensor_view(const tspan_tensor* tensor, tspan_array* array);

/* The name of its dtype, such as "float32"; valid for ever. */
tspan_status tspan_tensor_dtype(const tspan_tensor* tensor, const char** dtype);

/* Its device. */
tspan_status tspan_tensor_device(const tspan_tensor* tensor, tspan_device* device);

/* Whether (1 or 0) gradients are wanted of it or of something that it was computed from. */
tspan_status tspan_tensor_requires_grad(const tspan_tensor* tensor, int* requires_grad);

/* The value of a tensor of one element. */
tspan_status tspan_tensor_value(const tspan_tensor* tensor, double* value);

/* Values and dtype as PyTorch prints them; the text is valid until this thread's next call of a
 * function that gives a text. */
tspan_status tspan_tensor_text(const tspan_tensor* tensor, const char** text);

/* ---- writing to tensors ---------------------------------------------------------------------- */

/* Write a tensor's values into the memory of another of the same dtype, device and shape (or both
 * of one element). The target becomes a result of the source: gradients flow through it, and what
 * it was a result of before is forgotten, so that one target serves every step of a loop. A leaf
 * that requires gradients takes only values that do not. */
tspan_status tspan_tensor_assign(const tspan_tensor* source, tspan_tensor* target);

/* The same between dtypes and devices. With `non_blocking` 1 an accelerator may still be copying
 * when the call returns. */
tspan_status tspan_tensor_convert(const tspan_tensor* source, int non_blocking,
                                  tspan_tensor* target);

/* Write one value, or 0, into every element. The target is a result of nothing afterwards. */
tspan_status tspan_tensor_fill(double value, tspan_tensor* target);
tspan_status tspan_tensor_zero(tspan_tensor* target);

/* ---- arithmetic ------------------------------------------------------------------------------ */

/* Element by element, by PyTorch's rules of broadcasting and of dtypes; a tensor of one element
 * counts as a scalar. Both must be on one device. Gradients flow through all of these. */
tspan_status tspan_tensor_add(const tspan_tensor* left, const tspan_tensor* right,
                              tspan_tensor** result);
tspan_status tspan_tensor_subtract(const tspan_tensor* left, const tspan_tensor* right,
                                   tspan_tensor** result);
tspan_status tspan_tensor_multiply(const tspan_tensor* left, const tspan_tensor* right,
                                   tspan_tensor** result);
/* Integers are divided as real numbers. */
tspan_status tspan_tensor_divide(const tspan_tensor* left, const tspan_tensor* right,
                                 tspan_tensor** result);
tspan_status tspan_tensor_negate(const tspan_tensor* tensor, tspan_tensor** result);
tspan_status tspan_tensor_power(const tspan_tensor* tensor, double exponent, tspan_tensor** result);
/* Keeps integers integers; their exponent must be 0 or more. */
tspan_status tspan_tensor_power_integer(const tspan_tensor* tensor, int64_t exponent,
                                        tspan_tensor** result);
/* Of all elements, into a tensor without dimensions. The mean is of real or complex numbers. */
tspan_status tspan_tensor_sum(const tspan_tensor* tensor, tspan_tensor** result);
tspan_status tspan_tensor_mean(const tspan_tensor* tensor, tspan_tensor** result);

/* ---- gradients ------------------------------------------------------------------------------- */

/* Differentiate a tensor with respect to every leaf that requires gradients and that it was
 * computed from, and add the results to those leaves' gradients. `external` has the tensor's shape
 * and dtype and weighs its elements; NULL is 1, for a tensor of one element. The graph is released
 * unless `retain_graph` is 1. */
tspan_status tspan_tensor_backward(const tspan_tensor* tensor, const tspan_tensor* external,
                                   int retain_graph);

/* The gradient of a leaf: the tensor that the next backward adds to, not a copy of it. */
tspan_status tspan_tensor_gradient(const tspan_tensor* tensor, tspan_tensor** gradient);

/* Set the gradient, if there is one yet, to 0. */
tspan_status tspan_tensor_zero_gradient(tspan_tensor* tensor);

/* Say of a leaf whether gradients are wanted of it. */
tspan_status tspan_tensor_set_requires_grad(tspan_tensor* tensor, int requires_grad);

/* ---- losses ---------------------------------------------------------------------------------- */

/* What becomes of the elements' losses. */
typedef enum tspan_reduction { TSPAN_NONE = 0, TSPAN_MEAN = 1, TSPAN_SUM = 2 } tspan_reduction;

/* The squared difference of two tensors of the same shape and dtype. */
tspan_status tspan_loss_mse(const tspan_tensor* input, const tspan_tensor* target,
                            tspan_reduction reduction, tspan_tensor** loss);

/* The cross entropy of scores (classes,), (batch, classes) or (batch, classes, ...). The target
 * holds a class from 0 for each, of any integer dtype, or probabilities in the input's shape and
 * dtype. */
tspan_status tspan_loss_cross_entropy(const tspan_tensor* input, const tspan_tensor* target,
                                      tspan_reduction reduction, tspan_tensor** loss);

/* ---- optimizers ------------------------------------------------------------------------------ */

typedef struct tspan_sgd {
  double learning_rate, momentum, dampening, weight_decay;
  int nesterov;
} tspan_sgd;
#define TSPAN_SGD_DEFAULTS {1e-3, 0, 0, 0, 0}

typedef struct tspan_adam {
  double learning_rate, beta_1, beta_2, eps, weight_decay;
  int amsgrad;
} tspan_adam;
#define TSPAN_ADAM_DEFAULTS {1e-3, 0.9, 0.999, 1e-8, 0, 0}
#define TSPAN_ADAMW_DEFAULTS {1e-3, 0.9, 0.999, 1e-8, 0.01, 0}

/* An optimizer of `count` leaves, which it shares with their handles; at least one must require
 * gradients. `options` may be NULL for the defaults, which are PyTorch's. */
tspan_status tspan_optimizer_sgd(const tspan_tensor* const* parameters, size_t count,
                                 const tspan_sgd* options, tspan_optimizer** optimizer);
tspan_status tspan_optimizer_adam(const tspan_tensor* const* parameters, size_t count,
                                  const tspan_adam* options, tspan_optimizer** optimizer);
tspan_status tspan_optimizer_adamw(const tspan_tensor* const* parameters, size_t count,
                                   const tspan_adam* options, tspan_optimizer** optimizer);

/* Move every parameter that has a gradient by one step. */
tspan_status tspan_optimizer_step(tspan_optimizer* optimizer);

/* Set all parameters' gradients to 0. */
tspan_status tspan_optimizer_zero_gradients(tspan_optimizer* optimizer);

tspan_status tspan_optimizer_set_learning_rate(tspan_optimizer* optimizer, double learning_rate);

/* NULL is fine. */
tspan_status tspan_optimizer_delete(tspan_optimizer* optimizer);

/* ---- modules --------------------------------------------------------------------------------- */

/* Open a model file for tensors, on one device. A TorchScript .pt can be trained and saved, and
 * starts out of training mode; a .pt2 can be run, without gradients; so can a Python script .py,
 * which tspan_module_train trains and tspan_module_save saves by the script's own functions. What
 * a script keeps of tensors on the CPU goes on as a copy. */
tspan_status tspan_module_load(const char* path, const char* device, tspan_module** module);

/* Run a module on tensors of its device, and give its first `output_count` results as new tensors.
 * With `gradient` 1 they carry their graphs. A tensor of one element serves a TorchScript model
 * that takes a number there. */
tspan_status tspan_module_forward(tspan_module* module, const tspan_tensor* const* inputs,
                                  size_t input_count, int gradient, tspan_tensor** outputs,
                                  size_t output_count);

/* The same without gradients, into the memory of `outputs`, whose dtypes, devices and shapes must
 * be those of the results: the shortest way for tensors that are made once. */
tspan_status tspan_module_run(tspan_module* module, const tspan_tensor* const* inputs,
                              size_t input_count, tspan_tensor* const* outputs,
                              size_t output_count);

/* The parameters, as leaves that the module goes on using. At most `capacity` of them are written
 * to `parameters`, which may be NULL if `capacity` is 0; `*count` is how many there are. */
tspan_status tspan_module_parameters(tspan_module* module, tspan_tensor** parameters,
                                     size_t capacity, size_t* count);

/* The name of a parameter, such as "layer.weight"; valid until the module is deleted. */
tspan_status tspan_module_parameter_name(const tspan_module* module, size_t index,
                                         const char** name);

/* Names, dtypes, shapes and values of all parameters; valid until this thread's next call of a
 * function that gives a text. */
tspan_status tspan_module_text(const tspan_module* module, const char** text);

/* Say of all parameters whether gradients are wanted; a file says it of each. */
tspan_status tspan_module_set_requires_grad(tspan_module* module, int requires_grad);

/* Whether (1 or 0) the module is in training mode, where dropout and batch statistics work. */
tspan_status tspan_module_set_training(tspan_module* module, int training);
tspan_status tspan_module_training(const tspan_module* module, int* training);

/* One training step as a script defines it: whether it says that training is complete, and the
 * loss. Other models define none. */
tspan_status tspan_module_train(tspan_module* module, const tspan_tensor* const* inputs,
                                size_t input_count, const tspan_tensor* target, int* complete,
                                double* loss);

/* Write the module as it is now; a file of that name is replaced once the new one is whole. A
 * script writes what it likes. */
tspan_status tspan_module_save(tspan_module* module, const char* path);

/* NULL is fine. */
tspan_status tspan_module_delete(tspan_module* module);

#ifdef __cplusplus
}
#endif

#endif /* TORCHSPAN_TENSOR_H */
