// SPDX-License-Identifier: MIT
// Memory that the caller registered, so that accelerators copy it without a detour.
#pragma once

#include <optional>

namespace torchspan {

// Whether memory from its first to its last byte is page-locked, as far as it was registered:
// nothing for memory that begins in none that was.
std::optional<bool> find_registered(const char* first, const char* last);

}  // namespace torchspan
