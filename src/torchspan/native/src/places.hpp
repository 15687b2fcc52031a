// SPDX-License-Identifier: MIT
// Where the caller's arrays lie: in the host's memory, or in that of a device.
#pragma once

#include <string>
#include <vector>

#include "array.hpp"
#include "devices.hpp"

namespace torchspan {

// Where a device's memory is: a pretended one has the host's.
Place place_of(const Device& device);

class Places {
 public:
  Places() = default;
  // What a model on these devices can take.
  explicit Places(const std::vector<Device>& devices);

  // Where an array lies, as it says itself or its pointer tells; throws where the model cannot
  // take it.
  Place find(const tspan_array& array, const Label& label) const {
    if (array.device.type == 1 && !looking_) return {};
    return look(array, label);
  }

  // The model's devices, for messages.
  const std::string& names() const { return names_; }

 private:
  Place look(const tspan_array& array, const Label& label) const;
  Place place_in(const std::string& kind, int index, const Label& label) const;
  void require_there(const tspan_array& array, Place said, const Label& label) const;

  std::string names_;
  std::string kind_;           // of all the model's devices; "" where they differ
  std::vector<Device> there_;  // every device of that kind
  bool looking_ = false;       // whether a pointer may be a real accelerator's
  Place home_;                 // the first of the model's devices that is one
};

}  // namespace torchspan
