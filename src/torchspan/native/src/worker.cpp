// SPDX-License-Identifier: MIT
// A worker sets a thread count, its own. torch takes the first such call of any thread as the
// default of threads that have not computed yet, so the thread that starts a worker sets it back.
#include "worker.hpp"

#include <ATen/Parallel.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "devices.hpp"
#include "placement.hpp"
#include "status.hpp"

namespace torchspan {

// The workers of this process. They end before torch does, as this is made after it: a thread
// inside torch when the process ends would crash it. Each holds on to it, since models that are
// still open when the process ends may go later.
struct Running {
  std::mutex mutex;
  std::set<Worker*> workers;

  static std::shared_ptr<Running> here() {
    static const struct Ending {
      std::shared_ptr<Running> running = std::make_shared<Running>();
      ~Ending() {
        std::lock_guard lock(running->mutex);
        for (Worker* each : running->workers) each->stop();
      }
    } ending;
    return ending.running;
  }
};

Worker::Worker(int cores) : cores_(cores), process_(::getpid()), running_(Running::here()) {
  static std::mutex starting;
  std::lock_guard one(starting);
  const int before = at::get_num_threads();
  thread_ = std::thread(&Worker::work, this);
  {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [this] { return begun_; });
  }
  at::set_num_threads(before);
  std::lock_guard lock(running_->mutex);
  running_->workers.insert(this);
}

Worker::~Worker() {
  {
    std::lock_guard lock(running_->mutex);
    running_->workers.erase(this);
  }
  stop();
}

void Worker::put(std::function<void()> task) {
  if (process_ != ::getpid()) {
    fail(TSPAN_ERROR_MODEL,
         "the model was opened before this process was forked, and threads do not survive a fork. "
         "Open the model in the process that calls it.");
  }
  {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  ready_.notify_all();
}

void Worker::stop() {
  if (process_ != ::getpid()) {
    // A forked child has the object but not the thread, which only its parent can join.
    if (thread_.joinable()) thread_.detach();
    return;
  }
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  ready_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Worker::work() {
  // A thread takes the default on its first look at the count, and would take it over ours.
  at::get_num_threads();
  at::set_num_threads(cores_);
  std::unique_lock lock(mutex_);
  begun_ = true;
  ready_.notify_all();
  while (true) {
    ready_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
  }
}

int share_cores(int parts) {
  const char* said = std::getenv("OMP_NUM_THREADS");
  if (said != nullptr && *said != '\0') return std::max(1, at::get_num_threads() / parts);
  int cores = usable_cores();
  auto local_size = find_placement().local_size;
  // Where the launcher bound this process to no cores, all of the machine's are its and others'.
  if (cores == static_cast<int>(std::thread::hardware_concurrency()) &&
      local_size.value_or(0) > 0) {
    cores = std::max(1, cores / *local_size);
  }
  return std::max(1, cores / parts);
}

int count_threads() { return at::get_num_threads(); }

}  // namespace torchspan
