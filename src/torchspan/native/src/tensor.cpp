// SPDX-License-Identifier: MIT
// Make tensors, over the caller's memory or their own, and delete them.
#include "tensor.hpp"

#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "devices.hpp"
#include "vendor.hpp"

namespace torchspan {
namespace {

constexpr const char* kinds[] = {"cpu", "cuda", "xpu", "mps"};

Handles<tspan_tensor, Tensor>& tensors() {
  static Handles<tspan_tensor, Tensor> all("tensor");
  return all;
}

Home make_home(const Device& device) {
  Home home;
  home.backing = at::Device(device.backing);
  home.index = static_cast<std::int8_t>(device.index);
  while (device.kind != kinds[home.kind]) ++home.kind;
  return home;
}

// Whose memory a pointer leads to: compilers with OpenACC or CUDA give a device's address as if it
// were the host's. A runtime that nobody has started is not asked, because it would start.
Home find_owner(const void* data) {
  if (data == nullptr || !vendor_present()) return Home();
  const auto& hooks = at::detail::getCUDAHooks();
  const int count = hooks.getNumGPUs();
  int used = 0;
  while (used < count && !hooks.hasPrimaryContext(static_cast<at::DeviceIndex>(used))) ++used;
  const std::optional<int> index = used < count ? vendor_device(data) : std::nullopt;
  return index ? find_home(say("cuda:", *index).c_str()) : Home();
}

// Where DLPack says that memory is, or its address; page-locked memory is the host's.
Home find_memory(const tspan_array& array) {
  const char* kind = nullptr;
  switch (array.device.type) {
    case 1:
      return find_owner(array.data);
    case 3:
    case 11:
      return Home();
    case 2:
    case 10:
      kind = "cuda";
      break;
    case 8:
      kind = "mps";
      break;
    case 14:
      kind = "xpu";
      break;
    default:
      fail(TSPAN_ERROR_ARGUMENT, "array has device type ", array.device.type,
           "; 1 is the CPU, 2 CUDA, 8 Metal, 10 ROCm and 14 oneAPI.");
  }
  return find_home(say(kind, ":", array.device.index).c_str());
}

at::Tensor wrap(const View& view, const Home& home) {
  auto options = at::TensorOptions()
                     .dtype(static_cast<at::ScalarType>(view.dtype->torch))
                     .device(home.backing);
  return at::from_blob(view.data, at::IntArrayRef(view.sizes, view.ndim),
                       at::IntArrayRef(view.strides, view.ndim), options);
}

tspan_tensor* give_leaf(at::Tensor value, const Home& home, int requires_grad) {
  if (read_flag(requires_grad, "requires_grad")) {
    require_differentiable(value);
    value.set_requires_grad(true);
  }
  return give_tensor(std::move(value), home);
}

template <class Make>
tspan_status make(std::int32_t ndim, const std::int64_t* shape, const char* dtype,
                  const char* device, int requires_grad, tspan_tensor** tensor, Make&& fill) {
  return giving(tensor, "tensor", [&] {
    // Sizes are checked as those of an array are, whose data nobody looks at.
    char nothing = 0;
    const tspan_array array = {&nothing, {3, 0}, ndim, {TSPAN_UINT, 8, 1}, shape, nullptr, 0};
    Home home;
    const View view = view_memory(array, home);
    home = find_home(device);
    auto options = at::TensorOptions().dtype(find_scalar_type(dtype)).device(home.backing);
    return give_leaf(fill(at::IntArrayRef(view.sizes, view.ndim), options), home, requires_grad);
  });
}

}  // namespace

std::string Home::name() const { return say(kinds[kind], ":", int(index)); }

Home find_home(const char* device) {
  if (device == nullptr || std::string_view(device) == "cpu") return Home();
  const std::vector<Device> found = parse_devices(device);
  if (found.size() != 1) {
    fail(TSPAN_ERROR_DEVICE, "'", device, "' names ", found.size(),
         " devices; name the one to use, such as '", found.front().name(), "'.");
  }
  return make_home(found.front());
}

View view_memory(const tspan_array& array, Home& home) {
  home = find_memory(array);
  tspan_array here = array;
  here.device = {1, 0};
  View view;
  view_array(here, Label{"array", 0, nullptr}, view);
  for (int dim = 0; dim < view.ndim; ++dim) {
    if (view.strides[dim] < 0) {
      fail(TSPAN_ERROR_ARGUMENT, "array 0 has stride ", view.strides[dim], " in its dimension ",
           dim, "; a tensor's strides are 0 or more. Copy the array in order.");
    }
  }
  return view;
}

Tensor& find_tensor(const tspan_tensor* handle, const char* what) {
  return tensors().find(handle, what);
}

tspan_tensor* give_tensor(at::Tensor value, const Home& home) {
  return tensors().add({std::move(value), home});
}

std::vector<Tensor*> find_tensors(const tspan_tensor* const* handles, std::size_t count,
                                  const char* what) {
  if (count > 0) require(handles, what);
  std::vector<Tensor*> found(count);
  for (std::size_t index = 0; index < count; ++index) {
    try {
      found[index] = &find_tensor(handles[index], "");
    } catch (const Error& error) {
      fail(error.code, what, "[", index, "]", error.what());
    }
  }
  return found;
}

}  // namespace torchspan

