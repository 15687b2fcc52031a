// SPDX-License-Identifier: MIT
// What a device must be able to do to run a build.
#pragma once

#include <string>
#include <vector>

#include "description.hpp"
#include "devices.hpp"

namespace torchspan {

// The builds of a file that a device can run, in the order in which to try them: those for some
// batches before the one for any. There is always one for any, or an error that names the command
// that adds it.
std::vector<Build> choose_builds(const Description& description, const Device& device,
                                 const std::string& path);

}  // namespace torchspan
