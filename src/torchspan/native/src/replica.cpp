// SPDX-License-Identifier: MIT
// Run rows of a call on one device.
#include "replica.hpp"

#include <new>

#include "feeder.hpp"
#include "places.hpp"
#include "status.hpp"
#include "tensors.hpp"

namespace torchspan {
namespace {

// What one core's part of a chunk may hold at one time; Python measured it (_replica.py).
constexpr std::int64_t cache_bytes = 2 << 20;
constexpr std::int64_t least_rows = 64;

// What a thread needs to run a part, kept so that calls allocate nothing.
struct Scratch {
  std::vector<View> inputs, outputs;
  std::vector<std::vector<char>> buffers;
};

// Whether the call's own views serve as they are: all of its rows, in C order.
bool is_plain(const Call& call, std::optional<Rows> rows) {
  if (rows && rows->count() != call.rows->count()) return false;
  for (const View& each : call.inputs) {
    if (!each.contiguous()) return false;
  }
  return true;
}

}  // namespace

Replica::Replica(Device device, std::vector<Choice> choices, int cores, std::int64_t row_bytes)
    : device_(std::move(device)),
      choices_(std::move(choices)),
      cores_(cores),
      row_bytes_(row_bytes) {
  if (!device_.on_cpu()) {
    feeder_ = std::make_unique<Feeder>(at::Device(device_.backing), place_of(device_), cores_,
                                       row_bytes_);
  }
}

Replica::~Replica() = default;

void Replica::run(const Checker& checker, const Call& call, std::optional<Rows> rows) {
  try {
    if (feeder_) return feed(checker, call, rows);
    const bool chunked = rows && row_bytes_ > 0 && device_.on_cpu() && rows->count() > least_rows;
    chunked ? run_chunks(checker, call, *rows) : run_part(checker, call, rows);
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    fail_run("out of memory", rows);
  } catch (const std::exception& error) {
    fail_run(first_line(error.what()), rows);
  }
}

void Replica::feed(const Checker& checker, const Call& call, std::optional<Rows> rows) {
  const Compute compute = [this](std::vector<at::Tensor> inputs, std::optional<Rows> part) {
    // All that is opened on accelerators is of this kind.
    return static_cast<TensorRunner&>(choose(part)).compute(std::move(inputs));
  };
  feeder_->run(compute, checker, call, rows);
}

void Replica::run_part(const Checker& checker, const Call& call, std::optional<Rows> rows) {
  if (is_plain(call, rows)) return choose(rows).run(call.inputs, Landing(call.outputs));
  thread_local Scratch scratch;
  scratch.inputs.clear();
  scratch.outputs.clear();
  if (scratch.buffers.size() < call.inputs.size()) scratch.buffers.resize(call.inputs.size());
  for (std::size_t index = 0; index < call.inputs.size(); ++index) {
    const View& whole = call.inputs[index];
    const bool sliced = rows && checker.input_batched(index);
    scratch.inputs.push_back(
        make_contiguous(sliced ? whole.slice(*rows) : whole, scratch.buffers[index]));
  }
  for (std::size_t index = 0; index < call.outputs.size(); ++index) {
    const View& whole = call.outputs[index];
    const bool sliced = rows && checker.output_batched(index);
    scratch.outputs.push_back(sliced ? whole.slice(*rows) : whole);
  }
  choose(rows).run(scratch.inputs, Landing(scratch.outputs));
}

void Replica::run_chunks(const Checker& checker, const Call& call, Rows rows) {
  const int threads = count_threads();
  const std::int64_t most = threads * std::max(least_rows, cache_bytes / row_bytes_);
  if (rows.count() <= most) return run_part(checker, call, rows);
  // As many chunks for one thread as for any other.
  const std::int64_t chunks = count_chunks(rows, most) * threads;
  auto run = [&](std::int64_t index) { run_part(checker, call, split_rows(rows, chunks, index)); };
  if (threads > 1) return hire(threads).share(chunks, run);
  for (std::int64_t index = 0; index < chunks; ++index) run(index);
}

Crew& Replica::hire(int threads) {
  std::lock_guard lock(mutex_);
  auto& crew = crews_[threads];
  if (!crew) crew = std::make_unique<Crew>(threads);
  return *crew;
}

Runner& Replica::choose(std::optional<Rows> rows) {
  for (const Choice& each : choices_) {
    if (rows && each.build.takes(rows->count())) return *each.runner;
  }
  return *choices_.back().runner;
}

Worker& Replica::worker() {
  std::lock_guard lock(mutex_);
  if (!worker_) worker_ = std::make_unique<Worker>(cores_);
  return *worker_;
}

void Replica::fail_run(const std::string& what, std::optional<Rows> rows) const {
  if (lacks_memory(what)) {
    fail(
        TSPAN_ERROR_MEMORY, device_.name(), " has too little memory for ",
        rows ? say(rows->count(), rows->count() == 1 ? " row" : " rows") : std::string("this call"),
        ": ", what, ". Run smaller batches, or use more devices.");
  }
  fail(TSPAN_ERROR_MODEL, "the model failed on ", device_.name(), ": ", what);
}

}  // namespace torchspan
