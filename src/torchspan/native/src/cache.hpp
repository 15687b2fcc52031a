// SPDX-License-Identifier: MIT
// Builds unpacked once per machine, in the cache that torchspan's Python package shares.
#pragma once

#include <filesystem>

#include "archive.hpp"
#include "description.hpp"

namespace torchspan {

// Where a build's files lie below its folder: torch's own loader looks there.
inline constexpr const char* opened_folder = "data/aotinductor/model";

// The folder that a build is unpacked in, filled first where it is not there.
std::filesystem::path unpack_build(Archive& archive, const Build& build);

}  // namespace torchspan
