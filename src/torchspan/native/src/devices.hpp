// SPDX-License-Identifier: MIT
// Find, name and parse devices, by the rules of torchspan's Python package.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace torchspan {

// One place that computes: its name is what users write, its backing where torch computes.
struct Device {
  std::string kind;
  int index = 0;
  std::string backing;

  std::string name() const { return kind + ":" + std::to_string(index); }
  bool on_cpu() const { return backing == "cpu"; }
  // The kind of the backing: "cpu", "cuda", ...
  std::string backing_kind() const { return backing.substr(0, backing.find(':')); }
};

// The devices that a text such as "cuda:0,cuda:1" names, in its order.
std::vector<Device> parse_devices(std::string_view spec);

// How many cores this process may use, by its affinity mask.
int usable_cores();

}  // namespace torchspan
