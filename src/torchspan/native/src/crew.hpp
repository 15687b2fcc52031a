// SPDX-License-Identifier: MIT
// Threads of one core each that share a heap of pieces.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "worker.hpp"

namespace torchspan {

class Crew {
 public:
  explicit Crew(int size);

  int size() const { return static_cast<int>(workers_.size()); }

  // Do `work` on each piece from 0 to `pieces`, several at a time. What it throws first is thrown
  // here; pieces not yet begun are then left. Several threads may share pieces at the same time.
  void share(std::int64_t pieces, const std::function<void(std::int64_t)>& work);

 private:
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace torchspan
