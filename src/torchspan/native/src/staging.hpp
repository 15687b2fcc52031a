// SPDX-License-Identifier: MIT
// Stream rows from host memory through an accelerator and back, in chunks.
//
// Three streams (in, compute, out) work on three chunks at a time. Ordinary memory cannot be copied
// while a program runs, so chunks pass through page-locked buffers that are kept between calls: the
// caller's thread fills them and a second one empties them. Registered memory skips the buffers.
#pragma once

#include <array>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "accelerator.hpp"
#include "runner.hpp"
#include "worker.hpp"

namespace torchspan {

inline constexpr std::int64_t staged_bytes = 32 << 20;

// Run tensors on the device, in the current stream; `rows` chooses the build.
using Compute =
    std::function<std::vector<at::Tensor>(std::vector<at::Tensor>, std::optional<Rows> rows)>;

// An input or an output, and whether it has the batch for its first dimension.
struct Slab {
  View view;
  bool batched;
};

// Memory that is kept between calls and grows.
class Buffer {
 public:
  // The contiguous memory of an array of this shape and dtype, page-locked for `device`.
  View like(const View& view, const at::Device& device);

 private:
  at::DataPtr memory_;
  std::int64_t bytes_ = 0;
};

// Copy between arrays of one shape in host memory, by several threads where there is much.
void copy_rows(const View& to, const View& from, int threads);

class Staging {
 public:
  // `cores` threads fill the buffers and as many empty them; `chunk_bytes` is the most that a chunk
  // of an array has.
  Staging(const at::Device& device, int cores, std::int64_t chunk_bytes = staged_bytes);

  // Run rows that are all in host memory; other callers wait for their turn.
  void run(const Compute& compute, std::span<const Slab> inputs, std::span<const Slab> outputs,
           std::int64_t rows);

 private:
  // The buffers of one chunk on its way.
  struct Slot {
    std::vector<Buffer> in, out;
    std::vector<at::Tensor> there;
    bool free = true;
  };
  struct Copy {
    View to, from;
  };

  void run_chunks(const Compute& compute, std::span<const Slab> inputs,
                  std::span<const Slab> outputs, std::int64_t rows);
  void launch(Slot& slot, const Compute& compute, std::span<const Slab> inputs,
              std::span<const at::Tensor> shared, std::span<const Slab> outputs, Rows chunk);
  at::Tensor copy_in(Slot& slot, std::size_t index, const Slab& slab, Rows chunk);
  std::vector<Copy> copy_out(Slot& slot, std::span<const at::Tensor> results,
                             std::span<const Slab> outputs, Rows chunk);
  void land(Slot& slot, const Mark& done, const std::vector<Copy>& copies);
  void wait_free(Slot& slot);
  void settle();

  const at::Device device_;
  const int cores_;
  const std::int64_t chunk_bytes_;
  const Lane into_, compute_, out_;
  std::array<Slot, 3> slots_;
  std::mutex turn_, mutex_;
  std::condition_variable changed_;
  std::exception_ptr failure_;
  // Ends before what its tasks use.
  Worker emptier_;
};

}  // namespace torchspan
