#include "neaptide/base/errors.hpp"
#include "neaptide/passes/passes.hpp"

namespace neaptide::passes {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::OpDef;
using graph::OpSet;
using graph::Value;
using graph::ValueId;
using graph::ValueKind;

struct Live {
  IdVector<struct graph::NodeTag, char> nodes;
  IdVector<struct graph::ValueTag, char> values;  // read by a live node, or a graph output
};

Live live_of(const Graph& graph, const OpSet& ops) {
  Live live{IdVector<struct graph::NodeTag, char>(graph.nodes.size(), 0),
            IdVector<struct graph::ValueTag, char>(graph.values.size(), 0)};
  for (const ValueId v : graph.outputs) live.values[v] = 1;
  for (std::size_t n = graph.nodes.size(); n-- > 0;) {
    const Node& node = graph.nodes[NodeId(n)];
    bool needed = ops.at(node.op).once;
    for (const ValueId v : node.outputs) needed = needed || (v.valid() && live.values[v]);
    if (!needed) continue;
    live.nodes[NodeId(n)] = 1;
    for (const ValueId v : node.inputs) {
      if (v.valid()) live.values[v] = 1;
    }
  }
  return live;
}

/// Outputs of a live node that stay: what it must have, and optional ones that something reads.
std::vector<ValueId> kept_outputs(const Node& node, const OpDef& op, const Live& live) {
  std::vector<ValueId> outputs = node.outputs;
  for (auto k = static_cast<std::size_t>(op.n_outputs.least); k < outputs.size(); ++k) {
    if (outputs[k].valid() && !live.values[outputs[k]]) outputs[k] = ValueId();
  }
  while (outputs.size() > static_cast<std::size_t>(op.n_outputs.least) && !outputs.back().valid()) outputs.pop_back();
  return outputs;
}

}  // namespace

Graph remove_dead(const Graph& graph, const OpSet& ops) {
  const Live live = live_of(graph, ops);
  IdVector<struct graph::ValueTag, char> kept(graph.values.size(), 0);
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    const ValueKind kind = graph.values[ValueId(v)].kind;
    kept[ValueId(v)] = kind == ValueKind::kConstant ? live.values[ValueId(v)] : kind != ValueKind::kTemp;
  }
  Graph result{.name = graph.name, .values = {}, .nodes = {}, .outputs = {}, .data = {}, .notes = graph.notes};
  IdVector<struct graph::NodeTag, NodeId> new_node(graph.nodes.size());
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!live.nodes[NodeId(n)]) continue;
    Node node = graph.nodes[NodeId(n)];
    node.outputs = kept_outputs(node, ops.at(node.op), live);
    for (const ValueId v : node.outputs) {
      if (v.valid()) kept[v] = 1;
    }
    new_node[NodeId(n)] = result.nodes.push_back(std::move(node));
  }
  IdVector<struct graph::ValueTag, ValueId> new_value(graph.values.size());
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    if (!kept[ValueId(v)]) continue;
    Value value = graph.values[ValueId(v)];
    if (value.producer.valid()) value.producer = new_node[value.producer];
    new_value[ValueId(v)] = result.values.push_back(std::move(value));
  }
  const auto rename = [&](std::vector<ValueId>& ids) {
    for (ValueId& v : ids) v = v.valid() ? new_value[v] : v;
  };
  for (Node& node : result.nodes) {
    rename(node.inputs);
    rename(node.outputs);
  }
  result.outputs = graph.outputs;
  rename(result.outputs);
  for (const auto& [v, tensor] : graph.data) {
    if (new_value[v].valid()) result.data.emplace(new_value[v], tensor);
  }
  return result;
}

}  // namespace neaptide::passes
