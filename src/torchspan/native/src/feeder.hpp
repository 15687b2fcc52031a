// SPDX-License-Identifier: MIT
// A model on an accelerator: its inputs there, wherever they are, and its results where they
// belong.
#pragma once

#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "accelerator.hpp"
#include "arguments.hpp"
#include "staging.hpp"

namespace torchspan {

class Feeder {
 public:
  // `home` is the place of the device's memory; `row_bytes` is 0 where rows must stay together.
  Feeder(const at::Device& device, Place home, int cores, std::int64_t row_bytes);

  // Run some rows of a call. On return results are there, or, for arrays that are all on devices,
  // on the way in the call's queue if it has one.
  void run(const Compute& compute, const Checker& checker, const Call& call,
           std::optional<Rows> rows);

 private:
  // What a call asks for besides its arrays.
  struct Errand {
    const Call* call;
    std::vector<at::Device> others;  // devices besides this one that hold arrays of the call
    bool hosted = false;             // whether an array is in host memory
    bool here = false;               // whether one is on this device
  };
  struct Copy {
    View to, from;
  };

  Errand survey(const Call& call) const;
  bool streams(std::span<const Slab> inputs, std::span<const Slab> outputs,
               std::int64_t rows) const;
  void run_whole(const Compute& compute, std::span<const Slab> inputs,
                 std::span<const Slab> outputs, std::optional<Rows> rows, const Errand& errand);
  void begin(const Errand& errand) const;
  void end(const Errand& errand) const;
  bool goes_directly(const View& view) const;
  at::Tensor bring(const View& view, Buffer& buffer) const;
  void send(const at::Tensor& result, const View& view, Buffer& buffer,
            std::vector<Copy>& copies) const;
  at::Device device_at(Place place) const;
  Lane caller_lane(const Queue& queue) const;

  const at::Device device_;
  const Place home_;
  const int copiers_;  // threads
  const std::int64_t row_bytes_;
  const Lane lane_;
  std::mutex mutex_;
  std::vector<Buffer> in_, out_;
  std::optional<Staging> staging_;
};

}  // namespace torchspan
