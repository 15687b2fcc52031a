// SPDX-License-Identifier: MIT
// Arrays on the device are used where they are, those on other devices come over, and rows in host
// memory come through page-locked buffers: in chunks where there are many.
#include "feeder.hpp"

#include <ATen/ops/empty_like.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <algorithm>

#include "tensors.hpp"

namespace torchspan {
namespace {

// What kernels for accelerators are compiled for; a slice of the caller's may lie otherwise.
constexpr std::uintptr_t alignment = 16;

constexpr std::int64_t little_bytes = 64 << 10;

bool is_aligned(const at::Tensor& tensor) {
  return reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr()) % alignment == 0;
}

}  // namespace

Feeder::Feeder(const at::Device& device, Place home, int cores, std::int64_t row_bytes)
    : device_(device),
      home_(home),
      copiers_(std::max(1, cores / 2)),
      row_bytes_(row_bytes),
      lane_(device) {
  start_accelerator(device);
  // What loading the model has launched was for another stream.
  if (lane_.flows()) {
    c10::impl::getDeviceGuardImpl(device.type())->synchronizeDevice(device.index());
  }
}

void Feeder::run(const Compute& compute, const Checker& checker, const Call& call,
                 std::optional<Rows> rows) {
  c10::InferenceMode inference;
  const Errand errand = survey(call);
  std::vector<Slab> inputs, outputs;
  for (std::size_t index = 0; index < call.inputs.size(); ++index) {
    const bool batched = rows && checker.input_batched(index);
    const View& whole = call.inputs[index];
    inputs.push_back({batched ? whole.slice(*rows) : whole, batched});
  }
  for (std::size_t index = 0; index < call.outputs.size(); ++index) {
    const bool batched = rows && checker.output_batched(index);
    const View& whole = call.outputs[index];
    outputs.push_back({batched ? whole.slice(*rows) : whole, batched});
  }
  // Only arrays in host memory share the buffers.
  std::unique_lock lock(mutex_, std::defer_lock);
  if (errand.hosted) lock.lock();
  if (!rows || !streams(inputs, outputs, rows->count())) {
    return run_whole(compute, inputs, outputs, rows, errand);
  }
  if (!staging_) staging_.emplace(device_, copiers_);
  lock.unlock();
  // The caller's stream may still be writing to that memory.
  if (call.queue) caller_lane(*call.queue).record().synchronize();
  staging_->run(compute, inputs, outputs, rows->count());
}

Feeder::Errand Feeder::survey(const Call& call) const {
  Errand errand{&call, {}};
  for (const auto* views : {&call.inputs, &call.outputs}) {
    for (const View& each : *views) {
      errand.here = errand.here || each.place == home_;
      errand.hosted = errand.hosted || (each.place != home_ && each.place.on_host());
      if (each.place == home_ || each.place.on_host()) continue;
      const at::Device other = device_at(each.place);
      if (std::find(errand.others.begin(), errand.others.end(), other) == errand.others.end()) {
        errand.others.push_back(other);
      }
    }
  }
  return errand;
}

// Whether these rows go through staging: from host to host, and enough of them.
bool Feeder::streams(std::span<const Slab> inputs, std::span<const Slab> outputs,
                     std::int64_t rows) const {
  if (row_bytes_ == 0 || rows == 0 || !lane_.flows()) return false;
  std::int64_t most = 0;
  for (const auto& slabs : {inputs, outputs}) {
    for (const Slab& each : slabs) {
      if (!each.view.place.on_host()) return false;
      if (each.batched) most = std::max(most, each.view.bytes());
    }
  }
  return most > staged_bytes / 8;
}

