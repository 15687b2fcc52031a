// SPDX-License-Identifier: MIT
// A model on one device: the build for the batch, chunks that fit the cache, copies where needed.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "arguments.hpp"
#include "crew.hpp"
#include "runner.hpp"
#include "worker.hpp"

namespace torchspan {

// An opened build, and the batches that it is for.
struct Choice {
  Build build;
  std::shared_ptr<Runner> runner;
};

class Feeder;

class Replica {
 public:
  // `choices` end with one for any batch; `row_bytes` is 0 where rows must stay together.
  Replica(Device device, std::vector<Choice> choices, int cores, std::int64_t row_bytes);
  ~Replica();

  // Run some rows of a call in this thread; `rows` is missing where there is no batch.
  void run(const Checker& checker, const Call& call, std::optional<Rows> rows);

  // Its worker, started when it is first needed.
  Worker& worker();

 private:
  void feed(const Checker& checker, const Call& call, std::optional<Rows> rows);
  void run_part(const Checker& checker, const Call& call, std::optional<Rows> rows);
  void run_chunks(const Checker& checker, const Call& call, Rows rows);
  Runner& choose(std::optional<Rows> rows);
  Crew& hire(int threads);
  [[noreturn]] void fail_run(const std::string& what, std::optional<Rows> rows) const;

  Device device_;
  std::vector<Choice> choices_;
  int cores_;
  std::int64_t row_bytes_;
  std::unique_ptr<Feeder> feeder_;  // on an accelerator
  std::mutex mutex_;
  std::unique_ptr<Worker> worker_;
  std::map<int, std::unique_ptr<Crew>> crews_;
};

}  // namespace torchspan
