// SPDX-License-Identifier: MIT
// The runtime is found by the names of its functions among the libraries that torch has loaded, so
// that no vendor's toolkit is needed to build this.
#include "vendor.hpp"

#include <dlfcn.h>

namespace torchspan {
namespace {

// The first members of cudaPointerAttributes and hipPointerAttribute_t, which have the same order
// and numbers; versions of either differ in what follows, for which there is room.
struct PointerAttributes {
  int type;
  int device;
  void* more[32];
};

constexpr int device_memory = 2, managed_memory = 3;
constexpr unsigned for_every_device = 1;  // cudaHostRegisterPortable

struct Runtime {
  int (*find_attributes)(PointerAttributes*, const void*) = nullptr;
  int (*lock)(void*, std::size_t, unsigned) = nullptr;
  int (*unlock)(void*) = nullptr;
  int (*take_error)() = nullptr;
  const char* (*explain)(int) = nullptr;

  Runtime() {
    // A program that opened this library by itself may have kept its names to itself.
    Dl_info here{};
    void* self = nullptr;
    if (::dladdr(reinterpret_cast<const void*>(&vendor_present), &here) != 0) {
      self = ::dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    }
    for (const char* prefix : {"cuda", "hip"}) {
      auto find = [&](const char* name, auto& function) {
        const std::string symbol = std::string(prefix) + name;
        void* found = ::dlsym(RTLD_DEFAULT, symbol.c_str());
        if (found == nullptr && self != nullptr) found = ::dlsym(self, symbol.c_str());
        function = reinterpret_cast<std::decay_t<decltype(function)>>(found);
      };
      find("PointerGetAttributes", find_attributes);
      find("HostRegister", lock);
      find("HostUnregister", unlock);
      find("GetLastError", take_error);
      find("GetErrorString", explain);
      if (complete()) return;
    }
  }

  bool complete() const { return find_attributes && lock && unlock && take_error && explain; }

  // What a call's status means. The runtime remembers a failure as one of the next kernel, so it
  // is taken back.
  std::optional<std::string> judge(int status) const {
    if (status == 0) return {};
    take_error();
    return explain(status);
  }
};

const Runtime& runtime() {
  static const Runtime found;
  return found;
}

}  // namespace

bool vendor_present() { return runtime().complete(); }

std::optional<int> vendor_device(const void* pointer) {
  PointerAttributes attributes{};
  if (runtime().judge(runtime().find_attributes(&attributes, pointer))) return {};
  if (attributes.type != device_memory && attributes.type != managed_memory) return {};
  return attributes.device;
}

std::optional<std::string> vendor_lock(void* data, std::size_t bytes) {
  return runtime().judge(runtime().lock(data, bytes, for_every_device));
}

std::optional<std::string> vendor_unlock(void* data) {
  return runtime().judge(runtime().unlock(data));
}

}  // namespace torchspan
