// SPDX-License-Identifier: MIT
// SGD, Adam and AdamW, by torch's fused kernels, which take all parameters of a device at once.
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "tensor.hpp"

namespace torchspan {

// A parameter and what an optimizer remembers of it. Kernels go through memory from end to end, so
// all that is of one parameter has the same strides.
struct Parameter {
  at::Tensor value;
  at::Tensor first, second, largest, steps;
  bool begun = false;
};

// The parameters that one call of a kernel takes.
struct Batch {
  std::vector<at::Tensor> values, gradients, firsts, seconds, largests, steps;
};

class Optimizer {
 public:
  explicit Optimizer(std::vector<Parameter> parameters) : parameters_(std::move(parameters)) {}
  virtual ~Optimizer() = default;

  void step();
  void zero_gradients();
  double learning_rate = 0;

 protected:
  // Make what is remembered of a parameter before its first step.
  virtual void begin(Parameter& parameter) const = 0;
  virtual void step(Batch& batch, bool first) const = 0;

 private:
  std::vector<Parameter> parameters_;
};

namespace {

Handles<tspan_optimizer, std::unique_ptr<Optimizer>>& optimizers() {
  static Handles<tspan_optimizer, std::unique_ptr<Optimizer>> all("optimizer");
  return all;
}

class Sgd : public Optimizer {
 public:
  Sgd(std::vector<Parameter> parameters, const tspan_sgd& options)
      : Optimizer(std::move(parameters)), options_(options) {
    learning_rate = options.learning_rate;
  }

 private:
  void begin(Parameter& parameter) const override {
    if (options_.momentum != 0) parameter.first = at::zeros_like(parameter.value);
  }
  void step(Batch& batch, bool first) const override {
    at::_fused_sgd_(batch.values, batch.gradients, batch.firsts, options_.weight_decay,
                    options_.momentum, learning_rate, options_.dampening, options_.nesterov != 0,
                    false, first);
  }
  tspan_sgd options_;
};

class Adam : public Optimizer {
 public:
  Adam(std::vector<Parameter> parameters, const tspan_adam& options, bool decoupled)
      : Optimizer(std::move(parameters)), options_(options), decoupled_(decoupled) {
    learning_rate = options.learning_rate;
  }

 private:
  void begin(Parameter& parameter) const override {
    parameter.first = at::zeros_like(parameter.value);
    parameter.second = at::zeros_like(parameter.value);
    if (options_.amsgrad != 0) parameter.largest = at::zeros_like(parameter.value);
    parameter.steps = at::zeros({}, parameter.value.options().dtype(at::kFloat));
  }
  void step(Batch& batch, bool) const override {
    for (at::Tensor& each : batch.steps) each.add_(1);
    Kernel* kernel = at::_fused_adam_;
    if (decoupled_) kernel = at::_fused_adamw_;
    kernel(batch.values, batch.gradients, batch.firsts, batch.seconds, batch.largests, batch.steps,
           learning_rate, options_.beta_1, options_.beta_2, options_.weight_decay, options_.eps,
           options_.amsgrad != 0, false, {}, {});
  }

