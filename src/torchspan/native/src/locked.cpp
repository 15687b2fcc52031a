// SPDX-License-Identifier: MIT
// Registered memory is noted on every machine, so that a mistake shows on one without accelerators.
#include "locked.hpp"

#include <ATen/Context.h>
#include <ATen/DeviceAccelerator.h>
#include <c10/core/DeviceGuard.h>

#include <cstddef>
#include <map>
#include <shared_mutex>

#include "status.hpp"
#include "vendor.hpp"

namespace torchspan {
namespace {

struct Range {
  std::size_t bytes;
  bool locked;  // whether an accelerator may copy it directly
  bool ours;    // whether it was page-locked here
};

std::shared_mutex mutex;
std::map<const char*, Range> ranges;

std::optional<c10::DeviceType> find_accelerator() {
  if (at::accelerator::deviceCount() == 0) return {};
  const auto type = at::getAccelerator();
  return type && vendor_present() ? type : std::nullopt;
}

// A device that this process uses already: another one would be started by the first call.
c10::Device used_device(c10::DeviceType type) {
  const auto& hooks = at::globalContext().getAcceleratorHooksInterface(type);
  for (c10::DeviceIndex index = 0; index < at::accelerator::deviceCount(); ++index) {
    if (hooks.hasPrimaryContext(index)) return {type, index};
  }
  return {type, at::accelerator::getDeviceIndex()};
}

Range lock(char* data, std::size_t bytes) {
  const auto type = find_accelerator();
  if (!type || bytes == 0) return {bytes, false, false};
  at::globalContext().lazyInitDevice(*type);
  c10::DeviceGuard guard(used_device(*type));
  const auto pinned = [&](const void* at) { return at::globalContext().isPinnedPtr(at, *type); };
  if (pinned(data) && pinned(data + bytes - 1)) return {bytes, true, false};
  if (const auto reason = vendor_lock(data, bytes)) {
    fail(TSPAN_ERROR_MEMORY, bytes, " bytes cannot be page-locked: ", *reason,
         ". Register less memory, or raise the limit that 'ulimit -l' shows; unregistered memory "
         "does too, only slower.");
  }
  return {bytes, true, true};
}

void require_free(const char* data, std::size_t bytes) {
  auto after = ranges.upper_bound(data);
  auto here = after == ranges.begin() ? ranges.end() : std::prev(after);
  if (here != ranges.end() && here->first == data) {
    fail(TSPAN_ERROR_ARGUMENT,
         "the memory is registered already. Register it once, or unregister it first.");
  }
  if ((here != ranges.end() && here->first + here->second.bytes > data) ||
      (after != ranges.end() && data + bytes > after->first)) {
    fail(TSPAN_ERROR_ARGUMENT,
         "a part of the memory is registered already. Register the whole of it once, or "
         "unregister the part first.");
  }
}

}  // namespace

std::optional<bool> find_registered(const char* first, const char* last) {
  std::shared_lock lock(mutex);
  auto after = ranges.upper_bound(first);
  if (after == ranges.begin()) return {};
  const auto& [data, range] = *std::prev(after);
  if (first >= data + range.bytes) return {};
  return range.locked && last < data + range.bytes;
}

}  // namespace torchspan

tspan_status tspan_memory_register(void* data, size_t bytes) {
  return torchspan::guarded([&] {
    torchspan::require(data, "data");
    std::unique_lock one(torchspan::mutex);
    auto* memory = static_cast<char*>(data);
    torchspan::require_free(memory, bytes);
    torchspan::ranges.emplace(memory, torchspan::lock(memory, bytes));
  });
}

tspan_status tspan_memory_unregister(void* data) {
  return torchspan::guarded([&] {
    torchspan::require(data, "data");
    std::unique_lock one(torchspan::mutex);
    auto found = torchspan::ranges.find(static_cast<char*>(data));
    if (found == torchspan::ranges.end()) {
      torchspan::fail(TSPAN_ERROR_ARGUMENT,
                      "no registered memory begins there. Give the pointer that was registered, "
                      "once.");
    }
    const bool ours = found->second.ours;
    torchspan::ranges.erase(found);
    if (!ours) return;
    if (const auto reason = torchspan::vendor_unlock(data)) {
      torchspan::fail(TSPAN_ERROR, "the memory cannot be unlocked: ", *reason,
                      ". Unregister memory before it is freed.");
    }
  });
}
