/* SPDX-License-Identifier: MIT */
/* Run PyTorch models on any number of devices, from C.
 *
 * This header is C11 and needs nothing but itself. Every call returns a status and writes its
 * results through its last arguments; none prints, exits or throws. After a status other than
 * TSPAN_OK, tspan_last_error() has this thread's message, which says what was given, what was
 * expected and what to do.
 *
 * Handles are opaque and typed. A handle may be used from several threads at once; it may be closed
 * only when no call on it is under way.
 */
#ifndef TORCHSPAN_H
#define TORCHSPAN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The library's binary interface: it changes when a program must be compiled again. */
#define TSPAN_ABI_VERSION 1

/* What went wrong; the numbers are those of the Python exceptions' codes. */
typedef enum tspan_status {
  TSPAN_OK = 0,
  TSPAN_ERROR = 1,            /* anything that has no code of its own */
  TSPAN_ERROR_ARGUMENT = 2,   /* a value does not fit: its dtype, shape, number or meaning */
  TSPAN_ERROR_DEVICE = 3,     /* a device is unknown or not there */
  TSPAN_ERROR_PLACEMENT = 4,  /* the launcher's variables contradict each other */
  TSPAN_ERROR_MODEL_FILE = 5, /* a model file is missing, damaged, too new, or does not fit */
  TSPAN_ERROR_MODEL = 6,      /* the model itself failed while it ran */
  TSPAN_ERROR_MEMORY = 7,     /* a device or the host ran out of memory */
  TSPAN_ERROR_RANK = 8,       /* another rank failed */
  TSPAN_ERROR_BUILD = 9,      /* a compiler failed */
  TSPAN_ERROR_CHECKPOINT = 10 /* a checkpoint is missing or damaged */
} tspan_status;

/* This thread's message for its last call that failed; empty before that. It stays valid until this
 * thread's next call that fails. */
const char* tspan_last_error(void);

/* Make a message this thread's, for interfaces of other languages that find errors of their own;
 * returns `status`. */
tspan_status tspan_error_keep(tspan_status status, const char* message);

/* The library's version, such as "0.1.0". */
const char* tspan_version(void);

/* TSPAN_ABI_VERSION as the library was compiled with it. */
int tspan_abi_version(void);

/* ---- placement ------------------------------------------------------------------------------- */

/* Who this process is among those that its launcher started. */
typedef struct tspan_placement {
  int32_t rank;       /* from 0 */
  int32_t size;       /* how many processes there are */
  int32_t local_rank; /* among those on this machine, from 0 */
  int32_t local_size; /* how many are on this machine; -1 where the launcher does not say */
  char launcher[16];  /* "torchrun", "openmpi", ...; "none" for a process started alone */
} tspan_placement;

/* Read this process's placement from its launcher's variables; MPI need not be initialised. */
tspan_status tspan_placement_find(tspan_placement* placement);

/* ---- devices --------------------------------------------------------------------------------- */

/* One place that computes. */
typedef struct tspan_device {
  char name[16];    /* what users write: "cuda:0", "cpu:1" */
  char backing[16]; /* where torch really computes: "cuda:0", "cpu" */
} tspan_device;

/* Find devices by a text: "cuda:0,cuda:1", "cuda", "all", "rank", "cpu", "cpu:0,cpu:1".
 *
 * At most `capacity` of them are written to `devices`, which may be NULL if `capacity` is 0;
 * `*count` is how many there are. A device that is not there is an error that lists those that
 * are. */
tspan_status tspan_devices_find(const char* spec, tspan_device* devices, size_t capacity,
                                size_t* count);

/* ---- arrays ---------------------------------------------------------------------------------- */

/* An array of the caller's, laid out as DLPack's DLTensor, to which it may be cast and back.
 *
 * A model on accelerators takes arrays in their memory without a copy to the host: `device` says
 * where an array is, or is that of the host, and the pointer tells. */
typedef enum tspan_kind { /* DLPack's DLDataTypeCode */
                          TSPAN_INT = 0,
                          TSPAN_UINT = 1,
                          TSPAN_FLOAT = 2,
                          TSPAN_BFLOAT = 4,
                          TSPAN_COMPLEX = 5,
                          TSPAN_BOOL = 6
} tspan_kind;

