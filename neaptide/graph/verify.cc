#include "neaptide/graph/verify.hpp"

#include <fmt/format.h>

#include <set>

#include "neaptide/base/errors.hpp"

namespace neaptide::graph {
namespace {

class Checker {
 public:
  Checker(const Graph& graph, const OpSet& ops)
      : graph_(graph), ops_(ops), available_(graph.values.size(), 0), overwriter_(graph.values.size()) {}

  std::vector<std::string> run() {
    for (std::size_t v = 0; v < graph_.values.size(); ++v) check_value(ValueId(v));
    check_names();
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) check_node(NodeId(n));
    for (const ValueId v : graph_.outputs) {
      if (!graph_.values.has(v))
        wrong("a graph output is not a value of the graph");
      else if (!available_[v])
        wrong(fmt::format("graph output '{}' is produced by no node", graph_.values[v].name));
    }
    return std::move(wrong_);
  }

 private:
  void wrong(std::string sentence) { wrong_.push_back(std::move(sentence)); }

  void check_value(ValueId id) {
    const Value& v = graph_.values[id];
    const bool temporary = v.kind == ValueKind::kTemp;
    available_[id] = !temporary;
    if (temporary != graph_.nodes.has(v.producer))
      wrong(fmt::format("value '{}' {} a producer", v.name, temporary ? "lacks" : "must not have"));
    const bool stored = !temporary && v.kind != ValueKind::kInput;
    const auto data = graph_.data.find(id);
    if (stored != (data != graph_.data.end()))
      wrong(fmt::format("value '{}' {} contents", v.name, stored ? "lacks" : "must not have"));
    else if (stored && data->second.type != v.type)
      wrong(fmt::format("value '{}' is {} but its contents are {}", v.name, to_string(v.type),
                        to_string(data->second.type)));
  }

  void check_names() {
    std::set<std::string> values, nodes;
    for (const Value& v : graph_.values) {
      if (!values.insert(v.name).second) wrong(fmt::format("value name '{}' is used twice", v.name));
    }
    for (const Node& n : graph_.nodes) {
      if (!nodes.insert(n.name).second) wrong(fmt::format("node name '{}' is used twice", n.name));
    }
  }

  void check_node(NodeId id) {
    const Node& n = graph_.nodes[id];
    const OpDef* op = ops_.find(n.op);
    if (op == nullptr) return wrong(fmt::format("node '{}': there is no operator '{}'", n.name, n.op));
    for (const ValueId v : n.inputs) {
      if (!v.valid()) continue;
      if (!graph_.values.has(v)) return wrong(fmt::format("node '{}' reads a value that does not exist", n.name));
      check_read(n, v);
    }
    for (std::size_t k = 0; k < n.outputs.size(); ++k) {
      const ValueId v = n.outputs[k];
      if (!v.valid()) continue;
      if (!graph_.values.has(v) || graph_.values[v].producer != id)
        return wrong(fmt::format("output {} of node '{}' does not name it as its producer", k, n.name));
      available_[v] = 1;
    }
    check_types(n, *op);
    for (const auto& [out, in] : op->overwrites) {
      const auto i = static_cast<std::size_t>(in);
      if (i < n.inputs.size() && n.inputs[i].valid()) overwriter_[n.inputs[i]] = id;
    }
  }

  void check_read(const Node& n, ValueId v) {
    if (!available_[v]) wrong(fmt::format("node '{}' reads '{}' before it is produced", n.name, graph_.values[v].name));
    if (overwriter_[v].valid())
      wrong(fmt::format("node '{}' reads '{}' after node '{}' has overwritten it", n.name, graph_.values[v].name,
                        graph_.nodes[overwriter_[v]].name));
  }

  void check_types(const Node& n, const OpDef& op) {
    const auto legal = [](std::size_t count, OpDef::Range r) {
      return static_cast<int>(count) >= r.least && (r.most < 0 || static_cast<int>(count) <= r.most);
    };
    if (!legal(n.inputs.size(), op.n_inputs) || !legal(n.outputs.size(), op.n_outputs))
      return wrong(
          fmt::format("node '{}' ({}) has {} inputs and {} outputs", n.name, n.op, n.inputs.size(), n.outputs.size()));
    try {
      const std::vector<TensorType> types = op.infer(NodeView(graph_, n));
      for (std::size_t k = 0; k < n.outputs.size(); ++k) {
        if (!n.outputs[k].valid()) continue;
        const Value& v = graph_.values[n.outputs[k]];
        if (k >= types.size() || types[k] != v.type)
          wrong(fmt::format("output '{}' of node '{}' is {}; the operator gives {}", v.name, n.name, to_string(v.type),
                            k < types.size() ? to_string(types[k]) : "nothing"));
      }
    } catch (const UserError& e) {
      wrong(e.what());
    }
  }

  const Graph& graph_;
  const OpSet& ops_;
  std::vector<std::string> wrong_;
  IdVector<struct ValueTag, char> available_;
  IdVector<struct ValueTag, NodeId> overwriter_;
};

}  // namespace

std::vector<std::string> verify(const Graph& graph, const OpSet& ops) { return Checker(graph, ops).run(); }

}  // namespace neaptide::graph
