// SPDX-License-Identifier: MIT
// A build reads memory as it was exported, so a wrong dtype or shape would give garbage without a
// word: every call is checked.
#include "arguments.hpp"

#include <algorithm>

#include "status.hpp"

namespace torchspan {
namespace {

constexpr const char* batch = "batch";
constexpr std::size_t most_named = 32;

}  // namespace

Checker::Checker(const Description& description)
    : known_(description.kind == Description::Kind::compiled) {
  for (const Spec& spec : description.inputs.value_or(std::vector<Spec>())) {
    inputs_.push_back(take_apart(spec));
  }
  for (const Spec& spec : description.outputs.value_or(std::vector<Spec>())) {
    outputs_.push_back(take_apart(spec));
  }
  if (named_.size() > most_named) {
    fail(TSPAN_ERROR_MODEL_FILE, "the model has ", named_.size(), " named dimensions; up to ",
         most_named, " are possible here.");
  }
  for (std::size_t index = 0; index < named_.size(); ++index) {
    auto limits = description.limits.find(named_[index].name);
    if (limits != description.limits.end()) named_[index].limits = limits->second;
    if (named_[index].name == batch) batch_ = static_cast<int>(index);
  }
}

Checker::Expected Checker::take_apart(const Spec& spec) {
  Expected expected{spec, nullptr, spec.batched, {}, {}};
  if (!spec.dtype.empty()) {
    expected.dtype = find_dtype(spec.dtype);
    if (expected.dtype == nullptr) {
      fail(TSPAN_ERROR_MODEL_FILE, "the model's '", spec.name, "' has dtype ", spec.dtype,
           ", which this torchspan does not know. Install a newer one.");
    }
  }
  for (const Dimension& each : spec.shape.value_or(std::vector<Dimension>())) {
    const auto* size = std::get_if<std::int64_t>(&each);
    const auto* name = std::get_if<std::string>(&each);
    expected.fixed.push_back(size != nullptr ? *size : -1);
    expected.named.push_back(-1);
    if (name == nullptr) continue;
    auto found = std::find_if(named_.begin(), named_.end(),
                              [&](const Named& other) { return other.name == *name; });
    expected.named.back() = static_cast<int>(found - named_.begin());
    if (found == named_.end()) named_.push_back({*name, {}});
  }
  return expected;
}

void Checker::check(std::span<const tspan_array> inputs, std::span<const tspan_array> outputs,
                    const Places& places, Call& call, bool splitting) const {
  std::int64_t sizes[most_named];
  std::fill(sizes, sizes + named_.size(), -1);
  check_count("input", inputs.size(), inputs_, known_ || !inputs_.empty());
  check_count("output", outputs.size(), outputs_, known_);
  call.inputs.resize(inputs.size());
  call.outputs.resize(outputs.size());
  for (std::size_t index = 0; index < inputs.size(); ++index) {
    const std::string* name = index < inputs_.size() ? &inputs_[index].spec.name : nullptr;
    const Label label{"input", index, name};
    view_array(inputs[index], label, call.inputs[index]);
    call.inputs[index].place = places.find(inputs[index], label);
    if (known_) check_array(inputs_[index], label, call.inputs[index], true, sizes);
  }
  check_limits(sizes);
  for (std::size_t index = 0; index < outputs.size(); ++index) {
    const Label label{"output", index, known_ ? &outputs_[index].spec.name : nullptr};
    View& view = call.outputs[index];
    view_array(outputs[index], label, view);
    view.place = places.find(outputs[index], label);
    for (int dim = 0; dim < view.ndim; ++dim) {
      if (view.strides[dim] == 0 && view.sizes[dim] > 1) {
        fail(TSPAN_ERROR_ARGUMENT, label.text(), " has stride 0 in its dimension ", dim,
             ", so its elements share memory; results need their own.");
      }
    }
    if (known_) check_array(outputs_[index], label, view, false, sizes);
  }
  call.rows.reset();
  if (batch_ >= 0 && sizes[batch_] >= 0) {
    call.rows = Rows{0, sizes[batch_]};
  } else if (!known_) {
    call.rows = find_rows(call, splitting);
  }
}

void Checker::check_count(const char* role, std::size_t given,
                          const std::vector<Expected>& expected, bool known) const {
  if (!known || given == expected.size()) return;
  std::string listed;
  for (const Expected& each : expected) {
    if (!listed.empty()) listed += "; ";
    listed += each.spec.name;
    if (each.spec.shape) listed += ": " + each.spec.dtype + " " + each.spec.shape_text();
  }
  bool input = role[0] == 'i';
  fail(TSPAN_ERROR_ARGUMENT, given, " ", role, given == 1 ? " was" : "s were",
       " given; this model ", input ? "takes " : "gives ", expected.size(), ": ", listed, ".");
}

void Checker::check_array(const Expected& expected, const Label& label, const View& view,
                          bool input, std::int64_t* sizes) const {
  if (view.dtype != expected.dtype) {
    const char* given = view.dtype->name;
    if (input) {
      fail(TSPAN_ERROR_ARGUMENT, label.text(), " has dtype ", given, "; this model takes ",
           expected.dtype->name, ". Convert it, or save the model in ", given, ".");
    }
    fail(TSPAN_ERROR_ARGUMENT, label.text(), " has dtype ", given, "; this model gives ",
         expected.dtype->name, ". Give an array of ", expected.dtype->name, ".");
  }
  if (view.ndim != static_cast<int>(expected.fixed.size())) {
    fail_shape(expected, label, view, input, sizes);
  }
  for (int dim = 0; dim < view.ndim; ++dim) {
    const std::int64_t size = view.sizes[dim];
    if (expected.fixed[dim] >= 0 && expected.fixed[dim] != size) {
      fail_shape(expected, label, view, input, sizes);
    }
    const int named = expected.named[dim];
    if (named < 0) continue;
    if (sizes[named] < 0) sizes[named] = size;
    if (sizes[named] == size) continue;
    if (!input) fail_shape(expected, label, view, input, sizes);
    fail(TSPAN_ERROR_ARGUMENT, label.text(), " has ", size, " in its dimension ", dim, " (",
         named_[named].name, "), where another input has ", sizes[named], "; they must agree.");
  }
}

void Checker::check_limits(const std::int64_t* sizes) const {
  for (std::size_t index = 0; index < named_.size(); ++index) {
    const auto& [low, high] = named_[index].limits;
    const std::int64_t size = sizes[index];
    if (size < 0 || (size >= low && (!high || size <= *high))) continue;
    fail(TSPAN_ERROR_ARGUMENT, "dimension '", named_[index].name, "' has size ", size,
         "; this model takes ", low, " to ", high ? std::to_string(*high) : "any size", ".");
  }
}

std::optional<Rows> Checker::find_rows(const Call& call, bool splitting) const {
  std::optional<Rows> rows;
  if (!splitting) return rows;
  auto look = [&](const char* role, const std::vector<View>& views) {
    for (std::size_t index = 0; index < views.size(); ++index) {
      const View& view = views[index];
      if (view.ndim > 0 && !rows) rows = Rows{0, view.sizes[0]};
      if (view.ndim > 0 && view.sizes[0] == rows->stop) continue;
      fail(TSPAN_ERROR_ARGUMENT, role, " ", index, " has shape ", view.shape_text(),
           view.ndim > 0 ? say("; the arrays before it have ", rows->stop, " rows")
                         : std::string("; rows are its first dimension"),
           ". On several devices each array of a TorchScript model or a script needs the same "
           "rows: open the model on one device, or save it as .pt2, which says what has rows.");
    }
  };
  look("input", call.inputs);
  look("output", call.outputs);
  return rows;
}

void Checker::fail_shape(const Expected& expected, const Label& label, const View& view, bool input,
                         const std::int64_t* sizes) const {
  if (input) {
    fail(TSPAN_ERROR_ARGUMENT, label.text(), " has shape ", view.shape_text(),
         "; this model takes ", expected.spec.shape_text(),
         ". Reshape it, or save the model with an example of that shape.");
  }
  Spec result = expected.spec;
  for (std::size_t dim = 0; dim < result.shape->size(); ++dim) {
    const int named = expected.named[dim];
    if (named >= 0 && sizes[named] >= 0) (*result.shape)[dim] = sizes[named];
  }
  fail(TSPAN_ERROR_ARGUMENT, label.text(), " has shape ", view.shape_text(), "; the result has ",
       result.shape_text(), ". Give an array of that shape.");
}

}  // namespace torchspan
