// SPDX-License-Identifier: MIT
// Everything that has a form for all vendors goes through torch's; vendor.cpp has the rest.
#include "accelerator.hpp"

#include <ATen/Context.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "locked.hpp"
#include "vendor.hpp"

namespace torchspan {
namespace {

const c10::impl::DeviceGuardImplInterface& driver(const at::Device& device) {
  return *c10::impl::getDeviceGuardImpl(device.type());
}

}  // namespace

bool has_streams(const at::Device& device) {
  return device.is_cuda() || device.is_hip() || device.is_xpu();
}

void start_accelerator(const at::Device& device) {
  if (!device.is_cpu()) at::globalContext().lazyInitDevice(device.type());
}

Lane::Lane(const at::Device& device) {
  if (has_streams(device)) stream_ = driver(device).getStreamFromGlobalPool(device);
}

Lane Lane::standard(const at::Device& device) {
  Lane lane;
  if (has_streams(device)) lane.stream_ = driver(device).getDefaultStream(device);
  return lane;
}

Lane Lane::current(const at::Device& device) {
  Lane lane;
  if (has_streams(device)) lane.stream_ = driver(device).getStream(device);
  return lane;
}

Lane Lane::borrowed(const at::Device& device, void* stream) {
  // torch numbers the streams of others by their address. CUDA's own name for the default stream,
  // 1, would be one of torch's numbers.
  auto number = reinterpret_cast<std::intptr_t>(stream);
  if (number == 0 || (number == 1 && !device.is_xpu())) return standard(device);
  Lane lane;
  if (has_streams(device)) {
    lane.stream_.emplace(c10::Stream::UNSAFE, device, static_cast<c10::StreamId>(number));
  }
  return lane;
}

Mark Lane::record() const {
  Mark mark;
  if (stream_) {
    mark.event_.emplace(stream_->device_type());
    mark.event_->record(*stream_);
  }
  return mark;
}

void Lane::wait(const Mark& mark) const {
  if (stream_ && mark.event_) mark.event_->block(*stream_);
}

void Lane::keep(const at::Tensor& tensor) const {
  if (stream_ && tensor.device() == stream_->device()) tensor.record_stream(*stream_);
}

Place find_place(void* pointer, Place home) {
  const at::Device device(static_cast<at::DeviceType>(home.type), home.index);
  // The runtimes answer for the current device, and would start one that this process has not.
  c10::DeviceGuard guard(device);
  if (!device.is_xpu() && vendor_present()) {
    const std::optional<int> index = vendor_device(pointer);
    return index ? Place{home.type, static_cast<std::int8_t>(*index)} : Place();
  }
  if (at::globalContext().isPinnedPtr(pointer, device.type())) return {};
  try {
    const at::Device found = at::globalContext().getDeviceFromPtr(pointer, device.type());
    return {home.type, static_cast<std::int8_t>(found.index())};
  } catch (const c10::Error&) {
    // This is how torch says that memory is the host's.
    return {};
  }
}

at::DataPtr allocate_locked(const at::Device& device, std::size_t bytes) {
  if (!has_streams(device)) return c10::GetCPUAllocator()->allocate(bytes);
  return at::globalContext().getPinnedMemoryAllocator(device.type())->allocate(bytes);
}

bool is_locked(const at::Device& device, const View& view) {
  if (!has_streams(device) || !view.contiguous() || view.elements() == 0) return false;
  const char* last = view.data + view.bytes() - 1;
  if (const auto registered = find_registered(view.data, last)) return *registered;
  const auto pinned = [&](const void* at) {
    return at::globalContext().isPinnedPtr(at, device.type());
  };
  return pinned(view.data) && pinned(last);
}

}  // namespace torchspan
