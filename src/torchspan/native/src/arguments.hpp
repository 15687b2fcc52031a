// SPDX-License-Identifier: MIT
// Check one call's inputs and outputs against the description, before anything runs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "array.hpp"
#include "description.hpp"
#include "places.hpp"

namespace torchspan {

// A stream of the caller's, which is one of a device's.
struct Queue {
  void* stream;
  Place place;
};

// One call's arrays, ready to be run.
struct Call {
  std::vector<View> inputs, outputs;
  std::optional<Rows> rows;    // missing where there is no batch
  std::optional<Queue> queue;  // what the call is a part of; missing where the caller waits for it
};

class Checker {
 public:
  Checker() = default;
  explicit Checker(const Description& description);

  // Check a call and fill `call`, whose memory is used again.
  void check(std::span<const tspan_array> inputs, std::span<const tspan_array> outputs,
             const Places& places, Call& call, bool splitting) const;

  bool input_batched(std::size_t index) const { return !known_ || inputs_[index].batched; }
  bool output_batched(std::size_t index) const { return !known_ || outputs_[index].batched; }

 private:
  // A spec taken apart so that checking a call costs next to nothing.
  struct Expected {
    Spec spec;
    const Dtype* dtype;
    bool batched;
    std::vector<std::int64_t> fixed;  // -1 where a dimension is not a number
    std::vector<int> named;           // which named size a dimension is; -1 where it is none
  };
  struct Named {
    std::string name;
    Limits limits;
  };

  Expected take_apart(const Spec& spec);
  void check_count(const char* role, std::size_t given, const std::vector<Expected>& expected,
                   bool known) const;
  void check_array(const Expected& expected, const Label& label, const View& view, bool input,
                   std::int64_t* sizes) const;
  void check_limits(const std::int64_t* sizes) const;
  std::optional<Rows> find_rows(const Call& call, bool splitting) const;
  [[noreturn]] void fail_shape(const Expected& expected, const Label& label, const View& view,
                               bool input, const std::int64_t* sizes) const;

  bool known_ = false;  // whether dtypes and shapes are
  std::vector<Expected> inputs_, outputs_;
  std::vector<Named> named_;
  int batch_ = -1;  // which of named_ is the batch
};

}  // namespace torchspan
