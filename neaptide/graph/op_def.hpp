// OpDef: everything an operator says about itself - type rule, gradient, work, implementations with reference kernels.
//
// A node lists every value that it *could* read or write; an implementation uses a subset (DESIGN.md section 4). Relu
// may write {y, sign}; its gradient may read {dy, x, y, sign} and has implementations that read {dy,x}, {dy,y} or
// {dy,sign}. An output that no chosen implementation writes never exists.
//
//   OpDef{.name = "Tanh", .n_inputs = {1, 1}, .n_outputs = {1, 1}, .infer = infer_same,
//         .gradient = tanh_gradient, .work = elementwise_work, .implementations = tanh_impls};
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "neaptide/graph/graph.hpp"

namespace neaptide::graph {

/// A node seen with its types and attributes.
class NodeView {
 public:
  NodeView(const Graph& graph, const Node& node) : graph_(&graph), node_(&node) {}

  const Graph& graph() const { return *graph_; }
  const Node& node() const { return *node_; }
  const std::string& name() const { return node_->name; }

  std::size_t n_inputs() const { return node_->inputs.size(); }
  std::size_t n_outputs() const { return node_->outputs.size(); }
  bool has_input(std::size_t i) const { return i < n_inputs() && node_->inputs[i].valid(); }
  bool has_output(std::size_t i) const { return i < n_outputs() && node_->outputs[i].valid(); }
  const Value& input_value(std::size_t i) const;  // UserError when absent
  const Value& output_value(std::size_t i) const;
  const TensorType& input(std::size_t i) const { return input_value(i).type; }
  const TensorType& output(std::size_t i) const { return output_value(i).type; }
  /// Contents of an input that is a constant or initialised value; none otherwise.
  std::optional<Tensor> constant_input(std::size_t i) const;

  bool has_attr(const char* key) const { return node_->attrs.contains(key); }
  std::int64_t int_or(const char* key, std::int64_t otherwise) const;  // UserError when the attribute has another type
  double float_or(const char* key, double otherwise) const;            // an integer attribute is accepted
  std::string string_or(const char* key, const std::string& otherwise) const;
  std::vector<std::int64_t> ints_or(const char* key, const std::vector<std::int64_t>& otherwise) const;

  /// Throws UserError("node 'NAME' (OP): <message>").
  [[noreturn]] void fail(const std::string& message) const;

 private:
  const Graph* graph_;
  const Node* node_;
};

/// How much a node computes, for the roofline (DESIGN.md section 10).
struct Work {
  double flops = 0;  // multiply and add count one each
  double bytes = 0;  // least traffic: every input and output once
  friend bool operator==(const Work&, const Work&) = default;
};

/// What an implementation reads and writes, as positions in the node's inputs and outputs.
struct ImplSpec {
  std::string name;
  std::vector<int> reads = {}, writes = {};
  std::vector<std::pair<int, int>> in_place = {};  // {input, output}
  Bytes workspace = 0;
  friend bool operator==(const ImplSpec&, const ImplSpec&) = default;
};

/// Pointers to the contents, parallel to the node's inputs and outputs; null where the implementation does not read or
/// write. In place, an output pointer equals its input pointer.
struct KernelArgs {
  std::span<const void* const> inputs;
  std::span<void* const> outputs;
  void* workspace = nullptr;
};

/// Owns all it needs (sizes, attributes): it must outlive the graph, allocate nothing when called, and give the same
/// bits for the same inputs.
using KernelFn = std::function<void(const KernelArgs&)>;

struct Implementation {
  ImplSpec spec;
  KernelFn kernel;  // plain loops; f32 and f64 (and integers where the operator allows them)
};

class GradientContext;

struct OpDef {
  std::string name;
  struct Range {
    int least = 1, most = 1;  // most -1: any number
  };
  Range n_inputs, n_outputs;

  bool once = false;                              // has an effect: executed exactly once in a step
  std::vector<std::pair<int, int>> renames = {};  // {output, input}: same bytes, other shape (Reshape); no kernel runs
  std::vector<std::pair<int, int>> overwrites = {};  // {output, input}: output is the next version of input (updates)

  /// Types of all outputs that the operator can have, in order, wanted or not. UserError (NodeView::fail) when inputs
  /// or attributes are not legal.
  std::vector<TensorType> (*infer)(const NodeView&) = nullptr;
  /// Emits the backward nodes. Null: no gradient flows through.
  void (*gradient)(GradientContext&) = nullptr;
  Work (*work)(const NodeView&) = nullptr;
  /// For the outputs and inputs that the node has; the first is the default, plain one. Empty for renames.
  std::vector<Implementation> (*implementations)(const NodeView&) = nullptr;
};

/// The operators known, sorted by name. ops::all() is the full set.
class OpSet {
 public:
  explicit OpSet(std::vector<OpDef> ops);
  const OpDef* find(const std::string& name) const;  // null when unknown
  const OpDef& at(const std::string& name) const;    // UserError with "did you mean"
  const std::vector<OpDef>& all() const { return ops_; }

 private:
  std::vector<OpDef> ops_;
};

}  // namespace neaptide::graph
