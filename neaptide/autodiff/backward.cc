#include "neaptide/autodiff/backward.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "neaptide/autodiff/autodiff.hpp"
#include "neaptide/base/errors.hpp"

namespace neaptide::autodiff {
namespace {

using graph::Builder;
using graph::DType;
using graph::GradientContext;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::NodeView;
using graph::OpDef;
using graph::Role;
using graph::ValueId;

bool differentiable(const graph::Value& value) {
  return value.type.dtype == DType::kF32 || value.type.dtype == DType::kF64;
}

class Backward {
 public:
  Backward(Builder& builder, const std::vector<Seed>& seeds, const std::vector<ValueId>& wrt)
      : builder_(builder), n_nodes_(builder.graph().nodes.size()), wrt_(wrt) {
    const std::size_t n_values = builder.graph().values.size();
    gradients_.resize(n_values);
    seeded_.resize(n_values, 0);
    mark_dependent();
    mark_needed(seeds);
    for (const Seed& seed : seeds) {
      seeded_[seed.output] = 1;
      add_gradient(seed.output, seed.gradient);
    }
  }

  void run(const OnComplete& on_complete) {
    report_without_consumer(on_complete);
    for (std::size_t n = n_nodes_; n-- > 0;) {
      const NodeId id(n);
      if (on_path_[id]) differentiate(id);
      for (std::size_t w = 0; w < wrt_.size(); ++w) {
        if (completed_by_[w] == id) on_complete(w, gradient_of(wrt_[w]));
      }
    }
  }

 private:
  const Graph& graph() const { return builder_.graph(); }

  /// dependent_[v]: v is in wrt, or computed from a member of it by floating-point values.
  void mark_dependent() {
    dependent_.resize(graph().values.size(), 0);
    for (const ValueId v : wrt_) dependent_[v] = 1;
    for (const Node& node : graph().nodes) {
      const bool any =
          std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return v.valid() && dependent_[v]; });
      for (const ValueId v : node.outputs) {
        if (any && v.valid() && differentiable(graph().values[v])) dependent_[v] = 1;
      }
    }
  }

  /// on_path_[n]: a seed needs an output of node n, and an input of n depends on wrt.
  void mark_needed(const std::vector<Seed>& seeds) {
    on_path_.resize(n_nodes_, 0);
    completed_by_.resize(wrt_.size());
    IdVector<struct graph::ValueTag, char> needed(graph().values.size(), 0);
    for (const Seed& seed : seeds) needed[seed.output] = dependent_[seed.output];
    for (std::size_t n = n_nodes_; n-- > 0;) {
      const Node& node = graph().nodes[NodeId(n)];
      const bool any =
          std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId v) { return v.valid() && needed[v]; });
      if (!any) continue;
      for (const ValueId v : node.inputs) {
        if (!v.valid() || !dependent_[v]) continue;
        on_path_[NodeId(n)] = 1;
        needed[v] = 1;
        for (std::size_t w = 0; w < wrt_.size(); ++w) {
          if (wrt_[w] == v) completed_by_[w] = NodeId(n);
        }
      }
    }
  }

  /// Members of wrt that no node on the path reads: their gradient is their seed, or nothing.
  void report_without_consumer(const OnComplete& on_complete) {
    for (std::size_t w = 0; w < wrt_.size(); ++w) {
      if (!completed_by_[w].valid()) on_complete(w, gradient_of(wrt_[w]));
    }
  }

  ValueId gradient_of(ValueId v) const { return gradients_[v]; }

  void add_gradient(ValueId v, ValueId gradient) {
    if (!gradient.valid()) return;
    ValueId& sum = gradients_[v];
    if (!sum.valid()) {
      sum = gradient;
      return;
    }
    const std::string name = graph().values[v].name + ".grad_sum";
    sum = builder_.add({.op = "Add",
                        .inputs = {sum, gradient},
                        .attrs = {},
                        .name = name,
                        .wanted = {true},
                        .output_names = {},
                        .role = Role::kBackward})[0];
  }

  void differentiate(NodeId id) {
    const std::vector<ValueId> inputs = graph().nodes[id].inputs;
    const std::vector<ValueId> outputs = graph().nodes[id].outputs;
    std::vector<ValueId> output_gradients(outputs.size());
    bool any = false;
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      if (!outputs[k].valid()) continue;
      output_gradients[k] = gradient_of(outputs[k]);
      any = any || output_gradients[k].valid() || seeded_[outputs[k]];
    }
    if (!any) return;
    std::vector<bool> wanted(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) wanted[i] = inputs[i].valid() && dependent_[inputs[i]];
    const OpDef& op = builder_.ops().at(graph().nodes[id].op);
    if (op.gradient == nullptr)
      NodeView(graph(), graph().nodes[id]).fail("has no gradient, and stands between the loss and a trained parameter");
    GradientContext context(builder_, id, std::move(output_gradients), wanted);
    op.gradient(context);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const ValueId gradient = context.result(i);
      if (!wanted[i] || !gradient.valid()) continue;
      if (graph().values[gradient].type != graph().values[inputs[i]].type)
        throw InternalError("the gradient of input {} of node '{}' is {}; the input is {}", i, graph().nodes[id].name,
                            to_string(graph().values[gradient].type), to_string(graph().values[inputs[i]].type));
      add_gradient(inputs[i], gradient);
    }
  }

  Builder& builder_;
  std::size_t n_nodes_;
  const std::vector<ValueId>& wrt_;
  IdVector<struct graph::ValueTag, ValueId> gradients_;  // of the values that existed at the start
  IdVector<struct graph::ValueTag, char> seeded_, dependent_;
  IdVector<struct graph::NodeTag, char> on_path_;
  std::vector<NodeId> completed_by_;  // the node whose gradient is the last to add to wrt[i]
};

