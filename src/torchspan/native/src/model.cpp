// SPDX-License-Identifier: MIT
// Open a model file and run calls on its devices.
#include "model.hpp"

#include <map>

#include "cache.hpp"
#include "capability.hpp"
#include "json.hpp"
#include "status.hpp"

namespace torchspan {

Model::Model(const std::string& path, const std::string& devices) {
  const std::vector<Device> found = parse_devices(devices);
  if (path.ends_with(".py")) {
    fail(TSPAN_ERROR_MODEL_FILE, path,
         " is a Python script, which this library does not run. Make a model file of it with "
         "'torchspan export'.");
  }
  first_ = found.front();
  places_ = Places(found);
  Archive archive(path);
  description_ = describe(archive);
  if (description_.kind == Description::Kind::compiled) {
    open_compiled(archive, found);
  } else {
    open_script(path, found);
  }
  checker_ = Checker(description_);
}

void Model::open_compiled(Archive& archive, const std::vector<Device>& devices) {
  const int calls = std::max(static_cast<int>(devices.size()), usable_cores());
  const int cores = share_cores(static_cast<int>(devices.size()));
  const std::int64_t row_bytes = description_.rows_independent ? description_.row_bytes : 0;
  // A build only reads its weights, so virtual CPUs share one.
  std::map<std::pair<std::string, std::string>, std::shared_ptr<Runner>> opened;
  for (const Device& device : devices) {
    std::vector<Choice> choices;
    for (Build& build : choose_builds(description_, device, archive.path().string())) {
      auto& runner = opened[{build.digest, device.backing}];
      if (!runner) runner = open_build(unpack_build(archive, build), device, calls);
      choices.push_back({std::move(build), runner});
    }
    replicas_.push_back(std::make_unique<Replica>(device, std::move(choices), cores, row_bytes));
  }
}

void Model::open_script(const std::string& path, const std::vector<Device>& devices) {
  const int cores = share_cores(static_cast<int>(devices.size()));
  std::map<std::string, Script> opened;
  for (const Device& device : devices) {
    Script& script = opened[device.backing];
    if (!script.runner) script = open_torchscript(path, device);
    std::vector<Choice> choices = {{Build(), script.runner}};
    replicas_.push_back(std::make_unique<Replica>(device, std::move(choices), cores, 0));
  }
  std::string inputs = "null";
  if (const auto& names = opened.begin()->second.inputs) {
    description_.inputs.emplace();
    inputs = "[";
    for (const std::string& name : *names) {
      description_.inputs->push_back({name, "", {}, true});
      inputs += say(inputs.size() > 1 ? ", " : "", "{\"name\": ", quote(name),
                    ", \"dtype\": null, \"shape\": null, \"batched\": true}");
    }
    inputs += "]";
  }
  description_.json = say("{\"format\": null, \"kind\": \"jit\", \"inputs\": ", inputs,
                          ", \"outputs\": null, \"builds\": []}");
}

int Model::input_count() const {
  return description_.inputs ? static_cast<int>(description_.inputs->size()) : -1;
}

int Model::output_count() const {
  return description_.outputs ? static_cast<int>(description_.outputs->size()) : -1;
}

// No rows and nothing besides them: some builds cannot run an empty batch.
bool Model::nothing_to_do(const Call& call) const {
  if (!call.rows || call.rows->count() > 0 || !description_.rows_independent) return false;
  for (std::size_t index = 0; index < call.outputs.size(); ++index) {
    if (!checker_.output_batched(index)) return false;
  }
  return true;
}

void Model::run_on(void* stream, std::span<const tspan_array> inputs,
                   std::span<const tspan_array> outputs) {
  if (stream != nullptr && first_.kind == "cpu") {
    fail(TSPAN_ERROR_ARGUMENT, "a stream was given to a model on ", places_.names(),
         ", which has none. Open the model on the stream's device, or give NULL.");
  }
  std::optional<Queue> queue;
  // A pretended device has done its work when a call returns, as if it were on any stream.
  if (!first_.on_cpu()) queue = Queue{stream, place_of(first_)};
  run_in(queue, inputs, outputs);
}

void Model::run_in(std::optional<Queue> queue, std::span<const tspan_array> inputs,
                   std::span<const tspan_array> outputs) {
  if (replicas_.size() > 1) {
    Outcome outcome = start(queue, inputs, outputs)->wait();
    if (outcome.code != TSPAN_OK) throw Error(outcome.code, outcome.message);
    return;
  }
  thread_local Call call;
  checker_.check(inputs, outputs, places_, call, false);
  call.queue = queue;
  if (!nothing_to_do(call)) replicas_.front()->run(checker_, call, call.rows);
}

std::shared_ptr<Request> Model::start(std::optional<Queue> queue,
                                      std::span<const tspan_array> inputs,
                                      std::span<const tspan_array> outputs) {
  auto request = std::make_shared<Request>();
  Call& call = request->call;
  checker_.check(inputs, outputs, places_, call, replicas_.size() > 1);
  call.queue = queue;
  if (nothing_to_do(call)) return request;
  std::int64_t parts = 1;
  if (call.rows && description_.rows_independent) {
    parts = std::clamp<std::int64_t>(call.rows->count(), 1, std::ssize(replicas_));
  }
  const std::size_t first = parts == 1 ? turn_++ % replicas_.size() : 0;
  request->begin(static_cast<int>(parts));
  for (std::int64_t part = 0; part < parts; ++part) {
    Replica& replica = *replicas_[first + static_cast<std::size_t>(part)];
    std::optional<Rows> rows = call.rows;
    if (parts > 1) rows = split_rows(*rows, parts, part);
    auto work = [this, request, &replica, rows] {
      Outcome outcome;
      try {
        replica.run(checker_, request->call, rows);
      } catch (...) {
        outcome = current_outcome();
      }
      request->end(std::move(outcome));
    };
    try {
      replica.worker().put(work);
    } catch (...) {
      request->end(current_outcome());
    }
  }
  return request;
}

}  // namespace torchspan
