// SPDX-License-Identifier: MIT
// Streams, marks and page-locked memory of whatever accelerator torch drives. On the CPU, where
// work is done when it is asked for, streams do nothing.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>

#include <optional>

#include "array.hpp"

namespace torchspan {

// Whether devices of this kind copy and compute at the same time.
bool has_streams(const at::Device& device);

// Have torch start its accelerator, once; there must be one.
void start_accelerator(const at::Device& device);

// A point in a stream's work.
class Mark {
 public:
  Mark() = default;
  // Wait until the work before it is done.
  void synchronize() const {
    if (event_) event_->synchronize();
  }

 private:
  friend class Lane;
  std::optional<c10::Event> event_;
};

// One stream of a device.
class Lane {
 public:
  // A stream of its own.
  explicit Lane(const at::Device& device);
  // The one that a program's work goes to if it says nothing else.
  static Lane standard(const at::Device& device);
  // The one that torch's work goes to in this thread.
  static Lane current(const at::Device& device);
  // One of the caller's: a cudaStream_t, a hipStream_t or a pointer to a sycl::queue.
  static Lane borrowed(const at::Device& device, void* stream);

  bool flows() const { return stream_.has_value(); }
  // Have what is launched while the result lives go to this stream, on its device.
  c10::OptionalStreamGuard use() const { return c10::OptionalStreamGuard(stream_); }
  // Mark the end of what was launched so far.
  Mark record() const;
  // Have what is launched from now on begin after a mark; the caller does not wait.
  void wait(const Mark& mark) const;
  // Keep a tensor's memory from being used again before this stream is done with it.
  void keep(const at::Tensor& tensor) const;

 private:
  Lane() = default;
  std::optional<c10::Stream> stream_;
};

// Where a pointer leads; `home` is a device that this process uses already.
Place find_place(void* pointer, Place home);

// Host memory that `device` copies while programs run; ordinary memory for a CPU.
at::DataPtr allocate_locked(const at::Device& device, std::size_t bytes);

// Whether `device` may copy this memory without a detour: it is page-locked and without gaps.
bool is_locked(const at::Device& device, const View& view);

}  // namespace torchspan
