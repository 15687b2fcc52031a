// SPDX-License-Identifier: MIT
// OpenMP's threads meet at a barrier after every operation, so one that is held up holds up all;
// beside any other load that took ten times as long. Here each thread takes the next piece when it
// is done with its own, and they meet once.
#include "crew.hpp"

#include <atomic>
#include <exception>
#include <latch>

namespace torchspan {

Crew::Crew(int size) {
  for (int index = 0; index < size; ++index) workers_.push_back(std::make_unique<Worker>(1));
}

void Crew::share(std::int64_t pieces, const std::function<void(std::int64_t)>& work) {
  std::atomic<std::int64_t> next = 0;
  std::atomic_flag failed;
  std::exception_ptr failure;
  std::latch ended(size());
  auto take = [&] {
    try {
      for (std::int64_t piece; !failed.test() && (piece = next++) < pieces;) work(piece);
    } catch (...) {
      if (!failed.test_and_set()) failure = std::current_exception();
    }
    ended.count_down();
  };
  for (auto& worker : workers_) {
    try {
      worker->put(take);
    } catch (...) {
      // Those that were started use this call's memory until they are done.
      if (!failed.test_and_set()) failure = std::current_exception();
      ended.count_down();
    }
  }
  ended.wait();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace torchspan
