// SPDX-License-Identifier: MIT
// Who this process is among the others that its launcher started.
#pragma once

#include <optional>
#include <string>

namespace torchspan {

// This process's place; local_size is missing where the launcher does not say.
struct Placement {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  std::optional<int> local_size = 1;
  std::string launcher = "none";
};

Placement find_placement();

}  // namespace torchspan
