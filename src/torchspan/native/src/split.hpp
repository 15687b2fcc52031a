// SPDX-License-Identifier: MIT
// Cut rows into even parts: the one rule by which devices and chunks share a batch.
#pragma once

#include <algorithm>
#include <cstdint>

namespace torchspan {

struct Rows {
  std::int64_t start = 0, stop = 0;
  std::int64_t count() const { return stop - start; }
};

// The part at `index` of `parts` runs of rows whose sizes differ by at most one, longer ones first.
inline Rows split_rows(Rows rows, std::int64_t parts, std::int64_t index) {
  std::int64_t each = rows.count() / parts, longer = rows.count() % parts;
  auto start = [&](std::int64_t part) { return rows.start + part * each + std::min(part, longer); };
  return {start(index), start(index + 1)};
}

// How many even chunks of at most `most` rows there are.
inline std::int64_t count_chunks(Rows rows, std::int64_t most) {
  return (rows.count() + most - 1) / most;
}

}  // namespace torchspan
