// SPDX-License-Identifier: MIT
// A device's number is DLPack's, a pointer's owner is asked of the accelerator.
#include "places.hpp"

#include <c10/core/Device.h>

#include "accelerator.hpp"
#include "status.hpp"

namespace torchspan {
namespace {

// DLPack's device types of memory that the host reads and writes as its own.
bool is_hosted(std::int32_t type) { return type == 1 || type == 3 || type == 11; }

// What torch calls the devices of one of DLPack's types; null for those it has not.
const char* find_kind(std::int32_t type) {
  switch (type) {
    case 2:
    case 10:
    case 13:
      return "cuda";
    case 14:
      return "xpu";
    case 8:
      return "mps";
    default:
      return nullptr;
  }
}

}  // namespace

Place place_of(const Device& device) {
  if (device.on_cpu()) return {};
  const c10::Device backing(device.backing);
  return {static_cast<std::int8_t>(backing.type()), static_cast<std::int8_t>(backing.index())};
}

Places::Places(const std::vector<Device>& devices) : kind_(devices.front().kind) {
  for (const Device& each : devices) {
    names_ += say(names_.empty() ? "" : ",", each.name());
    if (each.kind != kind_) kind_ = "";
    if (!each.on_cpu() && !looking_) home_ = place_of(each);
    looking_ = looking_ || !each.on_cpu();
  }
  if (!kind_.empty() && kind_ != "cpu") there_ = parse_devices(kind_);
}

Place Places::look(const tspan_array& array, const Label& label) const {
  if (is_hosted(array.device.type)) {
    if (!looking_ || array.data == nullptr) return {};
    const Place found = find_place(array.data, home_);
    if (found.on_host() || !kind_.empty()) return found;
    return place_in(c10::DeviceTypeName(static_cast<c10::DeviceType>(found.type), true),
                    found.index, label);
  }
  const char* kind = find_kind(array.device.type);
  if (kind == nullptr) {
    fail(TSPAN_ERROR_ARGUMENT, label.text(), " has device type ", array.device.type,
         "; it is 1 for the host's memory, 2 for CUDA's, 10 for ROCm's, 14 for oneAPI's and 8 for "
         "Metal's.");
  }
  const Place said = place_in(kind, array.device.index, label);
  if (!said.on_host() && array.data != nullptr) require_there(array, said, label);
  return said;
}

// A program that says the wrong thing would end in the middle of a kernel.
void Places::require_there(const tspan_array& array, Place said, const Label& label) const {
  const Place found = find_place(array.data, said);
  if (found == said) return;
  const std::string name = c10::DeviceTypeName(static_cast<c10::DeviceType>(said.type), true);
  fail(TSPAN_ERROR_ARGUMENT, label.text(), " is said to be in the memory of ", name, ":",
       int(said.index), ", and its address is in ",
       found.on_host() ? std::string("the host's") : say("that of ", name, ":", int(found.index)),
       ". Set its device to where it is.");
}

Place Places::place_in(const std::string& kind, int index, const Label& label) const {
  const std::string name = say(kind, ":", index);
  if (kind != kind_) {
    fail(TSPAN_ERROR_ARGUMENT, label.text(), " is in the memory of ", name,
         ", and this model is on ", names_, ". Open the model with devices=\"", name,
         "\", or copy the array to the host's memory.");
  }
  if (index < 0 || index >= std::ssize(there_)) {
    std::string seen;
    for (const Device& each : there_) seen += say(seen.empty() ? "" : ", ", each.name());
    fail(TSPAN_ERROR_DEVICE, label.text(), " is said to be in the memory of ", name,
         ", which is not there. This process sees ", seen, ".");
  }
  const Device& device = there_[static_cast<std::size_t>(index)];
  if (device.backing_kind() == "mps") {
    fail(TSPAN_ERROR_ARGUMENT, label.text(),
         " is a Metal buffer, which is not taken: an Apple GPU shares the host's memory. Give a "
         "pointer to that, with device type 1.");
  }
  return place_of(device);
}

}  // namespace torchspan
