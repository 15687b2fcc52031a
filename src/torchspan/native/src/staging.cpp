// SPDX-License-Identifier: MIT
// Three chunks are on their way at a time; the buffers of each are used again once it has landed.
#include "staging.hpp"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "tensors.hpp"

namespace torchspan {
namespace {

// Less than this is not worth another thread.
constexpr std::int64_t copied_bytes = 256 << 10;

std::int64_t row_bytes(const View& view) {
  return view.bytes() / std::max<std::int64_t>(1, view.sizes[0]);
}

std::int64_t count_chunk_rows(std::span<const Slab> inputs, std::span<const Slab> outputs,
                              std::int64_t chunk_bytes) {
  std::int64_t most = 1;
  for (const auto& slabs : {inputs, outputs}) {
    for (const Slab& each : slabs) {
      if (each.batched) most = std::max(most, row_bytes(each.view));
    }
  }
  return std::max<std::int64_t>(1, chunk_bytes / most);
}

View cut(const Slab& slab, Rows rows) { return slab.batched ? slab.view.slice(rows) : slab.view; }

}  // namespace

View Buffer::like(const View& view, const at::Device& device) {
  View here = view;
  here.set_contiguous();
  here.place = {};
  if (here.bytes() > bytes_) {
    memory_ = {};
    memory_ = allocate_locked(device, static_cast<std::size_t>(here.bytes()));
    bytes_ = here.bytes();
  }
  here.data = static_cast<char*>(memory_.get());
  return here;
}

void copy_rows(const View& to, const View& from, int threads) {
  if (to.ndim == 0 || to.bytes() <= copied_bytes) return copy_elements(to, from);
  const std::int64_t rows = to.sizes[0], least = copied_bytes / row_bytes(to);
  const std::int64_t grain = std::max({std::int64_t{1}, least, (rows + threads - 1) / threads});
  at::parallel_for(0, rows, grain, [&](std::int64_t start, std::int64_t stop) {
    copy_elements(to.slice({start, stop}), from.slice({start, stop}));
  });
}

Staging::Staging(const at::Device& device, int cores, std::int64_t chunk_bytes)
    : device_(device),
      cores_(cores),
      chunk_bytes_(chunk_bytes),
      into_(device),
      compute_(device),
      out_(device),
      emptier_(cores) {}

void Staging::run(const Compute& compute, std::span<const Slab> inputs,
                  std::span<const Slab> outputs, std::int64_t rows) {
  std::lock_guard turn(turn_);
  c10::InferenceMode inference;
  failure_ = nullptr;
  try {
    run_chunks(compute, inputs, outputs, rows);
  } catch (...) {
    std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
  }
  // The buffers and the caller's memory are in use until every chunk has landed.
  for (Slot& slot : slots_) wait_free(slot);
  if (!failure_) return;
  settle();
  std::rethrow_exception(failure_);
}

void Staging::run_chunks(const Compute& compute, std::span<const Slab> inputs,
                         std::span<const Slab> outputs, std::int64_t rows) {
  std::vector<at::Tensor> shared(inputs.size());
  {
    auto use = into_.use();
    for (std::size_t index = 0; index < inputs.size(); ++index) {
      if (!inputs[index].batched) {
        shared[index] = make_tensor(inputs[index].view).to(device_).contiguous();
      }
    }
  }
  const Rows all{0, rows};
  const std::int64_t most = count_chunk_rows(inputs, outputs, chunk_bytes_);
  const std::int64_t chunks = count_chunks(all, most);
  for (std::int64_t index = 0; index < chunks; ++index) {
    Slot& slot = slots_[static_cast<std::size_t>(index) % slots_.size()];
    wait_free(slot);
    {
      std::lock_guard lock(mutex_);
      if (failure_) return;
    }
    launch(slot, compute, inputs, shared, outputs, split_rows(all, chunks, index));
  }
}

void Staging::launch(Slot& slot, const Compute& compute, std::span<const Slab> inputs,
                     std::span<const at::Tensor> shared, std::span<const Slab> outputs,
                     Rows chunk) {
  slot.in.resize(inputs.size());
  slot.there.resize(inputs.size());
  slot.out.resize(outputs.size());
  std::vector<at::Tensor> given;
  for (std::size_t index = 0; index < inputs.size(); ++index) {
    given.push_back(inputs[index].batched ? copy_in(slot, index, inputs[index], chunk)
                                          : shared[index]);
  }
  const Mark arrived = into_.record();
  std::vector<at::Tensor> results;
  Mark computed;
  {
    auto use = compute_.use();
    compute_.wait(arrived);
    results = compute(std::move(given), chunk);
    computed = compute_.record();
  }
  auto use = out_.use();
  out_.wait(computed);
  std::vector<Copy> copies = copy_out(slot, results, outputs, chunk);
  auto done = std::make_shared<Mark>(out_.record());
  {
    std::lock_guard lock(mutex_);
    slot.free = false;
  }
  try {
    emptier_.put([this, &slot, done, copies = std::move(copies)] { land(slot, *done, copies); });
  } catch (...) {
    std::lock_guard lock(mutex_);
    slot.free = true;
    throw;
  }
}

at::Tensor Staging::copy_in(Slot& slot, std::size_t index, const Slab& slab, Rows chunk) {
  View source = cut(slab, chunk);
  const bool direct = is_locked(device_, source);
  if (!direct) {
    const View buffer = slot.in[index].like(source, device_);
    copy_rows(buffer, source, cores_);
    source = buffer;
  }
  auto use = into_.use();
  const at::Tensor from = make_tensor(source);
  at::Tensor& there = slot.there[index];
  // A slot's tensor on the device is used again by chunks of its shape, or smaller ones.
  const bool fits = there.defined() && there.scalar_type() == from.scalar_type() &&
                    there.dim() == from.dim() && there.size(0) >= from.size(0) &&
                    there.sizes().slice(1) == from.sizes().slice(1);
  if (!fits) {
    there.reset();
    there = at::empty(from.sizes(), from.options().device(device_));
  }
  at::Tensor part = there.narrow(0, 0, from.size(0));
  part.copy_(from, true);
  return part;
}

std::vector<Staging::Copy> Staging::copy_out(Slot& slot, std::span<const at::Tensor> results,
                                             std::span<const Slab> outputs, Rows chunk) {
  std::vector<View> targets;
  for (const Slab& each : outputs) targets.push_back(cut(each, chunk));
  const Landing landing(targets);
  landing.expect(results.size());
  std::vector<Copy> copies;
  for (std::size_t index = 0; index < results.size(); ++index) {
    const View& target = targets[index];
    landing.check(index, view_tensor(results[index]));
    View buffer = target;
    if (!is_locked(device_, target)) {
      buffer = slot.out[index].like(target, device_);
      copies.push_back({target, buffer});
    }
    make_tensor(buffer).copy_(resolve(results[index]), true);
    out_.keep(results[index]);
  }
  return copies;
}

void Staging::land(Slot& slot, const Mark& done, const std::vector<Copy>& copies) {
  std::exception_ptr failure;
  try {
    done.synchronize();
    for (const Copy& each : copies) copy_rows(each.to, each.from, cores_);
  } catch (...) {
    failure = std::current_exception();
  }
  std::lock_guard lock(mutex_);
  if (failure && !failure_) failure_ = failure;
  slot.free = true;
  // Under the lock: the one who waits may go, and this with it, once it is let go.
  changed_.notify_all();
}

void Staging::wait_free(Slot& slot) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return slot.free; });
}

// After a failure chunks may be on their way that nobody has waited for.
void Staging::settle() {
  for (const Lane* each : {&into_, &compute_, &out_}) {
    try {
      each->record().synchronize();
    } catch (const std::exception&) {
      // The failure that is reported came first.
    }
  }
}

}  // namespace torchspan