typedef struct tspan_array {
  void* data;
  struct {
    int32_t type;  /* DLPack's DLDeviceType: 1 is the CPU, 2 is CUDA, 8 Metal, 10 ROCm, 14 oneAPI */
    int32_t index; /* among the devices of that type that this process sees */
  } device;
  int32_t ndim;
  struct {
    uint8_t kind;   /* a tspan_kind */
    uint8_t bits;   /* of one element; a complex number's two parts together */
    uint16_t lanes; /* 1 */
  } dtype;
  const int64_t* shape;   /* ndim sizes, the slowest varying first if the array is in C order */
  const int64_t* strides; /* in elements, one a dimension; NULL for an array in C order */
  uint64_t byte_offset;   /* from data to the first element */
} tspan_array;

/* Page-lock memory that is used in many calls, so that accelerators copy it without a detour. Its
 * pages stay in memory until it is unregistered, which must be before it is freed.
 *
 * Where no accelerator needs it (a machine without one, or one of Intel's or Apple's) nothing is
 * locked, and the same calls succeed and fail: memory may be registered once at a time, and no
 * part of it in another range. Register it after the first model is loaded, or the first device
 * is started for it. */
tspan_status tspan_memory_register(void* data, size_t bytes);

/* Let go of memory by the pointer that it was registered by. */
tspan_status tspan_memory_unregister(void* data);

/* ---- models ---------------------------------------------------------------------------------- */

typedef struct tspan_model tspan_model;
typedef struct tspan_request tspan_request;

/* Open a .pt2 or .pt model file or a .py script on devices (a text as in tspan_devices_find; NULL
 * for "all").
 *
 * A .pt2 file needs a build for each kind of device; where there is none the error names the
 * command that adds it. A script needs the Python that torch is installed in, and runs once a
 * device; docs/native.md says what it may hold. */
tspan_status tspan_model_load(const char* path, const char* devices, tspan_model** model);

/* Wait for what is under way and free a model; NULL is fine. */
tspan_status tspan_model_close(tspan_model* model);

/* What the model says of itself, as JSON: inputs, outputs, builds, versions. The text belongs to
 * the model. docs/architecture.md has its form. */
tspan_status tspan_model_describe(const tspan_model* model, const char** json);

/* How many inputs and outputs a call has; -1 for what the file does not say. */
tspan_status tspan_model_counts(const tspan_model* model, int* inputs, int* outputs);

/* Run a batch. Rows (the first dimension) are split over the devices, which work at the same time.
 *
 * Inputs and outputs are checked against the file's description before anything runs; results are
 * written into the memory of `outputs`, which must have their dtypes and shapes. A layout that the
 * model cannot take is copied, never misread. Work on arrays in a device's memory begins after what
 * is on its default stream, and is done when the call returns. */
tspan_status tspan_model_run(tspan_model* model, const tspan_array* inputs, size_t input_count,
                             const tspan_array* outputs, size_t output_count);

/* Run a batch as a part of a stream of the caller's: it begins after what is there, and what is put
 * there afterwards finds the results.
 *
 * `stream` is of the first of the model's devices: a cudaStream_t, a hipStream_t or a pointer to a
 * sycl::queue; NULL is CUDA's and ROCm's default stream, and all there is on a CPU. Where every
 * array is in devices' memory the call returns before the work is done. */
tspan_status tspan_model_run_on(tspan_model* model, void* stream, const tspan_array* inputs,
                                size_t input_count, const tspan_array* outputs,
                                size_t output_count);

/* Start a batch and return at once: the host computes on while devices work. Arrays' memory must
 * stay as it is until the request is done; the descriptions themselves are copied. */
tspan_status tspan_model_submit(tspan_model* model, const tspan_array* inputs, size_t input_count,
                                const tspan_array* outputs, size_t output_count,
                                tspan_request** request);

/* Take one training step of a script that is open on one device: call its function train.
 *
 * `*loss` is what it returned, `*completed` whether it said that training is complete (1) or not
 * (0); either may be NULL. */
tspan_status tspan_model_train(tspan_model* model, const tspan_array* inputs, size_t input_count,
                               const tspan_array* targets, size_t target_count, double* loss,
                               int* completed);

/* Have a script that is open on one device save itself to a file: call its function save. */
tspan_status tspan_model_save(tspan_model* model, const char* path);

/* Whether a request is done (1) or not (0); the request goes on existing. */
tspan_status tspan_request_test(tspan_request* request, int* done);

/* Wait for a request, free it, and give the status that the run would have given. */
tspan_status tspan_request_wait(tspan_request* request);

#ifdef __cplusplus
}
#endif

#endif /* TORCHSPAN_H */