  using Kernel = void(at::TensorList, at::TensorList, at::TensorList, at::TensorList,
                      at::TensorList, at::TensorList, double, double, double, double, double, bool,
                      bool, const std::optional<at::Tensor>&, const std::optional<at::Tensor>&);
  tspan_adam options_;
  bool decoupled_;
};

bool is_dense(const at::Tensor& tensor) { return tensor.is_non_overlapping_and_dense(); }

void add(const at::Tensor& tensor, std::vector<at::Tensor>& tensors) {
  if (tensor.defined()) tensors.push_back(tensor);
}

void add(const Parameter& parameter, Batch& batch) {
  // A section of an array is worked on without its gaps, and copied back afterwards.
  const at::Tensor value = is_dense(parameter.value)
                               ? parameter.value
                               : at::empty_like(parameter.value).copy_(parameter.value);
  at::Tensor gradient = parameter.value.grad();
  if (gradient.strides() != value.strides()) gradient = at::empty_like(value).copy_(gradient);
  batch.values.push_back(value);
  batch.gradients.push_back(gradient);
  add(parameter.first, batch.firsts);
  add(parameter.second, batch.seconds);
  add(parameter.largest, batch.largests);
  add(parameter.steps, batch.steps);
}

}  // namespace

void Optimizer::step() {
  c10::NoGradGuard off;
  using Key = std::tuple<at::Device, at::ScalarType, bool>;
  struct Order {
    static auto order(const Key& key) {
      const auto& [device, type, begun] = key;
      return std::tuple(device.type(), device.index(), type, begun);
    }
    bool operator()(const Key& one, const Key& other) const { return order(one) < order(other); }
  };
  std::map<Key, std::pair<Batch, std::vector<Parameter*>>, Order> batches;
  for (Parameter& each : parameters_) {
    if (!each.value.grad().defined()) continue;
    auto& [batch, members] = batches[{each.value.device(), each.value.scalar_type(), each.begun}];
    if (!each.begun) begin(each);
    add(each, batch);
    members.push_back(&each);
  }
  for (auto& [key, pair] : batches) {
    auto& [batch, members] = pair;
    step(batch, !std::get<bool>(key));
    for (std::size_t index = 0; index < members.size(); ++index) {
      const at::Tensor& value = members[index]->value;
      members[index]->begun = true;
      if (!value.is_same(batch.values[index])) value.copy_(batch.values[index]);
      // The kernels do not say that they wrote; a graph that needs the old values must learn it.
      value.unsafeGetTensorImpl()->bump_version();
    }
  }
}

void Optimizer::zero_gradients() {
  c10::NoGradGuard off;
  for (const Parameter& each : parameters_) {
    if (each.value.grad().defined()) each.value.mutable_grad().zero_();
  }
}

namespace {

std::vector<Parameter> read_parameters(const tspan_tensor* const* handles, std::size_t count) {
  std::vector<Parameter> parameters;
  bool wanted = false;
  for (const Tensor* each : find_tensors(handles, count, "parameters")) {
    const at::Tensor& value = each->value;
    const std::string what = say("parameters[", parameters.size(), "] ");
    if (!value.is_floating_point()) {
      fail(TSPAN_ERROR_ARGUMENT, what, "is ", dtype_name(value), "; parameters are real numbers.");
    }
    if (!value.is_leaf()) {
      fail(TSPAN_ERROR_ARGUMENT, what,
           "is a result; parameters are tensors that were made with "
           "requires_grad 1, or a module's.");
    }
    if (std::any_of(parameters.begin(), parameters.end(),
                    [&](const Parameter& other) { return other.value.is_same(value); })) {
      fail(TSPAN_ERROR_ARGUMENT, what, "was given before; give each parameter once.");
    }
    wanted = wanted || value.requires_grad();
    parameters.push_back({value, {}, {}, {}, {}});
  }
  if (!wanted) {
    fail(TSPAN_ERROR_ARGUMENT, "of the ", count,
         " parameters none requires gradients, so no step "
         "would change anything. Make them with requires_grad 1.");
  }
  return parameters;
}

void require_within(double value, const char* what, double low, double high) {
  if (value >= low && value < high) return;
  fail(TSPAN_ERROR_ARGUMENT, what, " is ", value, "; it is at least ", low,
       high < 1e300 ? say(" and less than ", high) : std::string(), ".");
}

constexpr double any = std::numeric_limits<double>::infinity();

tspan_optimizer* give(std::unique_ptr<Optimizer> optimizer) {
  return optimizers().add(std::move(optimizer));
}

tspan_optimizer* make_adam(const tspan_tensor* const* parameters, std::size_t count,
                           const tspan_adam& options, bool decoupled) {
  require_within(options.learning_rate, "learning_rate", 0, any);
  require_within(options.beta_1, "beta_1", 0, 1);
  require_within(options.beta_2, "beta_2", 0, 1);
  require_within(options.eps, "eps", 0, any);
  require_within(options.weight_decay, "weight_decay", 0, any);
  read_flag(options.amsgrad, "amsgrad");
  return give(std::make_unique<Adam>(read_parameters(parameters, count), options, decoupled));
}

}  // namespace
}  // namespace torchspan

using namespace torchspan;

tspan_status tspan_optimizer_sgd(const tspan_tensor* const* parameters, size_t count,
                                 const tspan_sgd* options, tspan_optimizer** optimizer) {
  return giving(optimizer, "optimizer", [&] {
    const tspan_sgd chosen = options != nullptr ? *options : tspan_sgd TSPAN_SGD_DEFAULTS;
    require_within(chosen.learning_rate, "learning_rate", 0, any);
    require_within(chosen.momentum, "momentum", 0, any);
    require_within(chosen.weight_decay, "weight_decay", 0, any);
    if (read_flag(chosen.nesterov, "nesterov") && (chosen.momentum == 0 || chosen.dampening != 0)) {
      fail(TSPAN_ERROR_ARGUMENT, "nesterov is 1 with momentum ", chosen.momentum, " and dampening ",
           chosen.dampening, "; it takes some momentum and no dampening.");
    }
    return give(std::make_unique<Sgd>(read_parameters(parameters, count), chosen));
  });
}

tspan_status tspan_optimizer_adam(const tspan_tensor* const* parameters, size_t count,
                                  const tspan_adam* options, tspan_optimizer** optimizer) {
  return giving(optimizer, "optimizer", [&] {
    return make_adam(parameters, count,
                     options != nullptr ? *options : tspan_adam TSPAN_ADAM_DEFAULTS, false);
  });
}

tspan_status tspan_optimizer_adamw(const tspan_tensor* const* parameters, size_t count,
                                   const tspan_adam* options, tspan_optimizer** optimizer) {
  return giving(optimizer, "optimizer", [&] {
    return make_adam(parameters, count,
                     options != nullptr ? *options : tspan_adam TSPAN_ADAMW_DEFAULTS, true);
  });
}

tspan_status tspan_optimizer_step(tspan_optimizer* optimizer) {
  return guarded([&] { optimizers().find(optimizer, "optimizer")->step(); });
}

tspan_status tspan_optimizer_zero_gradients(tspan_optimizer* optimizer) {
  return guarded([&] { optimizers().find(optimizer, "optimizer")->zero_gradients(); });
}

tspan_status tspan_optimizer_set_learning_rate(tspan_optimizer* optimizer, double learning_rate) {
  return guarded([&] {
    Optimizer& found = *optimizers().find(optimizer, "optimizer");
    require_within(learning_rate, "learning_rate", 0, any);
    found.learning_rate = learning_rate;
  });
}

tspan_status tspan_optimizer_delete(tspan_optimizer* optimizer) {
  return guarded([&] {
    if (optimizer != nullptr) optimizers().remove(optimizer, "optimizer");
  });
}
