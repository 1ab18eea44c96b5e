#include <algorithm>

#include "neaptide/autodiff/autodiff.hpp"
#include "neaptide/autodiff/backward.hpp"
#include "neaptide/base/errors.hpp"
#include "neaptide/base/text.hpp"

namespace neaptide::autodiff {
namespace {

using graph::Attrs;
using graph::Builder;
using graph::DType;
using graph::Graph;
using graph::Node;
using graph::Role;
using graph::TensorType;
using graph::Value;
using graph::ValueId;
using graph::ValueKind;

ValueId output_to_train(const Graph& graph, const std::string& name) {
  if (name.empty()) {
    if (graph.outputs.empty()) throw UserError("graph '{}' has no output that a loss could read", graph.name);
    return graph.outputs.front();
  }
  std::vector<std::string> names;
  for (const ValueId v : graph.outputs) {
    if (graph.values[v].name == name) return v;
    names.push_back(graph.values[v].name);
  }
  throw UserError("graph '{}' has no output '{}'{}", graph.name, name, did_you_mean(name, names));
}

/// The loss takes logits: a Softmax or LogSoftmax over the classes at the end of the model is not part of it.
ValueId before_softmax(Graph& graph, ValueId output) {
  const Value& value = graph.values[output];
  if (!value.producer.valid()) return output;
  const Node& node = graph.nodes[value.producer];
  if (node.op != "Softmax" && node.op != "LogSoftmax") return output;
  const graph::NodeView view(graph, node);
  const auto rank = static_cast<std::int64_t>(value.type.shape.size());
  const std::int64_t axis = view.int_or("axis", -1);
  if ((axis < 0 ? axis + rank : axis) != 1) return output;
  graph.notes.push_back(
      fmt::format("the loss reads the input of '{}' ({}): cross entropy takes logits", node.name, node.op));
  return node.inputs[0];
}

/// Logits as [n, classes]: trailing dimensions of one are dropped.
ValueId as_matrix(Builder& b, ValueId output) {
  const Value& value = b.graph().values[output];
  const graph::Shape shape = value.type.shape;
  const bool matrix =
      shape.size() >= 2 && std::all_of(shape.begin() + 2, shape.end(), [](std::int64_t d) { return d == 1; });
  if (!matrix)
    throw UserError("output '{}' is {}; cross entropy needs a row of class scores for each sample", value.name,
                    to_string(value.type));
  if (shape.size() == 2) return output;
  return b.add("Reshape", {output}, {{"shape", graph::Shape{shape[0], shape[1]}}}, "logits");
}

std::vector<ValueId> trained_parameters(const Graph& graph, const std::vector<std::string>& frozen) {
  std::vector<ValueId> trained;
  std::vector<std::string> names;
  for (const ValueId v : values_of_kind(graph, ValueKind::kParameter)) {
    const Value& value = graph.values[v];
    names.push_back(value.name);
    const bool real = value.type.dtype == DType::kF32 || value.type.dtype == DType::kF64;
    if (real && std::find(frozen.begin(), frozen.end(), value.name) == frozen.end()) trained.push_back(v);
  }
  for (const std::string& name : frozen) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw UserError("there is no parameter '{}' to freeze{}", name, did_you_mean(name, names));
  }
  if (trained.empty()) throw UserError("graph '{}' has no parameter to train", graph.name);
  return trained;
}

/// The input "rng" that promotion made, or a new one.
ValueId rng_input(Builder& b) {
  const TensorType type{DType::kI64, {2}};
  const ValueId there = find_value(b.graph(), "rng");
  if (!there.valid()) return b.input("rng", type);
  const Value& value = b.graph().values[there];
  if (value.kind != ValueKind::kInput || value.type != type)
    throw UserError("the name 'rng' is reserved for the input i64[2] of seed and step; value 'rng' is {}",
                    to_string(value.type));
  return there;
}

class Updates {
 public:
  Updates(Builder& builder, const TrainingOptions& options, ValueId lr, ValueId rng)
      : b_(builder), options_(options), lr_(lr), rng_(rng) {}

