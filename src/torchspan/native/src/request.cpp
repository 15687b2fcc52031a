// SPDX-License-Identifier: MIT
// Wait for the parts of a call.
#include "request.hpp"

#include <utility>

namespace torchspan {

void Request::begin(int parts) {
  std::lock_guard lock(mutex_);
  left_ = parts;
}

void Request::end(Outcome&& outcome) {
  {
    std::lock_guard lock(mutex_);
    if (outcome_.code == TSPAN_OK) outcome_ = std::move(outcome);
    --left_;
  }
  changed_.notify_all();
}

bool Request::done() const {
  std::lock_guard lock(mutex_);
  return left_ == 0;
}

Outcome Request::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return left_ == 0; });
  return outcome_;
}

}  // namespace torchspan