std::vector<ValueId> collect(Builder& builder, const std::vector<Seed>& seeds, const std::vector<ValueId>& wrt) {
  std::vector<ValueId> gradients(wrt.size());
  run_backward(builder, seeds, wrt, [&](std::size_t w, ValueId gradient) { gradients[w] = gradient; });
  return gradients;
}

}  // namespace

void run_backward(Builder& builder, const std::vector<Seed>& seeds, const std::vector<ValueId>& wrt,
                  const OnComplete& on_complete) {
  Backward(builder, seeds, wrt).run(on_complete);
}

std::vector<ValueId> append_backward(Builder& builder, const std::vector<ValueId>& outputs,
                                     const std::vector<ValueId>& output_gradients, const std::vector<ValueId>& wrt) {
  ensure(outputs.size() == output_gradients.size(), "every output comes with a gradient");
  std::vector<Seed> seeds;
  for (std::size_t i = 0; i < outputs.size(); ++i) seeds.push_back({outputs[i], output_gradients[i]});
  return collect(builder, seeds, wrt);
}

std::vector<ValueId> append_backward(Builder& builder, ValueId loss, const std::vector<ValueId>& wrt) {
  const graph::Value& value = builder.graph().values[loss];
  if (value.type.elements() != 1)
    throw UserError("'{}' is {}; a loss must have one element", value.name, to_string(value.type));
  constexpr std::array<std::string_view, 2> kLosses = {"MeanSquaredError", "SoftmaxCrossEntropy"};
  const bool implied = value.producer.valid() && std::find(kLosses.begin(), kLosses.end(),
                                                           builder.graph().nodes[value.producer].op) != kLosses.end();
  if (implied) return collect(builder, {{loss, {}}}, wrt);
  const graph::TensorType type = value.type;
  const ValueId one =
      builder.constant(value.name + ".grad", type.dtype == DType::kF64
                                                 ? graph::tensor_of(DType::kF64, type.shape, std::vector<double>{1})
                                                 : graph::tensor_of(DType::kF32, type.shape, std::vector<float>{1}));
  return collect(builder, {{loss, one}}, wrt);
}

}  // namespace neaptide::autodiff
