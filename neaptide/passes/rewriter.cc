#include "neaptide/passes/rewriter.hpp"

#include "neaptide/base/errors.hpp"

namespace neaptide::passes {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Value;
using graph::ValueId;

Rewriter::Rewriter(const Graph& from) : from_(&from), map_(from.values.size()) {
  to_.name = from.name;
  to_.notes = from.notes;
  for (std::size_t v = 0; v < from.values.size(); ++v) {
    const Value& value = from.values[ValueId(v)];
    if (value.kind != graph::ValueKind::kTemp) map_[ValueId(v)] = to_.values.push_back(value);
  }
  for (const auto& [old, tensor] : from.data) to_.data.emplace(map_[old], tensor);
}

ValueId Rewriter::at(ValueId old) const {
  if (!old.valid()) return {};
  ensure(map_[old].valid(), "a value is rewritten before it is read");
  return map_[old];
}

Node Rewriter::prepare(const Node& node) {
  Node out = node;
  for (ValueId& v : out.inputs) v = at(v);
  for (ValueId& v : out.outputs) {
    if (!v.valid()) continue;
    Value value = from_->values[v];
    value.producer = {};
    v = map_[v] = to_.values.push_back(std::move(value));
  }
  return out;
}

NodeId Rewriter::append(Node node) {
  const NodeId id(to_.nodes.size());
  for (const ValueId v : node.outputs) {
    if (v.valid()) to_.values[v].producer = id;
  }
  to_.nodes.push_back(std::move(node));
  return id;
}

Graph Rewriter::take() {
  for (const ValueId v : from_->outputs) to_.outputs.push_back(at(v));
  return std::move(to_);
}

}  // namespace neaptide::passes
