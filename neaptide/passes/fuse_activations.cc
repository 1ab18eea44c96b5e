#include <algorithm>
#include <array>
#include <string_view>

#include "neaptide/passes/passes.hpp"
#include "neaptide/passes/rewriter.hpp"

namespace neaptide::passes {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::NodeView;
using graph::ValueId;

// Operators that take an attribute activation = "relu", sorted.
constexpr std::array<std::string_view, 3> kFusible = {"Add", "BatchNormTrain", "Conv"};

bool takes_activation(const Graph& graph, const Node& node) {
  if (std::find(kFusible.begin(), kFusible.end(), node.op) == kFusible.end()) return false;
  const NodeView view(graph, node);
  return view.string_or("activation", "").empty() && view.has_output(0) && !view.has_output(3) &&
         view.output(0).dtype != graph::DType::kI64 && view.output(0).dtype != graph::DType::kI32;
}

/// The Relu that alone reads the node's first output; invalid when there is none.
NodeId relu_behind(const Graph& graph, const Node& node, const std::vector<NodeId>& readers) {
  const ValueId y = node.outputs[0];
  if (readers.size() != 1 || std::find(graph.outputs.begin(), graph.outputs.end(), y) != graph.outputs.end()) return {};
  const Node& relu = graph.nodes[readers[0]];
  const bool plain_relu = relu.op == "Relu" && relu.inputs[0] == y && !NodeView(graph, relu).has_output(1);
  return plain_relu ? readers[0] : NodeId();
}

}  // namespace

Graph fuse_activations(const Graph& graph, const graph::OpSet& /*ops*/) {
  const auto readers = graph::consumers(graph);
  std::vector<bool> gone(graph.nodes.size(), false);
  Rewriter out(graph);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (gone[n]) continue;
    Node node = graph.nodes[NodeId(n)];
    if (takes_activation(graph, node)) {
      if (const NodeId relu = relu_behind(graph, node, readers[node.outputs[0]]); relu.valid()) {
        gone[relu.index()] = true;
        node.attrs["activation"] = std::string("relu");
        node.outputs[0] = graph.nodes[relu].outputs[0];
      }
    }
    out.copy(node);
  }
  return out.take();
}

}  // namespace neaptide::passes
