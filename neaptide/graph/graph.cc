#include "neaptide/graph/graph.hpp"

#include <algorithm>

namespace neaptide::graph {
namespace {

/// Position of the item named `name`, as an id; invalid when absent.
template <class IdType, class Items>
IdType find_by_name(const Items& items, const std::string& name) {
  const auto found = std::find_if(items.begin(), items.end(), [&](const auto& item) { return item.name == name; });
  return found == items.end() ? IdType() : IdType(static_cast<std::size_t>(found - items.begin()));
}

}  // namespace

std::vector<ValueId> values_of_kind(const Graph& graph, ValueKind kind) {
  std::vector<ValueId> out;
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    if (graph.values[ValueId(v)].kind == kind) out.emplace_back(v);
  }
  return out;
}

ValueId find_value(const Graph& graph, const std::string& name) { return find_by_name<ValueId>(graph.values, name); }

NodeId find_node(const Graph& graph, const std::string& name) { return find_by_name<NodeId>(graph.nodes, name); }

IdVector<struct ValueTag, std::vector<NodeId>> consumers(const Graph& graph) {
  IdVector<struct ValueTag, std::vector<NodeId>> out(graph.values.size());
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const ValueId v : graph.nodes[NodeId(n)].inputs) {
      if (!v.valid()) continue;
      std::vector<NodeId>& users = out[v];
      if (users.empty() || users.back() != NodeId(n)) users.emplace_back(n);
    }
  }
  return out;
}

}  // namespace neaptide::graph
