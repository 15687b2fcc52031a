// SPDX-License-Identifier: MIT
// The calls of a vendor's runtime, answered by one that this program makes up under CUDA's names.
#include "vendor.hpp"

#include <cstring>
#include <string>

#include "check.hpp"

namespace {

int last_error = 0;
std::string calls;

int answer(const char* name, int status) {
  calls += name;
  if (status != 0) last_error = status;
  return status;
}

}  // namespace

// What CUDA 13 fills: four members and eight of its own for later.
struct Attributes {
  int type, device;
  void *device_pointer, *host_pointer;
  long reserved[8];
};

extern "C" {
int cudaPointerGetAttributes(Attributes* attributes, const void* pointer) {
  const auto number = reinterpret_cast<std::uintptr_t>(pointer);
  std::memset(attributes, 0, sizeof *attributes);
  attributes->type = static_cast<int>(number >> 4);
  attributes->device = static_cast<int>(number & 15);
  return answer("attributes ", number >> 8 ? 1 : 0);
}
int cudaHostRegister(void*, std::size_t bytes, unsigned flags) {
  check(flags == 1, "memory is locked for every device");
  return answer("lock ", bytes > 100 ? 2 : 0);
}
int cudaHostUnregister(void*) { return answer("unlock ", 0); }
int cudaGetLastError() {
  const int before = last_error;
  last_error = 0;
  return before;
}
const char* cudaGetErrorString(int status) { return status == 2 ? "out of memory" : "invalid"; }
}

int main() {
  using namespace torchspan;
  auto pointer = [](int type, int device) {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(type << 4 | device));
  };
  check(vendor_present(), "it is found by its names");
  check(!vendor_device(pointer(0, 0)) && !vendor_device(pointer(1, 3)), "host memory");
  check(vendor_device(pointer(2, 0)) == 0 && vendor_device(pointer(2, 5)) == 5, "a device's");
  check(vendor_device(pointer(3, 1)) == 1, "managed memory");
  check(!vendor_device(pointer(16, 0)) && last_error == 0, "a failure is none of a kernel's");
  calls = "";
  char memory[8];
  check(!vendor_lock(memory, 8) && !vendor_unlock(memory), "memory is locked");
  check(vendor_lock(memory, 1000) == "out of memory" && last_error == 0, "a failure says why");
  check(calls == "lock unlock lock ", "each is called once");
  std::puts("done");
}
