// SPDX-License-Identifier: MIT
// CPU builds are made for a named level of instructions. On a CPU below it one would end the
// process with SIGILL, so it is refused before it is opened.
#include "capability.hpp"

#include <ATen/Version.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "status.hpp"

namespace torchspan {
namespace {

#if defined(__aarch64__)
constexpr bool on_arm = true;
#else
constexpr bool on_arm = false;
#endif

std::string cpu_level() {
  if (on_arm) return "neon";
  std::string found = at::get_cpu_capability();
  if (found == "AVX512") return "avx512";
  return found == "AVX2" ? "avx2" : "baseline";
}

// Levels of one family with a larger number run builds of smaller ones; -1 is of another family.
int order(const std::string& level) {
  if (level == "baseline") return 0;
  if (on_arm) return level == "neon" ? 1 : -1;
  if (level == "avx2") return 1;
  return level == "avx512" ? 2 : -1;
}

bool fits(const Build& build, const Device& device) {
  // What an accelerator can do is not asked here: torch says no more than its kind in C++.
  if (!device.on_cpu()) return true;
  int needed = order(build.capability);
  return needed >= 0 && needed <= order(cpu_level());
}

[[noreturn]] void fail_without(const std::vector<Build>& wanted, const Device& device,
                               const std::string& path) {
  std::string kind = device.backing_kind();
  std::string command = say("torchspan compile ", std::filesystem::path(path).filename().string(),
                            " --device ", kind);
  std::set<std::string> levels;
  for (const Build& build : wanted) {
    if (!fits(build, device)) levels.insert(build.capability);
  }
  std::string have;
  for (const std::string& level : levels) have += (have.empty() ? "" : ", ") + level;
  if (!levels.empty()) {
    fail(TSPAN_ERROR_MODEL_FILE, path, " holds builds for ", kind, " with ", have, ", which ",
         device.name(), " (", cpu_level(),
         ") cannot run. Add one that it can, on such a machine: ", command);
  }
  fail(TSPAN_ERROR_MODEL_FILE, path, " holds no build for ", kind,
       wanted.empty() ? "" : " that takes any batch", ", which ", device.name(),
       " needs. Add one: ", command);
}

}  // namespace

std::vector<Build> choose_builds(const Description& description, const Device& device,
                                 const std::string& path) {
  std::vector<Build> wanted;
  for (const Build& build : description.builds) {
    if (build.device == device.backing_kind() && build.precision == "float32") {
      wanted.push_back(build);
    }
  }
  std::vector<Build> chosen;
  for (const Build& build : wanted) {
    if (fits(build, device)) chosen.push_back(build);
  }
  std::stable_sort(chosen.begin(), chosen.end(), [](const Build& left, const Build& right) {
    if (left.for_any() != right.for_any()) return right.for_any();
    const int above = order(left.capability) - order(right.capability);
    return above != 0 ? above > 0 : left.breadth() < right.breadth();
  });
  auto any = std::find_if(chosen.begin(), chosen.end(),
                          [](const Build& build) { return build.for_any(); });
  if (any == chosen.end()) fail_without(wanted, device, path);
  // A build for any batch answers for all that come after it.
  chosen.erase(any + 1, chosen.end());
  return chosen;
}

}  // namespace torchspan