using namespace torchspan;

tspan_status tspan_tensor_wrap(const tspan_array* array, int requires_grad, tspan_tensor** tensor) {
  return giving(tensor, "tensor", [&] {
    require(array, "array");
    Home home;
    const View view = view_memory(*array, home);
    return give_leaf(wrap(view, home), home, requires_grad);
  });
}

tspan_status tspan_tensor_create(const tspan_array* array, const char* device, int requires_grad,
                                 tspan_tensor** tensor) {
  return giving(tensor, "tensor", [&] {
    require(array, "array");
    Home here;
    const View view = view_memory(*array, here);
    const Home home = find_home(device);
    at::Tensor value = wrap(view, here);
    value =
        value.to(value.options().device(home.backing), false, true, at::MemoryFormat::Contiguous);
    return give_leaf(std::move(value), home, requires_grad);
  });
}

tspan_status tspan_tensor_empty(int32_t ndim, const int64_t* shape, const char* dtype,
                                const char* device, int requires_grad, tspan_tensor** tensor) {
  return make(ndim, shape, dtype, device, requires_grad, tensor,
              [](auto sizes, auto options) { return at::empty(sizes, options); });
}

tspan_status tspan_tensor_zeros(int32_t ndim, const int64_t* shape, const char* dtype,
                                const char* device, int requires_grad, tspan_tensor** tensor) {
  return make(ndim, shape, dtype, device, requires_grad, tensor,
              [](auto sizes, auto options) { return at::zeros(sizes, options); });
}

tspan_status tspan_tensor_ones(int32_t ndim, const int64_t* shape, const char* dtype,
                               const char* device, int requires_grad, tspan_tensor** tensor) {
  return make(ndim, shape, dtype, device, requires_grad, tensor,
              [](auto sizes, auto options) { return at::ones(sizes, options); });
}

tspan_status tspan_tensor_clone(const tspan_tensor* source, tspan_tensor** tensor) {
  return giving(tensor, "tensor", [&] {
    const Tensor& from = find_tensor(source, "source");
    return give_tensor(from.value.clone(at::MemoryFormat::Contiguous), from.home);
  });
}

tspan_status tspan_tensor_to(const tspan_tensor* source, const char* dtype, const char* device,
                             tspan_tensor** tensor) {
  return giving(tensor, "tensor", [&] {
    const Tensor& from = find_tensor(source, "source");
    const Home home = device == nullptr ? from.home : find_home(device);
    auto options = from.value.options().device(home.backing);
    if (dtype != nullptr) options = options.dtype(find_scalar_type(dtype));
    return give_tensor(from.value.to(options, false, true), home);
  });
}

tspan_status tspan_tensor_detach(const tspan_tensor* source, tspan_tensor** tensor) {
  return giving(tensor, "tensor", [&] {
    const Tensor& from = find_tensor(source, "source");
    return give_tensor(from.value.detach(), from.home);
  });
}

tspan_status tspan_tensor_share(const tspan_tensor* source, tspan_tensor** tensor) {
  return giving(tensor, "tensor", [&] {
    const Tensor& from = find_tensor(source, "source");
    return give_tensor(from.value, from.home);
  });
}

tspan_status tspan_tensor_delete(tspan_tensor* tensor) {
  return guarded([&] {
    if (tensor != nullptr) tensors().remove(tensor, "tensor");
  });
}