void Feeder::run_whole(const Compute& compute, std::span<const Slab> inputs,
                       std::span<const Slab> outputs, std::optional<Rows> rows,
                       const Errand& errand) {
  Buffer none;
  if (errand.hosted) {
    in_.resize(std::max(in_.size(), inputs.size()));
    out_.resize(std::max(out_.size(), outputs.size()));
  }
  std::vector<Copy> copies;
  begin(errand);
  try {
    auto use = lane_.use();
    std::vector<at::Tensor> given;
    for (std::size_t index = 0; index < inputs.size(); ++index) {
      given.push_back(bring(inputs[index].view, errand.hosted ? in_[index] : none));
    }
    const std::vector<at::Tensor> results = compute(std::move(given), rows);
    std::vector<View> targets;
    for (const Slab& each : outputs) targets.push_back(each.view);
    const Landing landing(targets);
    landing.expect(results.size());
    for (std::size_t index = 0; index < results.size(); ++index) {
      landing.check(index, view_tensor(results[index]));
      send(results[index], targets[index], errand.hosted ? out_[index] : none, copies);
    }
  } catch (...) {
    // The buffers and the caller's memory may still be read.
    try {
      lane_.record().synchronize();
    } catch (const std::exception&) {
      // The failure that is reported came first.
    }
    throw;
  }
  end(errand);
  for (const Copy& each : copies) copy_rows(each.to, each.from, copiers_);
}

// Have this device's work begin after the caller's.
void Feeder::begin(const Errand& errand) const {
  if (errand.call->queue) {
    const Mark before = caller_lane(*errand.call->queue).record();
    lane_.wait(before);
    for (const at::Device& each : errand.others) Lane::current(each).wait(before);
    if (errand.hosted) before.synchronize();
    return;
  }
  if (errand.here) lane_.wait(Lane::standard(device_).record());
  for (const at::Device& each : errand.others) {
    const Mark before = Lane::standard(each).record();
    lane_.wait(before);
    Lane::current(each).wait(before);
  }
}

// Have the caller's work go on after this device's, or wait for it.
void Feeder::end(const Errand& errand) const {
  std::vector<Mark> marks;
  marks.push_back(lane_.record());
  for (const at::Device& each : errand.others) marks.push_back(Lane::current(each).record());
  for (const Mark& each : marks) {
    if (errand.call->queue) caller_lane(*errand.call->queue).wait(each);
    if (!errand.call->queue || errand.hosted) each.synchronize();
  }
}

// Whether memory of the host's needs no buffer. Asking costs more than copying a little.
bool Feeder::goes_directly(const View& view) const {
  return view.bytes() > little_bytes && is_locked(device_, view);
}

// An input on this device: its own memory where that will do.
at::Tensor Feeder::bring(const View& view, Buffer& buffer) const {
  if (view.place == home_ || !view.place.on_host()) {
    const at::Tensor there = make_tensor(view, device_at(view.place));
    const at::Tensor here = there.to(device_).contiguous();
    return is_aligned(here) ? here : here.clone();
  }
  View source = view;
  const bool direct = goes_directly(view);
  // Memory is locked for what is small or comes often, not for a large array as a whole.
  if (!direct && view.bytes() > staged_bytes) return make_tensor(view).to(device_).contiguous();
  if (!direct) {
    source = buffer.like(view, device_);
    copy_rows(source, view, copiers_);
  }
  const at::Tensor from = make_tensor(source);
  at::Tensor here =
      at::empty_like(from, from.options().device(device_), at::MemoryFormat::Contiguous);
  here.copy_(from, true);
  return here;
}

// Launch a result's way to where it belongs; `copies` are to be made once it is there.
void Feeder::send(const at::Tensor& result, const View& view, Buffer& buffer,
                  std::vector<Copy>& copies) const {
  const at::Tensor plain = resolve(result);
  if (view.place == home_ || !view.place.on_host()) {
    make_tensor(view, device_at(view.place)).copy_(plain, true);
  } else if (goes_directly(view)) {
    make_tensor(view).copy_(plain, true);
  } else if (view.bytes() > staged_bytes) {
    make_tensor(view).copy_(plain);
  } else {
    const View here = buffer.like(view, device_);
    make_tensor(here).copy_(plain, true);
    copies.push_back({view, here});
  }
}

at::Device Feeder::device_at(Place place) const {
  if (place == home_ || device_.is_cpu()) return device_;
  return {static_cast<at::DeviceType>(place.type), place.index};
}

Lane Feeder::caller_lane(const Queue& queue) const {
  return Lane::borrowed(device_at(queue.place), queue.stream);
}

}  // namespace torchspan
