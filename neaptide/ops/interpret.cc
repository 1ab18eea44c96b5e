#include "neaptide/ops/interpret.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "neaptide/base/errors.hpp"

namespace neaptide::ops {
namespace {

using graph::Graph;
using graph::Implementation;
using graph::Node;
using graph::NodeId;
using graph::NodeView;
using graph::OpDef;
using graph::OpSet;
using graph::Tensor;
using graph::TensorType;
using graph::Value;
using graph::ValueId;
using graph::ValueKind;

constexpr std::byte kPoison{0xFF};  // as f32 and f64 a NaN

using Storage = std::shared_ptr<std::vector<std::byte>>;

Storage poisoned(Bytes bytes) {
  return std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(bytes), kPoison);
}

std::size_t at(int position) { return static_cast<std::size_t>(position); }

/// Fresh storage for every written output; where an output replaces an input, both point to one copy of the input.
class Frame {
 public:
  Frame(const NodeView& node, const OpDef& op, const Implementation& chosen, const std::vector<Tensor>& inputs)
      : storage_(node.n_outputs()), in_(node.n_inputs(), nullptr), out_(node.n_outputs(), nullptr) {
    for (const int i : chosen.spec.reads) in_[at(i)] = inputs[at(i)].data->data();
    for (const int k : chosen.spec.writes) {
      storage_[at(k)] = poisoned(node.output(at(k)).bytes());
      out_[at(k)] = storage_[at(k)]->data();
    }
    for (const auto& [i, k] : chosen.spec.in_place) replace(inputs, i, k);
    for (const auto& [k, i] : op.overwrites) {
      if (node.has_output(at(k))) replace(inputs, i, k);
    }
    workspace_ = poisoned(chosen.spec.workspace);
  }

  void run(const Implementation& chosen) {
    chosen.kernel({.inputs = in_, .outputs = out_, .workspace = workspace_->empty() ? nullptr : workspace_->data()});
    for (const auto& [k, size] : shrink_) storage_[k]->resize(size);
  }

  std::vector<Tensor> results(const NodeView& node) const {
    std::vector<Tensor> out(node.n_outputs());
    for (std::size_t k = 0; k < out.size(); ++k) {
      if (storage_[k]) out[k] = {node.output(k), storage_[k]};
    }
    return out;
  }

 private:
  void replace(const std::vector<Tensor>& inputs, int i, int k) {
    ensure(storage_[at(k)] != nullptr, "an implementation writes the outputs that replace an input");
    const std::vector<std::byte>& source = *inputs[at(i)].data;
    ensure(storage_[at(k)]->size() <= source.size(), "an in-place output is not larger than its input");
    const std::size_t result_size = storage_[at(k)]->size();
    *storage_[at(k)] = source;
    in_[at(i)] = out_[at(k)] = storage_[at(k)]->data();
    shrink_.emplace_back(at(k), result_size);
  }

  std::vector<Storage> storage_;
  std::vector<const void*> in_;
  std::vector<void*> out_;
  std::vector<std::pair<std::size_t, std::size_t>> shrink_;
  Storage workspace_;
};

/// Is every value that the implementation reads there?
bool runnable(const Implementation& implementation, const std::vector<Tensor>& inputs) {
  const std::vector<int>& reads = implementation.spec.reads;
  return std::all_of(reads.begin(), reads.end(), [&](int i) { return inputs[at(i)].data != nullptr; });
}

const Implementation& pick(const NodeView& node, const std::vector<Implementation>& list,
                           const std::vector<Tensor>& inputs, const Choose& choose) {
  const int wanted = choose ? choose(node, list) : -1;
  if (wanted >= static_cast<int>(list.size())) node.fail(fmt::format("has no implementation {}", wanted));
  if (wanted >= 0) {
    const Implementation& chosen = list[at(wanted)];
    if (!runnable(chosen, inputs))
      node.fail(fmt::format("implementation '{}' reads a value that was not written", chosen.spec.name));
    return chosen;
  }
  const auto found = std::find_if(list.begin(), list.end(), [&](const auto& i) { return runnable(i, inputs); });
  if (found == list.end()) node.fail("has no implementation whose inputs exist");
  return *found;
}

Graph in_plain_formats(Graph graph) {
  for (Value& v : graph.values) v.format = {};
  return graph;
}

Values initial_values(const Graph& graph, const Feeds& feeds) {
  Values values(graph.values.size());
  for (const auto& [id, tensor] : graph.data) values[id] = tensor;
  for (const auto& [id, tensor] : feeds) {
    const Value& v = graph.values[id];
    if (tensor.type != v.type)
      throw UserError("value '{}' is {} but is fed with {}", v.name, to_string(v.type), to_string(tensor.type));
    values[id] = tensor;
  }
  for (const ValueId id : values_of_kind(graph, ValueKind::kInput)) {
    if (!values[id].data) throw UserError("input '{}' is not fed", graph.values[id].name);
  }
  return values;
}

}  // namespace

std::vector<Tensor> run_node(const NodeView& node, const OpDef& op, const Implementation& implementation,
                             const std::vector<Tensor>& inputs) {
  Frame frame(node, op, implementation, inputs);
  frame.run(implementation);
  return frame.results(node);
}

Values interpret(const Graph& graph, const OpSet& ops, const Feeds& feeds, const Choose& choose) {
  if (std::any_of(graph.values.begin(), graph.values.end(), [](const Value& v) { return !v.format.plain(); }))
    return interpret(in_plain_formats(graph), ops, feeds, choose);
  Values values = initial_values(graph, feeds);
  for (const Node& node : graph.nodes) {
    const NodeView view(graph, node);
    const OpDef& op = ops.at(node.op);
    if (!op.renames.empty()) {
      for (const auto& [k, i] : op.renames)
        values[node.outputs[at(k)]] = {view.output(at(k)), values[node.inputs[at(i)]].data};
      continue;
    }
    std::vector<Tensor> inputs(node.inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (node.inputs[i].valid()) inputs[i] = values[node.inputs[i]];
    }
    const std::vector<Implementation> list = op.implementations(view);
    std::vector<Tensor> outputs = run_node(view, op, pick(view, list, inputs, choose), inputs);
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      if (outputs[k].data) values[node.outputs[k]] = std::move(outputs[k]);
    }
  }
  return values;
}

Feeds next_versions(const Graph& graph, const OpSet& ops, const Values& values) {
  std::map<ValueId, ValueId> origin;  // of each later version
  Feeds next;
  for (const Node& node : graph.nodes) {
    for (const auto& [k, i] : ops.at(node.op).overwrites) {
      if (at(k) >= node.outputs.size() || !node.outputs[at(k)].valid()) continue;
      const ValueId before = node.inputs[at(i)];
      const auto found = origin.find(before);
      const ValueId first = found == origin.end() ? before : found->second;
      origin[node.outputs[at(k)]] = first;
      next[first] = values[node.outputs[at(k)]];
    }
  }
  return next;
}

}  // namespace neaptide::ops
