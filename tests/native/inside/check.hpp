// SPDX-License-Identifier: MIT
// What the programs that look inside the library share: arrays in host memory, and a check.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "array.hpp"

inline void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::exit(1);
}

// An array of floats, filled with numbers that differ, or with -1.
struct Floats {
  std::vector<float> memory;
  torchspan::View view;

  Floats(std::vector<std::int64_t> sizes, bool counting, std::size_t skipped = 0) {
    view.dtype = torchspan::find_dtype("float32");
    view.ndim = static_cast<int>(sizes.size());
    std::copy(sizes.begin(), sizes.end(), view.sizes);
    view.set_contiguous();
    memory.resize(static_cast<std::size_t>(view.elements()) + skipped, -1);
    for (std::size_t index = 0; counting && index < memory.size(); ++index) {
      memory[index] = static_cast<float>(index % 1021);
    }
    view.data = reinterpret_cast<char*>(memory.data() + skipped);
  }

  // The same memory with its dimensions in the opposite order, as in Fortran.
  void turn() {
    std::int64_t stride = 1;
    for (int dim = 0; dim < view.ndim; ++dim) {
      view.strides[dim] = stride;
      stride *= view.sizes[dim];
    }
  }

  float at(std::int64_t row, std::int64_t column = 0) const {
    const std::int64_t offset =
        row * view.strides[0] + (view.ndim > 1 ? column * view.strides[1] : 0);
    return reinterpret_cast<const float*>(view.data)[offset];
  }
};
