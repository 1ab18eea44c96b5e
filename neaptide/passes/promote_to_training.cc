#include <set>

#include "neaptide/base/errors.hpp"
#include "neaptide/graph/builder.hpp"
#include "neaptide/graph/verify.hpp"
#include "neaptide/passes/passes.hpp"

namespace neaptide::passes {
namespace {

using graph::DType;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::NodeView;
using graph::TensorType;
using graph::ValueId;
using graph::ValueKind;

/// Keeps value ids; nodes are written anew, because running statistics stand right behind their node.
class Promotion {
 public:
  Promotion(const Graph& graph, const graph::OpSet& ops) : ops_(ops), names_(ops, graph), out_(graph) {
    out_.nodes = {};
  }

  Graph run(const Graph& graph) {
    for (const Node& n : graph.nodes) {
      if (n.op == "BatchNormalization")
        promote_batch_norm(n);
      else if (n.op == "Dropout" && NodeView(graph, n).float_or("ratio", 0.5) > 0)
        promote_dropout(n);
      else
        append(n);
    }
    if (n_norms_ > 0)
      out_.notes.push_back(fmt::format(
          "{} BatchNormalization nodes normalise by the batch and update their running statistics", n_norms_));
    if (n_dropouts_ > 0) out_.notes.push_back(fmt::format("{} Dropout nodes drop values", n_dropouts_));
    const std::vector<std::string> wrong = graph::verify(out_, ops_);
    if (!wrong.empty()) throw InternalError("the promoted graph is not sound: {}", wrong.front());
    return std::move(out_);
  }

 private:
  void append(Node n) {
    const NodeId id(out_.nodes.size());
    for (const ValueId v : n.outputs) {
      if (v.valid()) out_.values[v].producer = id;
    }
    out_.nodes.push_back(std::move(n));
  }

  ValueId new_value(const std::string& name, const TensorType& type, ValueKind kind = ValueKind::kTemp) {
    return out_.values.push_back(
        {.name = names_.unique(name), .type = type, .format = {}, .kind = kind, .producer = {}});
  }

  void promote_batch_norm(const Node& n) {
    const NodeView view(out_, n);
    const double momentum = view.float_or("momentum", 0.9);
    const ValueId running[] = {running_state(n, 3), running_state(n, 4)};
    const ValueId batch[] = {new_value(n.name + ".batch_mean", out_.values[running[0]].type),
                             new_value(n.name + ".batch_var", out_.values[running[1]].type)};
    Node train{.name = n.name,
               .op = "BatchNormTrain",
               .inputs = {n.inputs[0], n.inputs[1], n.inputs[2]},
               .outputs = {n.outputs[0], batch[0], batch[1]},
               .attrs = n.attrs,
               .role = n.role};
    train.attrs.erase("momentum");
    append(std::move(train));
    for (int k = 0; k < 2; ++k) {
      const char* what = k == 0 ? ".running_mean" : ".running_var";
      const ValueId next = new_value(out_.values[running[k]].name + ".next", out_.values[running[k]].type);
      append({.name = names_.unique(n.name + what),
              .op = "RunningStatistics",
              .inputs = {running[k], batch[k]},
              .outputs = {next},
              .attrs = {{"momentum", momentum}},
              .role = n.role});
    }
    ++n_norms_;
  }

  /// Input i as state of this node alone.
  ValueId running_state(const Node& n, std::size_t i) {
    const ValueId v = n.inputs[i];
    const auto data = out_.data.find(v);
    if (data == out_.data.end())
      NodeView(out_, n).fail(
          fmt::format("its running statistics '{}' are computed; training needs them stored", out_.values[v].name));
    if (taken_.insert(v).second) {
      out_.values[v].kind = ValueKind::kState;
      return v;
    }
    const ValueId own = new_value(out_.values[v].name, out_.values[v].type, ValueKind::kState);
    out_.data.emplace(own, data->second);
    return own;
  }

  void promote_dropout(const Node& n) {
    Node train{.name = n.name,
               .op = "DropoutTrain",
               .inputs = {n.inputs[0], rng()},
               .outputs = n.outputs,
               .attrs = n.attrs,
               .role = n.role};
    train.attrs["stream"] = n_dropouts_++;
    append(std::move(train));
  }

  ValueId rng() {
    const TensorType type{DType::kI64, {2}};
    const ValueId there = graph::find_value(out_, "rng");
    if (!there.valid()) return new_value("rng", type, ValueKind::kInput);
    if (out_.values[there].kind != ValueKind::kInput || out_.values[there].type != type)
      throw UserError("the name 'rng' is reserved for the input i64[2] of seed and step; value 'rng' is {}",
                      graph::to_string(out_.values[there].type));
    return there;
  }

  const graph::OpSet& ops_;
  graph::Builder names_;  // only hands out unique names
  Graph out_;
  std::set<ValueId> taken_;
  std::int64_t n_norms_ = 0, n_dropouts_ = 0;
};

}  // namespace

Graph promote_to_training(const Graph& graph, const graph::OpSet& ops) { return Promotion(graph, ops).run(graph); }

}  // namespace neaptide::passes
