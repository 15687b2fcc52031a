// SPDX-License-Identifier: MIT
// The C interface to models and requests.
#include <deque>
#include <memory>
#include <mutex>

#include "model.hpp"
#include "status.hpp"

using torchspan::guarded;
using torchspan::require;

// Handles are kept when their models are closed, so that a later use is an error and no crash.
struct tspan_model {
  std::unique_ptr<torchspan::Model> inside;
};

struct tspan_request {
  std::shared_ptr<torchspan::Request> inside;
};

namespace {

tspan_model* keep_handle(std::unique_ptr<torchspan::Model> model) {
  static std::mutex mutex;
  // Never destroyed: a thread may still be in a model, or in Python, when the process ends.
  static auto& handles = *new std::deque<tspan_model>;
  std::lock_guard lock(mutex);
  return &handles.emplace_back(tspan_model{std::move(model)});
}

torchspan::Model& inside(const tspan_model* model) {
  require(model, "model");
  if (model->inside == nullptr) {
    torchspan::fail(TSPAN_ERROR_MODEL, "the model is closed. Open it again with tspan_model_load.");
  }
  return *model->inside;
}

std::span<const tspan_array> arrays(const tspan_array* first, std::size_t count, const char* what) {
  if (count > 0) require(first, what);
  return {first, count};
}

}  // namespace

tspan_status tspan_model_load(const char* path, const char* devices, tspan_model** model) {
  return guarded([&] {
    require(path, "path");
    require(model, "model");
    *model = nullptr;
    *model =
        keep_handle(std::make_unique<torchspan::Model>(path, devices == nullptr ? "all" : devices));
  });
}

tspan_status tspan_model_close(tspan_model* model) {
  return guarded([&] {
    if (model != nullptr) model->inside.reset();
  });
}

tspan_status tspan_model_describe(const tspan_model* model, const char** json) {
  return guarded([&] {
    require(json, "json");
    *json = inside(model).json().c_str();
  });
}

tspan_status tspan_model_counts(const tspan_model* model, int* inputs, int* outputs) {
  return guarded([&] {
    require(inputs, "inputs");
    require(outputs, "outputs");
    *inputs = inside(model).input_count();
    *outputs = inside(model).output_count();
  });
}

tspan_status tspan_model_run(tspan_model* model, const tspan_array* inputs, size_t input_count,
                             const tspan_array* outputs, size_t output_count) {
  return guarded([&] {
    inside(model).run(arrays(inputs, input_count, "inputs"),
                      arrays(outputs, output_count, "outputs"));
  });
}

tspan_status tspan_model_run_on(tspan_model* model, void* stream, const tspan_array* inputs,
                                size_t input_count, const tspan_array* outputs,
                                size_t output_count) {
  return guarded([&] {
    inside(model).run_on(stream, arrays(inputs, input_count, "inputs"),
                         arrays(outputs, output_count, "outputs"));
  });
}

tspan_status tspan_model_submit(tspan_model* model, const tspan_array* inputs, size_t input_count,
                                const tspan_array* outputs, size_t output_count,
                                tspan_request** request) {
  return guarded([&] {
    require(request, "request");
    *request = nullptr;
    auto handle = std::make_unique<tspan_request>();
    handle->inside = inside(model).submit(arrays(inputs, input_count, "inputs"),
                                          arrays(outputs, output_count, "outputs"));
    *request = handle.release();
  });
}

tspan_status tspan_model_train(tspan_model* model, const tspan_array* inputs, size_t input_count,
                               const tspan_array* targets, size_t target_count, double* loss,
                               int* completed) {
  return guarded([&] {
    const auto step = inside(model).train(arrays(inputs, input_count, "inputs"),
                                          arrays(targets, target_count, "targets"));
    if (loss != nullptr) *loss = step.loss;
    if (completed != nullptr) *completed = step.completed ? 1 : 0;
  });
}

tspan_status tspan_model_save(tspan_model* model, const char* path) {
  return guarded([&] {
    require(path, "path");
    inside(model).save(path);
  });
}

tspan_status tspan_request_test(tspan_request* request, int* done) {
  return guarded([&] {
    require(request, "request");
    require(done, "done");
    *done = request->inside->done() ? 1 : 0;
  });
}

tspan_status tspan_request_wait(tspan_request* request) {
  return guarded([&] {
    require(request, "request");
    std::unique_ptr<tspan_request> handle(request);
    torchspan::Outcome outcome = handle->inside->wait();
    if (outcome.code != TSPAN_OK) throw torchspan::Error(outcome.code, outcome.message);
  });
}
