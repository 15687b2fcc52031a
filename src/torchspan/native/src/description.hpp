// SPDX-License-Identifier: MIT
// What a model file says about itself: inputs, outputs, builds.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "archive.hpp"

namespace torchspan {

// A number, a name (any size, the same wherever the name appears) or nothing that is known.
using Dimension = std::variant<std::monostate, std::int64_t, std::string>;

struct Spec {
  std::string name;
  std::string dtype;                            // empty where the file does not say
  std::optional<std::vector<Dimension>> shape;  // missing where not even ndim is known
  bool batched = true;

  std::string shape_text() const;
};

struct Build {
  std::string name, folder, device, capability, precision, torch, digest;
  std::int64_t min_batch = 0;
  std::optional<std::int64_t> max_batch;

  // Whether it is for every batch, the empty one included.
  bool for_any() const { return min_batch == 0 && !max_batch; }
  // How many sizes of batch it is for: of two that take a batch, the narrower is quicker.
  std::int64_t breadth() const {
    return max_batch.value_or(std::numeric_limits<std::int64_t>::max()) - min_batch;
  }
  bool takes(std::int64_t rows) const {
    return min_batch <= rows && (!max_batch || rows <= *max_batch);
  }
};

struct Limits {
  std::int64_t low = 0;
  std::optional<std::int64_t> high;
};

struct Description {
  enum class Kind { compiled, torchscript, script };

  Kind kind = Kind::compiled;
  std::string json;  // as tspan_model_describe gives it
  std::optional<std::vector<Spec>> inputs, outputs;
  std::vector<Build> builds;
  std::map<std::string, Limits> limits;
  bool rows_independent = true;
  std::int64_t row_bytes = 0;
};

// Read the description in a file; of TorchScript, only the kind is known before it is opened.
Description describe(Archive& archive);

}  // namespace torchspan
