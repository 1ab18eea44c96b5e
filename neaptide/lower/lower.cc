#include "neaptide/lower/lower.hpp"

#include <algorithm>
#include <optional>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/text.hpp"

namespace neaptide::lower {
namespace {

using graph::NodeId;
using graph::ValueId;
using plan::BufferId;

void add_once(std::vector<BufferId>& list, BufferId buffer) {
  if (std::find(list.begin(), list.end(), buffer) == list.end()) list.push_back(buffer);
}

class Lowering {
 public:
  Lowering(const graph::Graph& graph, const graph::OpSet& ops, const cost::Machine& machine,
           const cost::CostTable& table, const LowerOptions& options)
      : graph_(graph), ops_(ops), machine_(machine), table_(table), options_(options) {}

  Lowered run() {
    out_.problem.name = graph_.name;
    add_machine();
    add_buffers();
    for (const ValueId v : graph_.outputs) out_.problem.buffers[out_.buffer_of_value[v]].keep = true;
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) add_op(NodeId(n));
    if (!unsupported_.empty())
      throw UserError("no device can run {} of the model's nodes: {}", unsupported_.size(), join(unsupported_, "; "));
    const std::vector<std::string> wrong = plan::check(out_.problem);
    if (!wrong.empty()) throw InternalError("lowering '{}' gives no sound problem: {}", graph_.name, wrong.front());
    return std::move(out_);
  }

 private:
  plan::DeviceId device_named(const std::string& name) const {
    for (std::size_t d = 0; d < out_.problem.devices.size(); ++d) {
      if (out_.problem.devices[plan::DeviceId(d)].name == name) return plan::DeviceId(d);
    }
    throw InternalError("the machine has no device '{}'", name);
  }

  void add_machine() {
    for (const cost::MachineDevice& d : machine_.devices)
      out_.problem.devices.push_back({.name = d.name, .budget = d.budget, .alignment = d.alignment});
    for (const cost::MachineLink& l : machine_.links)
      out_.problem.links.push_back({.from = device_named(l.from),
                                    .to = device_named(l.to),
                                    .latency = l.latency,
                                    .bytes_per_second = l.bytes_per_second});
  }

  /// One buffer per value, except values that rename or overwrite an input of their producer: those lie in its buffer.
  void add_buffers() {
    out_.buffer_of_value.resize(graph_.values.size());
    for (std::size_t i = 0; i < graph_.values.size(); ++i) {
      const graph::Value& v = graph_.values[ValueId(i)];
      if (v.kind == graph::ValueKind::kTemp) continue;
      const bool keep = v.kind == graph::ValueKind::kParameter || v.kind == graph::ValueKind::kState;
      add_buffer(ValueId(i), plan::DeviceId(std::size_t{0}), keep);
    }
    for (const graph::Node& node : graph_.nodes) {
      const graph::OpDef& op = ops_.at(node.op);
      for (const auto& shared : {op.renames, op.overwrites}) {
        for (const auto& [out, in] : shared) share(node, static_cast<std::size_t>(out), static_cast<std::size_t>(in));
      }
      for (const ValueId v : node.outputs) {
        if (v.valid() && !out_.buffer_of_value[v].valid()) add_buffer(v, std::nullopt, false);
      }
    }
  }

  void add_buffer(ValueId v, std::optional<plan::DeviceId> home, bool keep) {
    const graph::Value& value = graph_.values[v];
    out_.buffer_of_value[v] = out_.problem.buffers.push_back(
        {.name = value.name, .bytes = value.bytes(), .home = home, .keep = keep, .pageable = false});
    out_.value_of_buffer.push_back(v);
  }

  void share(const graph::Node& node, std::size_t out, std::size_t in) {
    if (out >= node.outputs.size() || !node.outputs[out].valid()) return;
    const ValueId from = node.inputs[in], to = node.outputs[out];
    if (graph_.values[from].bytes() != graph_.values[to].bytes())
      throw InternalError("node '{}': '{}' and '{}' share a buffer but differ in bytes", node.name,
                          graph_.values[from].name, graph_.values[to].name);
    out_.buffer_of_value[to] = out_.buffer_of_value[from];
  }

  void add_op(NodeId id) {
    const graph::Node& node = graph_.nodes[id];
    const graph::OpDef& def = ops_.at(node.op);
    if (!def.renames.empty()) return;
    plan::Op op{.name = node.name, .once = def.once, .impls = {}};
    std::vector<int> cost_of_impl;
    const cost::NodeCosts& costs = table_[id];
    for (std::size_t k = 0; k < costs.impls.size(); ++k) {
      if (options_.pinned && !op.impls.empty()) break;
      std::optional<plan::Impl> impl = implementation(node, costs.impls[k]);
      if (!impl) continue;
      op.impls.push_back(std::move(*impl));
      cost_of_impl.push_back(static_cast<int>(k));
    }
    if (op.impls.empty()) {
      std::string reasons;
      for (const auto& [device, reason] : costs.why_not) reasons += fmt::format(" ({}: {})", device, reason);
      unsupported_.push_back(fmt::format("'{}' ({}){}", node.name, node.op, reasons));
      return;
    }
    out_.problem.order.push_back(out_.problem.ops.push_back(std::move(op)));
    out_.node_of_op.push_back(id);
    out_.cost_of_impl.push_back(std::move(cost_of_impl));
  }

  /// None when the problem's rules forbid it here: in place over a homed buffer, or over a smaller one.
  std::optional<plan::Impl> implementation(const graph::Node& node, const cost::ImplCost& from) const {
    plan::Impl impl{.name = from.spec.name,
                    .device = device_named(from.device),
                    .seconds = from.seconds,
                    .joules = {},
                    .workspace = from.spec.workspace,
                    .reads = {},
                    .writes = {},
                    .in_place = {}};
    for (const int i : from.spec.reads)
      add_once(impl.reads, out_.buffer_of_value[node.inputs.at(static_cast<std::size_t>(i))]);
    for (const int o : from.spec.writes)
      add_once(impl.writes, out_.buffer_of_value[node.outputs.at(static_cast<std::size_t>(o))]);
    for (const auto& [i, o] : from.spec.in_place) {
      const BufferId in = out_.buffer_of_value[node.inputs.at(static_cast<std::size_t>(i))];
      const BufferId out = out_.buffer_of_value[node.outputs.at(static_cast<std::size_t>(o))];
      const plan::Buffer& source = out_.problem.buffers[in];
      if (in == out || source.home || out_.problem.buffers[out].bytes > source.bytes) return std::nullopt;
      impl.in_place.push_back({.in = in, .out = out});
    }
    return impl;
  }

  const graph::Graph& graph_;
  const graph::OpSet& ops_;
  const cost::Machine& machine_;
  const cost::CostTable& table_;
  const LowerOptions& options_;
  Lowered out_;
  std::vector<std::string> unsupported_;
};

}  // namespace

Lowered lower(const graph::Graph& graph, const graph::OpSet& ops, const cost::Machine& machine,
              const cost::CostTable& table, const LowerOptions& options) {
  ensure(table.size() == graph.nodes.size(), "the cost table has a row per node");
  ensure(!machine.devices.empty(), "a machine has a device");
  return Lowering(graph, ops, machine, table, options).run();
}

}  // namespace neaptide::lower
