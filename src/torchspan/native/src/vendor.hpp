// SPDX-License-Identifier: MIT
// What torch's interface to accelerators has not: where a pointer leads, and page-locking of memory
// that is there already. Asked of the vendor's own runtime, where this process has one.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace torchspan {

// Whether this process has CUDA's or ROCm's runtime.
bool vendor_present();

// The index of the device whose memory a pointer leads to; none for the host's.
std::optional<int> vendor_device(const void* pointer);

// Page-lock memory, or let go of it; gives what the runtime says where it cannot.
std::optional<std::string> vendor_lock(void* data, std::size_t bytes);
std::optional<std::string> vendor_unlock(void* data);

}  // namespace torchspan
