#include "neaptide/graph/builder.hpp"

#include <algorithm>
#include <cctype>

#include "neaptide/base/errors.hpp"
#include "neaptide/graph/verify.hpp"

namespace neaptide::graph {
namespace {

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

void check_arity(const NodeView& node, const OpDef& op) {
  const auto check = [&](std::size_t n, OpDef::Range range, const char* what) {
    const auto count = static_cast<int>(n);
    if (count < range.least) node.fail(fmt::format("has {} {}; it needs at least {}", count, what, range.least));
    if (range.most >= 0 && count > range.most)
      node.fail(fmt::format("has {} {}; at most {} are legal", count, what, range.most));
  };
  check(node.n_inputs(), op.n_inputs, "inputs");
  check(node.n_outputs(), op.n_outputs, "outputs");
}

}  // namespace

Builder::Builder(const OpSet& ops, Graph start) : ops_(&ops), graph_(std::move(start)) {
  for (const Value& v : graph_.values) used_.emplace(v.name, 0);
  for (const Node& n : graph_.nodes) used_.emplace(n.name, 0);
}

std::string Builder::unique(const std::string& name) {
  const auto [found, fresh] = used_.emplace(name, 0);
  if (fresh) return name;
  for (;;) {
    std::string candidate = fmt::format("{}_{}", name, ++found->second);
    if (used_.emplace(candidate, 0).second) return candidate;
  }
}

ValueId Builder::input(const std::string& name, TensorType type) {
  return graph_.values.push_back(
      {.name = unique(name), .type = std::move(type), .format = {}, .kind = ValueKind::kInput, .producer = {}});
}

ValueId Builder::initialised(const std::string& name, ValueKind kind, Tensor data) {
  const ValueId id =
      graph_.values.push_back({.name = unique(name), .type = data.type, .format = {}, .kind = kind, .producer = {}});
  graph_.data.emplace(id, std::move(data));
  return id;
}

std::vector<ValueId> Builder::add(const NodeSpec& spec) {
  const OpDef& op = ops_->at(spec.op);
  Node node{.name = spec.name.empty() ? lower_case(spec.op) : spec.name,
            .op = spec.op,
            .inputs = spec.inputs,
            .outputs = std::vector<ValueId>(spec.wanted.size()),
            .attrs = spec.attrs,
            .role = spec.role};
  check_arity(NodeView(graph_, node), op);
  const std::vector<TensorType> types = op.infer(NodeView(graph_, node));
  if (types.size() < spec.wanted.size())
    NodeView(graph_, node)
        .fail(fmt::format("has {} outputs; only {} are legal here", spec.wanted.size(), types.size()));
  node.name = unique(node.name);
  const NodeId id(graph_.nodes.size());
  for (std::size_t k = 0; k < spec.wanted.size(); ++k) {
    if (!spec.wanted[k]) continue;
    std::string name = k == 0 ? node.name + ".out" : fmt::format("{}.{}", node.name, k);
    if (k < spec.output_names.size() && !spec.output_names[k].empty()) name = spec.output_names[k];
    node.outputs[k] = graph_.values.push_back(
        {.name = unique(name), .type = types[k], .format = {}, .kind = ValueKind::kTemp, .producer = id});
  }
  graph_.nodes.push_back(node);
  return node.outputs;
}

ValueId Builder::add(const std::string& op, const std::vector<ValueId>& inputs, Attrs attrs, const std::string& name) {
  return add(NodeSpec{.op = op, .inputs = inputs, .attrs = std::move(attrs), .name = name})[0];
}

ValueId Builder::want_output(NodeId node, std::size_t k, const std::string& suffix) {
  const Node& n = graph_.nodes[node];
  if (k < n.outputs.size() && n.outputs[k].valid()) return n.outputs[k];
  const std::vector<TensorType> types = ops_->at(n.op).infer(NodeView(graph_, n));
  ensure(k < types.size(), "an operator's gradient asks for an output that its type rule gives");
  const ValueId id = graph_.values.push_back({.name = unique(n.name + "." + suffix),
                                              .type = types[k],
                                              .format = {},
                                              .kind = ValueKind::kTemp,
                                              .producer = node});
  std::vector<ValueId>& outputs = graph_.nodes[node].outputs;
  if (outputs.size() <= k) outputs.resize(k + 1);
  outputs[k] = id;
  return id;
}

Graph Builder::take(std::vector<ValueId> outputs) {
  graph_.outputs = std::move(outputs);
  const std::vector<std::string> wrong = verify(graph_, *ops_);
  if (!wrong.empty()) throw InternalError("the graph built is not sound: {}", wrong.front());
  return std::move(graph_);
}

GradientContext::GradientContext(Builder& builder, NodeId node, std::vector<ValueId> output_gradients,
                                 std::vector<bool> wanted)
    : builder_(&builder),
      node_(node),
      output_gradients_(std::move(output_gradients)),
      results_(wanted.size()),
      wanted_(std::move(wanted)) {}

ValueId GradientContext::input(std::size_t i) const {
  const Node& n = builder_->graph().nodes[node_];
  return i < n.inputs.size() ? n.inputs[i] : ValueId();
}

ValueId GradientContext::output(std::size_t i) const {
  const Node& n = builder_->graph().nodes[node_];
  return i < n.outputs.size() ? n.outputs[i] : ValueId();
}

ValueId GradientContext::gradient(std::size_t output) const {
  return output < output_gradients_.size() ? output_gradients_[output] : ValueId();
}

bool GradientContext::wants(std::size_t input) const { return input < wanted_.size() && wanted_[input]; }

void GradientContext::set(std::size_t input, ValueId gradient) {
  ensure(input < results_.size(), "a gradient is set for an input that the node has");
  results_[input] = gradient;
}

ValueId GradientContext::result(std::size_t input) const { return results_[input]; }

std::vector<ValueId> GradientContext::emit(const std::string& op, const std::vector<ValueId>& inputs, Attrs attrs,
                                           const std::string& suffix, std::vector<bool> wanted) {
  const std::string name = builder_->graph().nodes[node_].name + "." + suffix;
  return builder_->add({.op = op,
                        .inputs = inputs,
                        .attrs = std::move(attrs),
                        .name = name,
                        .wanted = std::move(wanted),
                        .output_names = {},
                        .role = Role::kBackward});
}

}  // namespace neaptide::graph
