#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "neaptide/base/errors.hpp"
#include "neaptide/passes/passes.hpp"
#include "neaptide/passes/rewriter.hpp"

namespace neaptide::passes {
namespace {

using graph::Format;
using graph::FormatChoice;
using graph::FormatRules;
using graph::Graph;
using graph::Node;
using graph::NodeView;
using graph::OpDef;
using graph::OpSet;
using graph::Value;
using graph::ValueId;
using graph::ValueKind;

class Assigning {
 public:
  Assigning(const Graph& from, const OpSet& ops, const FormatRules& rules)
      : from_(from), ops_(ops), rules_(rules), out_(from) {}

  Graph run() {
    assign_parameters();
    for (const Node& node : from_.nodes) add(node);
    for (const ValueId old : from_.outputs) {
      if (!is_version(old)) out_.set(old, in_format(out_.at(old), {}, graph::Role::kForward));
    }
    return out_.take();
  }

 private:
  /// A parameter lies as its first reader likes it; what is overwritten beside it (optimizer moments) lies alike.
  void assign_parameters() {
    const auto readers = graph::consumers(from_);
    for (const ValueId v : graph::values_of_kind(from_, ValueKind::kParameter)) {
      if (readers[v].empty()) continue;
      const Node& reader = from_.nodes[readers[v].front()];
      if (!ops_.at(reader.op).renames.empty()) continue;
      const auto at =
          static_cast<std::size_t>(std::find(reader.inputs.begin(), reader.inputs.end(), v) - reader.inputs.begin());
      format(v) = rules_.parameter_format(NodeView(from_, reader), at);
    }
    for (const Node& node : from_.nodes) assign_beside(node, ops_.at(node.op));
  }

  void assign_beside(const Node& node, const OpDef& op) {
    if (op.overwrites.empty()) return;
    const ValueId first = node.inputs[static_cast<std::size_t>(op.overwrites.front().second)];
    if (from_.values[first].kind != ValueKind::kParameter) return;
    for (const auto& [output, input] : op.overwrites) {
      const ValueId v = node.inputs[static_cast<std::size_t>(input)];
      if (v.valid() && from_.values[v].type == from_.values[first].type) format(v) = format(first);
    }
  }

  Format& format(ValueId old) { return out_.graph().values[out_.at(old)].format; }

  void add(const Node& old) {
    const OpDef& op = ops_.at(old.op);
    Node node = out_.prepare(old);
    const FormatChoice choice = op.renames.empty() ? rules_.choose(NodeView(out_.graph(), node)) : plain(node);
    ensure(choice.inputs.size() == node.inputs.size() && choice.outputs.size() == node.outputs.size(),
           "format rules answer for every input and output");
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i].valid()) node.inputs[i] = in_format(node.inputs[i], choice.inputs[i], node.role);
    }
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      if (node.outputs[k].valid()) out_.graph().values[node.outputs[k]].format = choice.outputs[k];
    }
    check_overwrites(node, op);
    out_.append(std::move(node));
  }

  static FormatChoice plain(const Node& node) {
    return {std::vector<Format>(node.inputs.size()), std::vector<Format>(node.outputs.size())};
  }

  /// The next version lies where the last one lay.
  void check_overwrites(const Node& node, const OpDef& op) const {
    for (const auto& [output, input] : op.overwrites) {
      const auto o = static_cast<std::size_t>(output), i = static_cast<std::size_t>(input);
      if (o >= node.outputs.size() || !node.outputs[o].valid()) continue;
      const Value& before = value(node.inputs[i]);
      const bool reordered = before.kind == ValueKind::kTemp && reorders_.contains(node.inputs[i]);
      if (reordered || before.format != value(node.outputs[o]).format)
        throw InternalError("node '{}' ({}) overwrites '{}' but wants it in another format", node.name, node.op,
                            before.name);
    }
  }

  const Value& value(ValueId v) const { return out_.graph().values[v]; }

  /// The value in `wanted`: itself, or what a Reorder (made once per value and format) gives.
  ValueId in_format(ValueId v, const Format& wanted, graph::Role role) {
    if (value(v).format == wanted) return v;
    const auto [found, fresh] = reordered_.try_emplace({v, wanted.tag});
    if (fresh) found->second = add_reorder(v, wanted, role);
    return found->second;
  }

  ValueId add_reorder(ValueId v, const Format& wanted, graph::Role role) {
    const std::string name = unique(fmt::format("{}.{}", value(v).name, wanted.plain() ? "plain" : wanted.tag));
    const ValueId to = out_.graph().values.push_back(
        {.name = name, .type = value(v).type, .format = wanted, .kind = ValueKind::kTemp, .producer = {}});
    reorders_.insert(to);
    out_.append({.name = name, .op = "Reorder", .inputs = {v}, .outputs = {to}, .attrs = {}, .role = role});
    return to;
  }

  std::string unique(const std::string& name) const {
    std::string candidate = name;
    const auto taken = [&] {
      return graph::find_value(from_, candidate).valid() || graph::find_node(from_, candidate).valid();
    };
    for (int k = 1; taken(); ++k) candidate = fmt::format("{}_{}", name, k);
    return candidate;
  }

  /// The next version of a parameter or of state: it stays in its home as it is, graph output or not.
  bool is_version(ValueId old) const {
    const Value& v = from_.values[old];
    if (v.kind != ValueKind::kTemp) return true;
    const Node& node = from_.nodes[v.producer];
    const auto& overwrites = ops_.at(node.op).overwrites;
    return std::any_of(overwrites.begin(), overwrites.end(),
                       [&](const auto& pair) { return node.outputs[static_cast<std::size_t>(pair.first)] == old; });
  }

  const Graph& from_;
  const OpSet& ops_;
  const FormatRules& rules_;
  Rewriter out_;
  std::map<std::pair<ValueId, std::string>, ValueId> reordered_;
  std::set<ValueId> reorders_;
};

}  // namespace

Graph assign_formats(const Graph& graph, const OpSet& ops, const FormatRules& rules) {
  return Assigning(graph, ops, rules).run();
}

}  // namespace neaptide::passes
