// SPDX-License-Identifier: MIT
// The streaming path on the CPU, where its streams do nothing but its order is the same: staging
// CASE.
#include "staging.hpp"

#include <filesystem>
#include <string>
#include <thread>

#include "check.hpp"
#include "status.hpp"

namespace {

using torchspan::Rows;
using torchspan::Slab;
using torchspan::Staging;
using Tensors = std::vector<at::Tensor>;

std::int64_t chunk_of(std::int64_t rows, std::int64_t width) { return 4 * rows * width; }

// Twice the first input times the second, and the sums of its rows.
Tensors multiply(Tensors inputs, std::optional<Rows> rows) {
  check(inputs[0].size(0) == rows->count(), "a chunk has its rows");
  return {inputs[0].mul(inputs[1]), inputs[0].sum(1)};
}

void run_multiply(std::int64_t rows, std::int64_t chunk, bool turned) {
  constexpr std::int64_t width = 5;
  Floats x({rows, width}, true), grid({width}, true), y({rows, width}, false), sums({rows}, false);
  if (turned) x.turn(), y.turn();
  const Slab inputs[] = {{x.view, true}, {grid.view, false}};
  const Slab outputs[] = {{y.view, true}, {sums.view, true}};
  std::vector<Rows> chunks;
  Staging staging(at::kCPU, 2, chunk_of(chunk, width));
  staging.run(
      [&](Tensors given, std::optional<Rows> part) {
        chunks.push_back(*part);
        return multiply(std::move(given), part);
      },
      inputs, outputs, rows);
  std::int64_t next = 0;
  for (const Rows& each : chunks) {
    check(each.start == next && each.count() > 0 && each.count() <= chunk, "chunks in order");
    next = each.stop;
  }
  check(next == rows, "every row is in a chunk");
  for (std::int64_t row = 0; row < rows; ++row) {
    float sum = 0;
    for (std::int64_t column = 0; column < width; ++column) {
      check(y.at(row, column) == x.at(row, column) * grid.at(column), "a product");
      sum += x.at(row, column);
    }
    check(sums.at(row) == sum, "a sum");
  }
}

void test_sizes() {
  for (std::int64_t rows : {0, 1, 2, 6, 7, 100, 101}) {
    for (std::int64_t chunk : {1, 3, 4, 50, 1000}) run_multiply(rows, chunk, false);
  }
}

void test_layouts() {
  for (std::int64_t rows : {1, 7, 100}) run_multiply(rows, 3, true);
}

// Rows that several threads copy.
void test_large() {
  constexpr std::int64_t rows = 300001, width = 7;
  Floats x({rows, width}, true), y({rows, width}, false);
  const Slab inputs[] = {{x.view, true}}, outputs[] = {{y.view, true}};
  Staging staging(at::kCPU, 2, 1 << 20);
  staging.run([](Tensors given, auto) { return Tensors{given[0].add(1)}; }, inputs, outputs, rows);
  for (std::size_t index = 0; index < x.memory.size(); ++index) {
    check(y.memory[index] == x.memory[index] + 1, "a large batch");
  }
}

void test_whole_outputs() {
  Floats x({9, 5}, true), grid({20}, true), y({9, 5}, false), twice({20}, false);
  const Slab inputs[] = {{x.view, true}, {grid.view, false}};
  const Slab outputs[] = {{y.view, true}, {twice.view, false}};
  Staging staging(at::kCPU, 1, chunk_of(2, 5));
  staging.run([](Tensors given, auto) { return Tensors{given[0].add(1), given[1].mul(2)}; }, inputs,
              outputs, 9);
  check(y.at(8, 4) == x.at(8, 4) + 1 && twice.at(19) == 38, "results without a batch come whole");
}

void run_plus_one(Staging& staging, std::int64_t rows, std::int64_t width) {
  Floats x({rows, width}, true), y({rows, width}, false);
  const Slab inputs[] = {{x.view, true}}, outputs[] = {{y.view, true}};
  staging.run([](Tensors given, auto) { return Tensors{given[0].add(1)}; }, inputs, outputs, rows);
  for (std::size_t index = 0; index < x.memory.size(); ++index) {
    check(y.memory[index] == x.memory[index] + 1, "buffers follow shapes");
  }
}

// Eight bytes an element, where there were four.
void run_conjugate(Staging& staging, std::int64_t rows) {
  Floats x({rows, 2}, true), y({rows, 2}, false);
  for (torchspan::View* each : {&x.view, &y.view}) {
    each->dtype = torchspan::find_dtype("complex64");
    each->ndim = 1;
    each->set_contiguous();
  }
  const Slab inputs[] = {{x.view, true}}, outputs[] = {{y.view, true}};
  staging.run([](Tensors given, auto) { return Tensors{given[0].conj()}; }, inputs, outputs, rows);
  for (std::size_t index = 0; index < x.memory.size(); ++index) {
    const float sign = index % 2 == 1 ? -1 : 1;
    check(y.memory[index] == sign * x.memory[index], "conjugates are resolved");
  }
}

void test_buffers() {
  Staging staging(at::kCPU, 1, 100);
  for (std::int64_t width : {3, 7, 3}) {
    for (std::int64_t rows : {10, 40, 5, 41}) run_plus_one(staging, rows, width);
    run_conjugate(staging, 31);
  }
}

template <class Compute>
std::string run_wrong(Staging& staging, Compute compute) {
  Floats x({50, 2}, true), y({50, 2}, false);
  const Slab inputs[] = {{x.view, true}}, outputs[] = {{y.view, true}};
  try {
    staging.run(compute, inputs, outputs, 50);
  } catch (const std::exception& error) {
    return error.what();
  }
  check(y.at(49, 1) == x.at(49, 1), "a call after a failure");
  return "";
}

void test_errors() {
  Staging staging(at::kCPU, 1, chunk_of(5, 2));
  int calls = 0;
  auto fail = [&](Tensors given, auto) -> Tensors {
    if (++calls == 4) throw std::runtime_error("in the middle");
    return given;
  };
  check(run_wrong(staging, fail) == "in the middle" && calls == 4, "it ends at the failure");
  check(run_wrong(staging, [](Tensors given, auto) { return given; }).empty(), "it goes on");
  check(run_wrong(staging, [](Tensors given, auto) { return Tensors{given[0].narrow(1, 0, 1)}; })
                .find("output 0 has dtype float32 and shape (5, 2); the result has") == 0,
        "a result that does not fit");
  check(run_wrong(staging, [](auto, auto) { return Tensors(); })
                .find("1 output was given; this model gives 0") == 0,
        "a result too few");
  check(run_wrong(staging, [](Tensors given, auto) { return given; }).empty(), "it goes on");
}

void test_turns() {
  Staging staging(at::kCPU, 1, 64);
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&staging] {
      for (int round = 0; round < 50; ++round)
        run_wrong(staging, [](auto given, auto) { return given; });
    });
  }
  for (std::thread& each : callers) each.join();
}

std::ptrdiff_t count_threads() {
  std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

void test_end() {
  const std::ptrdiff_t before = count_threads();
  auto staging = std::make_unique<Staging>(at::kCPU, 1);
  check(count_threads() == before + 1, "it has a thread");
  staging.reset();
  check(count_threads() == before, "its thread ends with it");
}

}  // namespace

int main(int count, char** arguments) {
  const std::string name = count > 1 ? arguments[1] : "";
  const std::pair<const char*, void (*)()> tests[] = {
      {"sizes", test_sizes},     {"layouts", test_layouts},
      {"large", test_large},     {"whole outputs", test_whole_outputs},
      {"buffers", test_buffers}, {"errors", test_errors},
      {"turns", test_turns},     {"end", test_end}};
  for (const auto& [each, test] : tests) {
    if (name != each) continue;
    test();
    std::puts("done");
    return 0;
  }
  return 2;
}
