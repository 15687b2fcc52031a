// SPDX-License-Identifier: MIT
// Open a model file and run calls on its devices.
#include "model.hpp"

#include <deque>
#include <map>

#include "cache.hpp"
#include "capability.hpp"
#include "json.hpp"
#include "status.hpp"

namespace torchspan {

Model::Model(const std::string& path, const std::string& devices) {
  const std::vector<Device> found = parse_devices(devices);
  first_ = found.front();
  places_ = Places(found);
  if (path.ends_with(".py")) {
    open_python(path, found);
  } else {
    Archive archive(path);
    description_ = describe(archive);
    if (description_.kind == Description::Kind::compiled) {
      open_compiled(archive, found);
    } else {
      open_torchscript(path, found);
    }
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

void Model::open_torchscript(const std::string& path, const std::vector<Device>& devices) {
  const int cores = share_cores(static_cast<int>(devices.size()));
  std::map<std::string, Script> opened;
  for (const Device& device : devices) {
    Script& script = opened[device.backing];
    if (!script.runner) script = torchspan::open_torchscript(path, device);
    std::vector<Choice> choices = {{Build(), script.runner}};
    replicas_.push_back(std::make_unique<Replica>(device, std::move(choices), cores, 0));
  }
  describe_inputs("jit", opened.begin()->second.inputs);
}

void Model::open_python(const std::string& path, const std::vector<Device>& devices) {
  description_.kind = Description::Kind::script;
  const int cores = share_cores(static_cast<int>(devices.size()));
  for (const Device& device : devices) {
    auto runner = std::make_shared<PythonRunner>(path, device);
    if (!script_) script_ = runner;
    std::vector<Choice> choices = {{Build(), runner}};
    replicas_.push_back(std::make_unique<Replica>(device, std::move(choices), cores, 0));
  }
  describe_inputs("script", script_->inputs());
}

void Model::describe_inputs(const char* kind,
                            const std::optional<std::vector<std::string>>& names) {
  std::string inputs;
  if (names) description_.inputs.emplace();
  for (const std::string& name : names.value_or(std::vector<std::string>())) {
    description_.inputs->push_back({name, "", {}, true});
    inputs += say(inputs.empty() ? "" : ", ", "{\"name\": ", quote(name),
                  ", \"dtype\": null, \"shape\": null, \"batched\": true}");
  }
  description_.json = say("{\"format\": null, \"kind\": ", quote(kind),
                          ", \"inputs\": ", names ? say("[", inputs, "]") : std::string("null"),
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

PythonScript::Step Model::train(std::span<const tspan_array> inputs,
                                std::span<const tspan_array> targets) {
  PythonRunner& script = only_script("train");
  // Copies of arrays that are not in C order; a deque leaves those made before where they are.
  std::deque<std::vector<char>> copies;
  auto see = [&](const char* role, std::span<const tspan_array> arrays) {
    std::vector<View> views(arrays.size());
    for (std::size_t index = 0; index < arrays.size(); ++index) {
      const Label label{role, index};
      view_array(arrays[index], label, views[index]);
      views[index].place = places_.find(arrays[index], label);
      if (!views[index].place.on_host()) continue;
      views[index] = make_contiguous(views[index], copies.emplace_back());
    }
    return views;
  };
  const std::vector<View> given = see("input", inputs);
  return script.train(given, see("target", targets));
}

void Model::save(const std::string& path) { only_script("save").save(path); }

PythonRunner& Model::only_script(const char* verb) const {
  if (!script_) {
    fail(TSPAN_ERROR_ARGUMENT, "only a Python script has a function to ", verb,
         " by; this model is a file that runs as it was saved. Open a .py file with a function ",
         verb, " instead.");
  }
  if (replicas_.size() > 1) {
    fail(TSPAN_ERROR_ARGUMENT, "the script is open on ", replicas_.size(),
         " devices, with weights of its own on each, so it cannot ", verb,
         ". Open it on one device.");
  }
  return *script_;
}

}  // namespace torchspan