  void append(ValueId w, ValueId dw) {
    switch (options_.optimizer) {
      case Optimizer::kSgd:
        return emit("SgdUpdate", w, {w, dw, lr_}, {}, {""});
      case Optimizer::kMomentum:
      case Optimizer::kNesterov: {
        const std::int64_t nesterov = options_.optimizer == Optimizer::kNesterov ? 1 : 0;
        return emit("MomentumUpdate", w, {w, dw, moment(w, ".momentum"), lr_},
                    {{"momentum", options_.momentum}, {"nesterov", nesterov}}, {"", ".momentum"});
      }
      case Optimizer::kAdam:
      case Optimizer::kAdamW: {
        const std::int64_t decoupled = options_.optimizer == Optimizer::kAdamW ? 1 : 0;
        const ValueId m = moment(w, ".adam_m"), v = moment(w, ".adam_v");
        return emit("AdamUpdate", w, {w, dw, m, v, lr_, rng_},
                    {{"beta1", options_.beta1},
                     {"beta2", options_.beta2},
                     {"epsilon", options_.epsilon},
                     {"decoupled", decoupled}},
                    {"", ".adam_m", ".adam_v"});
      }
    }
  }

 private:
  ValueId moment(ValueId w, const std::string& suffix) {
    const Value value = b_.graph().values[w];
    return b_.state(value.name + suffix, graph::zeros(value.type));
  }

  void emit(const std::string& op, ValueId w, std::vector<ValueId> inputs, Attrs attrs,
            const std::vector<std::string>& states) {
    const std::string name = b_.graph().values[w].name;
    std::vector<std::string> outputs;
    for (const std::string& state : states) outputs.push_back(name + state + ".next");
    attrs["weight_decay"] = options_.weight_decay;
    b_.add({.op = op,
            .inputs = std::move(inputs),
            .attrs = std::move(attrs),
            .name = name + ".update",
            .wanted = std::vector<bool>(states.size(), true),
            .output_names = std::move(outputs),
            .role = Role::kUpdate});
  }

  Builder& b_;
  const TrainingOptions& options_;
  ValueId lr_, rng_;
};

std::vector<ValueId> own_inputs(const Graph& graph) {
  std::vector<ValueId> inputs = values_of_kind(graph, ValueKind::kInput);
  std::erase_if(inputs, [&](ValueId v) { return graph.values[v].name == "rng"; });
  return inputs;
}

/// An input of the training step; the model must not use its name.
ValueId step_input(Builder& b, const std::string& name, TensorType type) {
  if (find_value(b.graph(), name).valid())
    throw UserError("the name '{}' is reserved for an input of the training step; rename the model's value", name);
  return b.input(name, std::move(type));
}

ValueId add_named(Builder& b, const std::string& op, std::vector<ValueId> inputs, const std::string& output) {
  return b.add({.op = op,
                .inputs = std::move(inputs),
                .attrs = {},
                .name = "",
                .wanted = {true},
                .output_names = {output},
                .role = Role::kForward})[0];
}

}  // namespace

Training make_training(const Graph& forward, const graph::OpSet& ops, const TrainingOptions& options) {
  Builder b(ops, forward);
  Training t;
  t.inputs = own_inputs(forward);
  t.output = output_to_train(forward, options.output);
  const std::vector<ValueId> trained = trained_parameters(forward, options.frozen);
  t.rng = rng_input(b);
  t.lr = step_input(b, "lr", {DType::kF32, {}});
  std::vector<ValueId> outputs;
  if (options.loss == Loss::kSoftmaxCrossEntropy) {
    t.output = as_matrix(b, before_softmax(b.graph(), t.output));
    t.labels = step_input(b, "labels", {DType::kI64, {b.graph().values[t.output].type.shape[0]}});
    t.loss = add_named(b, "SoftmaxCrossEntropy", {t.output, t.labels}, "loss");
    t.correct = add_named(b, "CountCorrect", {t.output, t.labels}, "correct");
    outputs = {t.loss, t.correct};
  } else {
    t.labels = step_input(b, "labels", b.graph().values[t.output].type);
    t.loss = add_named(b, "MeanSquaredError", {t.output, t.labels}, "loss");
    outputs = {t.loss};
  }
  Updates updates(b, options, t.lr, t.rng);
  run_backward(b, {{t.loss, {}}}, trained, [&](std::size_t w, ValueId gradient) {
    if (gradient.valid()) updates.append(trained[w], gradient);
  });
  t.graph = b.take(std::move(outputs));
  return t;
}

}  // namespace neaptide::autodiff
