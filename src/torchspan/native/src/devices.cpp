// SPDX-License-Identifier: MIT
// Find, name and parse devices; accelerators through torch's generic interface.
#include "devices.hpp"

#include <ATen/DeviceAccelerator.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>

#include "placement.hpp"
#include "status.hpp"

namespace torchspan {
namespace {

constexpr int virtual_cpus = 64;
constexpr const char* accelerators[] = {"cuda", "xpu", "mps"};
constexpr const char* known = "cpu, cuda, xpu, mps, 'all' and 'rank'";

struct Item {
  std::string kind;
  std::optional<int> index;
};

std::string trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\n\r\f\v"), text.size()));
  return std::string(text.substr(0, text.find_last_not_of(" \t\n\r\f\v") + 1));
}

// The kind of accelerator that torch drives here, as users write it, and how many there are.
std::pair<std::string, int> real_accelerators() {
  int count = at::accelerator::deviceCount();
  auto type = at::getAccelerator();
  if (count == 0 || !type.has_value()) return {"", 0};
  std::string kind = c10::DeviceTypeName(*type, true);
  return {kind == "hip" ? "cuda" : kind, count};
}

std::optional<int> pretended(const std::string& kind) {
  std::string variable = "TORCHSPAN_PRETEND_" + kind;
  std::transform(variable.begin(), variable.end(), variable.begin(), ::toupper);
  const char* value = std::getenv(variable.c_str());
  std::string text = trimmed(value == nullptr ? "" : value);
  if (text.empty() || text == "0") return {};
  int most = kind == "mps" ? 1 : virtual_cpus;
  int number = -1;
  auto [rest, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || rest != text.data() + text.size() || number < 0 || number > most) {
    fail(TSPAN_ERROR_DEVICE, variable, "='", text, "' is not a number of devices from 0 to ", most,
         ". Set it to one, or unset it.");
  }
  return number;
}

// Pretended devices stand in place of the real ones of their kind, and share them.
std::vector<Device> visible_accelerators(std::string_view kind = "") {
  auto [real, count] = real_accelerators();
  std::vector<Device> found;
  for (const char* each : accelerators) {
    if (!kind.empty() && kind != each) continue;
    int behind = real == each ? count : 0;
    int number = pretended(each).value_or(behind);
    for (int index = 0; index < number; ++index) {
      std::string backing = behind ? say(each, ":", index % behind) : "cpu";
      found.push_back({each, index, backing});
    }
  }
  return found;
}

std::string there() {
  std::string names;
  for (const Device& device : visible_accelerators()) names += device.name() + ", ";
  return say("This process sees ", names, "cpu:0 to cpu:", virtual_cpus - 1, " (virtual).");
}

Device cpu(int index) {
  if (index >= virtual_cpus) {
    fail(TSPAN_ERROR_DEVICE, "device 'cpu:", index,
         "' is not there; virtual CPUs go from cpu:0 to cpu:", virtual_cpus - 1, ".");
  }
  return {"cpu", index, "cpu"};
}

std::string masks_of(const std::string& kind) {
  std::vector<const char*> names;
  if (kind == "cuda") {
    names = {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"};
  } else if (kind == "xpu") {
    names = {"ZE_AFFINITY_MASK", "ONEAPI_DEVICE_SELECTOR"};
  }
  std::string masks;
  for (const char* name : names) {
    const char* value = std::getenv(name);
    if (value != nullptr) masks += say(masks.empty() ? "" : ", ", name, "='", value, "'");
  }
  return masks.empty() ? "" : " with " + masks;
}

[[noreturn]] void fail_absent(const std::string& text, const std::string& kind, int index) {
  std::string message = say("device '", text, "' is not there", masks_of(kind), ". ", there());
  if (index < (kind == "mps" ? 1 : virtual_cpus)) {
    std::string upper = kind;
    std::transform(upper.begin(), upper.end(), upper.begin(), ::toupper);
    message += say(" To try a program that names GPUs without them, set TORCHSPAN_PRETEND_", upper,
                   "=", kind == "mps" ? 1 : std::max(2, index + 1), ".");
  }
  fail(TSPAN_ERROR_DEVICE, message);
}

// A kind, or a kind and a number without leading zeros, of six digits at most.
std::optional<Item> read_item(const std::string& text) {
  std::size_t colon = text.find(':');
  Item item{text.substr(0, colon), {}};
  bool letters = std::all_of(item.kind.begin(), item.kind.end(),
                             [](char each) { return each >= 'a' && each <= 'z'; });
  if (item.kind.empty() || !letters) return {};
  if (colon == text.npos) return item;
  std::string digits = text.substr(colon + 1);
  bool numeric = !digits.empty() && digits.size() <= 6 &&
                 digits.find_first_not_of("0123456789") == digits.npos;
  if (!numeric || (digits.size() > 1 && digits[0] == '0')) return {};
  item.index = std::stoi(digits);
  return item;
}

std::vector<Device> parse_one(std::string text, std::string_view whole) {
  text = trimmed(text);
  std::transform(text.begin(), text.end(), text.begin(), ::tolower);
  if (text == "all" || text == "rank") {
    std::vector<Device> choice = visible_accelerators();
    if (choice.empty()) choice = {cpu(0)};
    if (text == "all") return choice;
    return {choice[find_placement().local_rank % choice.size()]};
  }
  std::optional<Item> item = read_item(text);
  if (!item) {
    fail(TSPAN_ERROR_DEVICE, "'", whole,
         "' is no list of devices; write for example 'cuda:0', 'cuda:0,cuda:1', 'cpu', 'all' or "
         "'rank'. ",
         there());
  }
  auto& [kind, index] = *item;
#ifdef TORCHSPAN_ROCM
  if (kind == "hip" || kind == "rocm") kind = "cuda";
#endif
  if (kind == "cpu") return {cpu(index.value_or(0))};
  if (std::find(std::begin(accelerators), std::end(accelerators), kind) == std::end(accelerators)) {
    fail(TSPAN_ERROR_DEVICE, "device '", text, "' is of no known kind; known are ", known, ". ",
         there());
  }
  std::vector<Device> choice = visible_accelerators(kind);
  if (!index && !choice.empty()) return choice;
  if (!index || *index >= static_cast<int>(choice.size())) {
    fail_absent(text, kind, index.value_or(0));
  }
  return {choice[*index]};
}

}  // namespace

std::vector<Device> parse_devices(std::string_view spec) {
  std::vector<Device> found;
  for (std::size_t start = 0; start <= spec.size();) {
    std::size_t comma = std::min(spec.find(',', start), spec.size());
    for (Device& each : parse_one(std::string(spec.substr(start, comma - start)), spec)) {
      found.push_back(std::move(each));
    }
    start = comma + 1;
  }
  return found;
}

int usable_cores() {
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) return std::max(1, CPU_COUNT(&mask));
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace torchspan

tspan_status tspan_devices_find(const char* spec, tspan_device* devices, size_t capacity,
                                size_t* count) {
  return torchspan::guarded([&] {
    torchspan::require(spec, "spec");
    torchspan::require(count, "count");
    if (capacity > 0) torchspan::require(devices, "devices");
    std::vector<torchspan::Device> found = torchspan::parse_devices(spec);
    for (size_t index = 0; index < std::min(capacity, found.size()); ++index) {
      tspan_device named = {};
      std::strncpy(named.name, found[index].name().c_str(), sizeof named.name - 1);
      std::strncpy(named.backing, found[index].backing.c_str(), sizeof named.backing - 1);
      devices[index] = named;
    }
    *count = found.size();
  });
}
