// SPDX-License-Identifier: MIT
// One call's parts on their way; the last one to end answers for all.
#pragma once

#include <condition_variable>
#include <mutex>

#include "arguments.hpp"
#include "status.hpp"

namespace torchspan {

class Request {
 public:
  // The arrays of the call, whose descriptions are its own copies.
  Call call;

  // Say how many parts there will be, before the first is started.
  void begin(int parts);
  // One part has ended.
  void end(Outcome&& outcome);
  bool done() const;
  // Wait for all parts, and give how the call ended: its first failure, if there is one.
  Outcome wait();

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int left_ = 0;
  Outcome outcome_;
};

}  // namespace torchspan
