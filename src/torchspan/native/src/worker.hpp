// SPDX-License-Identifier: MIT
// One worker a device: a thread that runs that device's work in order, with its share of the cores.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace torchspan {

struct Running;

class Worker {
 public:
  // Start a thread whose arithmetic uses `cores` threads.
  explicit Worker(int cores);
  // Wait for the work already put, and end the thread.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Have `task` run after those already put; it must not throw.
  void put(std::function<void()> task);

 private:
  friend struct Running;
  void work();
  void stop();

  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<std::function<void()>> tasks_;
  bool begun_ = false, stopping_ = false;
  int cores_;
  int process_;
  std::shared_ptr<Running> running_;
  std::thread thread_;
};

// How many cores each of `parts` workers of this process may use, at least one.
int share_cores(int parts);

// How many threads this thread's arithmetic uses.
int count_threads();

}  // namespace torchspan
