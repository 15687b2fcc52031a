// SPDX-License-Identifier: MIT
// The way of arrays to a device and back, where the device is the CPU under the name of another
// one: feeder CASE.
#include "feeder.hpp"

#include <string>

#include "check.hpp"
#include "status.hpp"

namespace {

using torchspan::Call;
using torchspan::Checker;
using torchspan::Feeder;
using torchspan::Place;
using torchspan::Rows;
using Tensors = std::vector<at::Tensor>;

constexpr Place host{}, home{1, 0}, other{1, 1};

// Run the rows of x + 1 from one place to another, and give the memory that the model saw.
const void* run(Feeder& feeder, Floats& x, Place from, Floats& y, Place to,
                std::optional<Rows> rows = {}, bool queued = false) {
  x.view.place = from;
  y.view.place = to;
  Call call{{x.view}, {y.view}, rows, {}};
  if (queued) call.queue = torchspan::Queue{nullptr, home};
  const void* seen = nullptr;
  feeder.run(
      [&](Tensors given, std::optional<Rows>) {
        check(given[0].is_contiguous(), "a model gets contiguous inputs");
        check(reinterpret_cast<std::uintptr_t>(given[0].data_ptr()) % 16 == 0, "aligned ones");
        seen = given[0].data_ptr();
        return Tensors{given[0].add(1)};
      },
      Checker(), call, rows);
  return seen;
}

void check_rows(const Floats& x, const Floats& y, Rows rows) {
  for (std::int64_t row = 0; row < x.view.sizes[0]; ++row) {
    const bool inside = row >= rows.start && row < rows.stop;
    for (std::int64_t column = 0; column < x.view.sizes[1]; ++column) {
      check(y.at(row, column) == (inside ? x.at(row, column) + 1 : -1), "a row");
    }
  }
}

void test_in_place() {
  Feeder feeder(at::kCPU, home, 1, 100);
  Floats x({8, 4}, true), y({8, 4}, false);
  check(run(feeder, x, home, y, home) == x.view.data, "no copy of an input that is there");
  check_rows(x, y, {0, 8});
}

void test_places() {
  Feeder feeder(at::kCPU, home, 1, 100);
  for (const Place from : {host, home, other}) {
    for (const Place to : {host, home, other}) {
      for (const bool queued : {false, true}) {
        for (const Rows rows : {Rows{0, 9}, Rows{2, 7}, Rows{3, 4}}) {
          Floats x({9, 4}, true), y({9, 4}, false);
          run(feeder, x, from, y, to, rows, queued);
          check_rows(x, y, rows);
        }
      }
    }
  }
}

void test_layouts() {
  Feeder feeder(at::kCPU, home, 1, 100);
  for (const Place place : {host, home}) {
    Floats x({9, 5}, true), y({9, 5}, false);
    x.turn(), y.turn();
    check(run(feeder, x, place, y, place) != x.view.data, "a copy of what it cannot take");
    check_rows(x, y, {0, 9});
    Floats odd({9, 5}, true, 1), back({9, 5}, false, 1);
    check(run(feeder, odd, place, back, place) != odd.view.data, "a copy of what is not aligned");
    check_rows(odd, back, {0, 9});
  }
}

// More than is page-locked at a time.
void test_large() {
  Feeder feeder(at::kCPU, home, 1, 0);
  Floats x({1 << 20, 9}, true), y({1 << 20, 9}, false);
  run(feeder, x, host, y, host, Rows{0, 1 << 20});
  check_rows(x, y, {0, 1 << 20});
}

void test_errors() {
  Feeder feeder(at::kCPU, home, 1, 100);
  Floats x({3, 4}, true), y({3, 3}, false), good({3, 4}, false);
  try {
    run(feeder, x, host, y, home);
    check(false, "a result that does not fit is an error");
  } catch (const torchspan::Error& error) {
    check(std::string(error.what()).find("output 0 has dtype float32 and shape (3, 3)") == 0,
          "it says what does not fit");
  }
  run(feeder, x, host, good, home);
  check_rows(x, good, {0, 3});
}

}  // namespace

int main(int count, char** arguments) {
  const std::string name = count > 1 ? arguments[1] : "";
  const std::pair<const char*, void (*)()> tests[] = {{"in place", test_in_place},
                                                      {"places", test_places},
                                                      {"layouts", test_layouts},
                                                      {"large", test_large},
                                                      {"errors", test_errors}};
  for (const auto& [each, test] : tests) {
    if (name != each) continue;
    test();
    std::puts("done");
    return 0;
  }
  return 2;
}
