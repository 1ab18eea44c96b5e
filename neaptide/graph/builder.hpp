// Builds a Graph with types inferred at every step.
//
//   Builder b(ops::all());
//   ValueId x = b.input("x", {DType::kF32, {8, 784}});
//   ValueId w = b.parameter("w", weights);
//   ValueId y = b.add("Gemm", {x, w}, {{"transB", std::int64_t{1}}});
//   Graph g = b.take({y});
#pragma once

#include <map>
#include <string>
#include <vector>

#include "neaptide/graph/op_def.hpp"

namespace neaptide::graph {

class Builder {
 public:
  explicit Builder(const OpSet& ops, Graph start = {});

  ValueId input(const std::string& name, TensorType type);
  ValueId parameter(const std::string& name, Tensor data) {
    return initialised(name, ValueKind::kParameter, std::move(data));
  }
  ValueId state(const std::string& name, Tensor data) { return initialised(name, ValueKind::kState, std::move(data)); }
  ValueId constant(const std::string& name, Tensor data) {
    return initialised(name, ValueKind::kConstant, std::move(data));
  }
  ValueId initialised(const std::string& name, ValueKind kind, Tensor data);

  struct NodeSpec {
    std::string op;
    std::vector<ValueId> inputs;
    Attrs attrs = {};
    std::string name = "";                       // default: the operator's name, lower case
    std::vector<bool> wanted = {true};           // which outputs exist
    std::vector<std::string> output_names = {};  // default: "<node>.out", then "<node>.1", "<node>.2"
    Role role = Role::kForward;
  };
  /// Appends a node; names are made unique by a suffix. Returns its outputs. UserError when the operator refuses.
  std::vector<ValueId> add(const NodeSpec& spec);
  /// One output, forward. Returns it.
  ValueId add(const std::string& op, const std::vector<ValueId>& inputs, Attrs attrs = {},
              const std::string& name = "");

  /// The k-th output of an existing node, made when it does not exist yet ("<node>.<suffix>").
  ValueId want_output(NodeId node, std::size_t k, const std::string& suffix);

  const Graph& graph() const { return graph_; }
  Graph& graph() { return graph_; }
  const OpSet& ops() const { return *ops_; }
  std::string unique(const std::string& name);  // also reserves it

  /// The finished graph; checked by graph::verify (InternalError when it is not sound).
  Graph take(std::vector<ValueId> outputs);

 private:
  const OpSet* ops_;
  Graph graph_;
  std::map<std::string, int> used_;
};

/// What an operator's gradient sees. Made by autodiff.
class GradientContext {
 public:
  GradientContext(Builder& builder, NodeId node, std::vector<ValueId> output_gradients, std::vector<bool> wanted);

  NodeView view() const { return NodeView(builder_->graph(), builder_->graph().nodes[node_]); }
  ValueId input(std::size_t i) const;   // invalid when absent
  ValueId output(std::size_t i) const;  // invalid when absent
  /// An auxiliary output (mask, saved statistics), added to the forward node when it does not exist yet.
  ValueId auxiliary(std::size_t k, const std::string& suffix) { return builder_->want_output(node_, k, suffix); }
  ValueId gradient(std::size_t output = 0) const;  // gradient of an output; invalid: zero
  bool wants(std::size_t input) const;             // does input i need a gradient
  void set(std::size_t input, ValueId gradient);   // gradient of input i, same type as input i
  ValueId result(std::size_t input) const;

  /// Emits a backward node "<node>.<suffix>". Returns its outputs.
  std::vector<ValueId> emit(const std::string& op, const std::vector<ValueId>& inputs, Attrs attrs,
                            const std::string& suffix, std::vector<bool> wanted = {true});
  Builder& builder() { return *builder_; }

 private:
  Builder* builder_;
  NodeId node_;
  std::vector<ValueId> output_gradients_, results_;
  std::vector<bool> wanted_;
};

}  // namespace neaptide::graph
