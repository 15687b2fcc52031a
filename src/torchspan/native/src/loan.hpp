// SPDX-License-Identifier: MIT
// Memory lent to a script, whose tensors over it may be kept by the script.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/CPUAllocator.h>

#include <cstring>
#include <utility>
#include <vector>

namespace torchspan {

// The lender's memory is the script's during one call only.
class Loan {
 public:
  // A tensor on the CPU that nothing else shares its storage with.
  at::Tensor lend(at::Tensor tensor) {
    lent_.push_back(tensor.storage());
    return tensor;
  }

  template <class Body>
  void during(Body&& body) {
    try {
      body();
    } catch (...) {
      end();
      throw;
    }
    end();
  }

 private:
  // What the script has kept goes on with a copy: the memory may be freed, or filled anew.
  void end() {
    for (const at::Storage& each : lent_) {
      if (each.use_count() == 1) continue;
      at::DataPtr copy = c10::GetCPUAllocator()->allocate(each.nbytes());
      if (each.nbytes() > 0) std::memcpy(copy.get(), each.data(), each.nbytes());
      each.unsafeGetStorageImpl()->set_data_ptr_noswap(std::move(copy));
    }
  }

  std::vector<at::Storage> lent_;
};

}  // namespace torchspan
