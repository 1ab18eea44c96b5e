#include "neaptide/graph/op_def.hpp"

#include <algorithm>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/text.hpp"

namespace neaptide::graph {
namespace {

/// The attribute as a T, or null when absent; fails when it has another type.
template <class T>
const T* attribute(const NodeView& node, const char* key, const char* what) {
  const auto found = node.node().attrs.find(key);
  if (found == node.node().attrs.end()) return nullptr;
  const T* v = std::get_if<T>(&found->second);
  if (v == nullptr) node.fail(fmt::format("attribute '{}' is not {}", key, what));
  return v;
}

}  // namespace

void NodeView::fail(const std::string& message) const {
  throw UserError("node '{}' ({}): {}", node_->name, node_->op, message);
}

const Value& NodeView::input_value(std::size_t i) const {
  if (!has_input(i)) fail(fmt::format("input {} is missing", i));
  return graph_->values[node_->inputs[i]];
}

const Value& NodeView::output_value(std::size_t i) const {
  if (!has_output(i)) fail(fmt::format("output {} is missing", i));
  return graph_->values[node_->outputs[i]];
}

std::optional<Tensor> NodeView::constant_input(std::size_t i) const {
  if (!has_input(i)) return std::nullopt;
  const auto found = graph_->data.find(node_->inputs[i]);
  if (found == graph_->data.end()) return std::nullopt;
  return found->second;
}

std::int64_t NodeView::int_or(const char* key, std::int64_t otherwise) const {
  const auto* v = attribute<std::int64_t>(*this, key, "an integer");
  return v != nullptr ? *v : otherwise;
}

double NodeView::float_or(const char* key, double otherwise) const {
  const auto found = node_->attrs.find(key);
  if (found != node_->attrs.end()) {
    if (const auto* i = std::get_if<std::int64_t>(&found->second)) return static_cast<double>(*i);
  }
  const auto* v = attribute<double>(*this, key, "a number");
  return v != nullptr ? *v : otherwise;
}

std::string NodeView::string_or(const char* key, const std::string& otherwise) const {
  const auto* v = attribute<std::string>(*this, key, "a string");
  return v != nullptr ? *v : otherwise;
}

std::vector<std::int64_t> NodeView::ints_or(const char* key, const std::vector<std::int64_t>& otherwise) const {
  const auto* v = attribute<std::vector<std::int64_t>>(*this, key, "a list of integers");
  return v != nullptr ? *v : otherwise;
}

OpSet::OpSet(std::vector<OpDef> ops) : ops_(std::move(ops)) {
  std::sort(ops_.begin(), ops_.end(), [](const OpDef& a, const OpDef& b) { return a.name < b.name; });
  for (std::size_t i = 1; i < ops_.size(); ++i) {
    if (ops_[i - 1].name == ops_[i].name) throw InternalError("operator '{}' is listed twice", ops_[i].name);
  }
}

const OpDef* OpSet::find(const std::string& name) const {
  const auto found = std::lower_bound(ops_.begin(), ops_.end(), name,
                                      [](const OpDef& op, const std::string& n) { return op.name < n; });
  return found != ops_.end() && found->name == name ? &*found : nullptr;
}

const OpDef& OpSet::at(const std::string& name) const {
  if (const OpDef* op = find(name)) return *op;
  std::vector<std::string> names;
  for (const OpDef& op : ops_) names.push_back(op.name);
  throw UserError("there is no operator '{}'{}", name, did_you_mean(name, names));
}

}  // namespace neaptide::graph
