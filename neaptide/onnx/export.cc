#include <filesystem>
#include <map>
#include <set>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/files.hpp"
#include "neaptide/base/text.hpp"
#include "neaptide/onnx/onnx.hpp"
#include "neaptide/onnx/tensors.hpp"

namespace neaptide::onnx {
namespace {

using graph::Attrs;
using graph::DType;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::NodeView;
using graph::ValueId;
using Ints = std::vector<std::int64_t>;
using Names = std::vector<std::string>;

constexpr int kOpset = 17;
constexpr int kIrVersion = 8;  // the one that belongs to opset 17

void encode_attribute(const std::string& name, const graph::Attr& value, pb::AttributeProto& out) {
  out.set_name(name);
  if (const auto* i = std::get_if<std::int64_t>(&value)) {
    out.set_type(pb::AttributeProto::INT);
    out.set_i(*i);
  } else if (const auto* f = std::get_if<double>(&value)) {
    out.set_type(pb::AttributeProto::FLOAT);
    out.set_f(static_cast<float>(*f));
  } else if (const auto* s = std::get_if<std::string>(&value)) {
    out.set_type(pb::AttributeProto::STRING);
    out.set_s(*s);
  } else if (const auto* ints = std::get_if<Ints>(&value)) {
    out.set_type(pb::AttributeProto::INTS);
    for (const std::int64_t v : *ints) out.add_ints(v);
  } else {
    throw InternalError("attribute '{}' has a type that no exported operator uses", name);
  }
}

class Exporter {
 public:
  explicit Exporter(const Graph& graph) : graph_(graph) {}

  pb::ModelProto run() {
    refuse_nodes_without_form();
    for (const graph::Value& v : graph_.values) names_.insert(v.name);
    for (const ValueId v : graph_.outputs) read_.insert(name(v));  // also an input or a tensor that no node reads
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) write_node(NodeId(n));
    pb::GraphProto& g = *model_.mutable_graph();
    g.set_name(graph_.name.empty() ? "model" : graph_.name);
    for (const ValueId v : graph::values_of_kind(graph_, graph::ValueKind::kInput)) {
      if (read_.contains(graph_.values[v].name)) describe(v, *g.add_input());
    }
    for (const ValueId v : graph_.outputs) describe(v, *g.add_output());
    for (const auto& [v, tensor] : graph_.data) {
      if (read_.contains(graph_.values[v].name)) *g.add_initializer() = encode(tensor, graph_.values[v].name);
    }
    model_.set_ir_version(kIrVersion);
    model_.set_producer_name("neaptide");
    model_.add_opset_import()->set_version(kOpset);
    return std::move(model_);
  }

 private:
  using Form = void (Exporter::*)(const Node&);
  static const std::map<std::string, Form>& forms();

  void refuse_nodes_without_form() const {
    Names wrong;
    for (const Node& n : graph_.nodes) {
      if (!forms().contains(n.op)) wrong.push_back(fmt::format("'{}' ({})", n.name, n.op));
    }
    if (!wrong.empty())
      throw UserError("{} nodes have no inference form in ONNX: {}; export the forward graph", wrong.size(),
                      join(wrong, ", "));
  }

  NodeView view(const Node& n) const { return NodeView(graph_, n); }
  const std::string& name(ValueId v) const { return graph_.values[v].name; }
  Names inputs(const Node& n) const {
    Names out;
    for (const ValueId v : n.inputs) out.push_back(v.valid() ? name(v) : "");
    while (!out.empty() && out.back().empty()) out.pop_back();
    return out;
  }
  std::string output(const Node& n) {
    if (!n.outputs[0].valid()) throw UserError("node '{}' ({}) lacks its first output", n.name, n.op);
    return name(n.outputs[0]);
  }
  std::string fresh(const std::string& wanted) {
    std::string out = wanted;
    for (int i = 1; !names_.insert(out).second; ++i) out = fmt::format("{}_{}", wanted, i);
    return out;
  }

  void describe(ValueId v, pb::ValueInfoProto& out) const {
    const graph::Value& value = graph_.values[v];
    out.set_name(value.name);
    pb::TypeProto_Tensor& t = *out.mutable_type()->mutable_tensor_type();
    t.set_elem_type(elem_type_of(value.type.dtype));
    t.mutable_shape();
    for (const std::int64_t d : value.type.shape) t.mutable_shape()->add_dim()->set_dim_value(d);
  }

  void emit(const std::string& op, const std::string& node, const Names& in, const std::string& out,
            const Attrs& attrs = {}) {
    pb::NodeProto& n = *model_.mutable_graph()->add_node();
    n.set_op_type(op);
    n.set_name(node);
    for (const std::string& i : in) {
      n.add_input(i);
      read_.insert(i);
    }
    n.add_output(out);
    for (const auto& [key, value] : attrs) encode_attribute(key, value, *n.add_attribute());
  }

  std::string initialiser(const std::string& wanted, const graph::Tensor& tensor) {
    std::string out = fresh(wanted);
    *model_.mutable_graph()->add_initializer() = encode(tensor, out);
    return out;
  }
  std::string int_list(const std::string& wanted, const Ints& v) {
    return initialiser(wanted, graph::tensor_of(DType::kI64, {static_cast<std::int64_t>(v.size())}, v));
  }

  /// The node, followed by a Relu of its own when its activation was fused.
  void emit_activated(const Node& n, const std::string& op, const Names& in, Attrs attrs) {
    const std::string activation = view(n).string_or("activation", "");
    attrs.erase("activation");
    if (activation.empty()) return emit(op, n.name, in, output(n), attrs);
    if (activation != "relu")
      throw UserError("node '{}' ({}): activation '{}' has no ONNX form", n.name, n.op, activation);
    const std::string before = fresh(output(n) + ".before");
    emit(op, n.name, in, before, attrs);
    emit("Relu", n.name + ".relu", {before}, output(n));
  }

  void write_node(NodeId id) { (this->*forms().at(graph_.nodes[id].op))(graph_.nodes[id]); }

  // ---- one form per operator; the plain one writes node and attributes as they are ----
  void plain(const Node& n) { emit_activated(n, n.op, inputs(n), n.attrs); }
  void nothing(const Node&) {}
  void identity(const Node& n) { emit("Identity", n.name, {name(n.inputs[0])}, output(n)); }

  void batch_norm_train(const Node& n) {
    const auto running = [&](std::size_t k) -> const Node& {
      for (const Node& r : graph_.nodes) {
        if (r.op == "RunningStatistics" && view(n).has_output(k) && r.inputs.at(1) == n.outputs[k]) return r;
      }
      throw UserError("node '{}' (BatchNormTrain) has no running statistics, which inference needs", n.name);
    };
    const Node &mean = running(1), &var = running(2);
    Attrs attrs = {{"epsilon", view(n).float_or("epsilon", 1e-5)}, {"momentum", view(mean).float_or("momentum", 0.9)}};
    if (n.attrs.contains("activation")) attrs.insert(*n.attrs.find("activation"));
    Names in = inputs(n);
    in.push_back(name(mean.inputs[0]));
    in.push_back(name(var.inputs[0]));
    emit_activated(n, "BatchNormalization", in, attrs);
  }

  void dropout(const Node& n) {
    const std::string in = float_list(n.name + ".ratio", {}, {view(n).float_or("ratio", 0.5)});
    emit("Dropout", n.name, {name(n.inputs[0]), in}, output(n));
  }

  /// MatMul, with the transpositions that are attributes here as nodes.
  void mat_mul(const Node& n) {
    Names in = inputs(n);
    for (std::size_t i = 0; i < 2; ++i) {
      if (view(n).int_or(i == 0 ? "trans_a" : "trans_b", 0) == 0) continue;
      const auto rank = static_cast<std::int64_t>(view(n).input(i).shape.size());
      Ints perm;
      for (std::int64_t d = 0; d < rank; ++d) perm.push_back(d < rank - 2 ? d : 2 * rank - 3 - d);
      const std::string turned = fresh(in[i] + ".transposed");
      emit("Transpose", fmt::format("{}.transpose{}", n.name, i), {in[i]}, turned, {{"perm", perm}});
      in[i] = turned;
    }
    emit("MatMul", n.name, in, output(n));
  }

  /// The axes as a second input, as Squeeze, Unsqueeze and ReduceSum have it.
  void axes_as_input(const Node& n) {
    Attrs attrs = n.attrs;
    attrs.erase("axes");
    Names in = {name(n.inputs[0])};
    if (n.attrs.contains("axes"))
      in.push_back(int_list(n.name + ".axes", view(n).ints_or("axes", {})));
    else if (view(n).has_input(1))
      in.push_back(name(n.inputs[1]));
    emit(n.op, n.name, in, output(n), attrs);
  }

  void axes_as_attribute(const Node& n) {
    Attrs attrs = n.attrs;
    if (const auto axes = view(n).constant_input(1)) attrs["axes"] = integers(*axes, "axes");
    emit(n.op, n.name, {name(n.inputs[0])}, output(n), attrs);
  }

  /// The leading dimension is copied from the input where it is the same, so that the batch can change.
  void reshape(const Node& n) {
    Ints target = view(n).output(0).shape;
    const graph::Shape& from = view(n).input(0).shape;
    if (!target.empty() && !from.empty() && target[0] == from[0]) target[0] = 0;
    emit("Reshape", n.name, {name(n.inputs[0]), int_list(n.name + ".shape", target)}, output(n));
  }

  void slice(const Node& n) {
    const NodeView v = view(n);
    const Names in = {name(n.inputs[0]), int_list(n.name + ".start", {v.int_or("start", 0)}),
                      int_list(n.name + ".end", {v.int_or("end", INT64_MAX)}),
                      int_list(n.name + ".axis", {v.int_or("axis", 0)})};
    emit("Slice", n.name, in, output(n));
  }

  void cast(const Node& n) {
    emit("Cast", n.name, {name(n.inputs[0])}, output(n), {{"to", std::int64_t{elem_type_of(view(n).output(0).dtype)}}});
  }

  std::string float_list(const std::string& wanted, graph::Shape shape, const std::vector<double>& v) {
    return initialiser(wanted, graph::tensor_of(DType::kF32, std::move(shape), std::vector<float>(v.begin(), v.end())));
  }

  void resize(const Node& n) {
    Attrs attrs = n.attrs;
    Names in = {name(n.inputs[0]), ""};
    const auto dims = static_cast<std::int64_t>(view(n).input(0).shape.size());
    if (const auto found = attrs.find("scales"); found != attrs.end()) {
      const auto* scales = std::get_if<std::vector<double>>(&found->second);
      const Ints whole = scales == nullptr ? view(n).ints_or("scales", {}) : Ints();
      in.push_back(float_list(n.name + ".scales", {dims},
                              scales != nullptr ? *scales : std::vector<double>(whole.begin(), whole.end())));
    } else {
      in.insert(in.end(), {"", int_list(n.name + ".sizes", view(n).ints_or("sizes", {}))});
    }
    attrs.erase("scales");
    attrs.erase("sizes");
    attrs["mode"] = "nearest";
    emit("Resize", n.name, in, output(n), attrs);
  }

  /// Bounds as inputs, in the element type.
  void clip(const Node& n) {
    Names in = inputs(n);
    in.resize(3);
    for (const auto& [key, i] : {std::pair("min", 1), std::pair("max", 2)}) {
      if (!n.attrs.contains(key)) continue;
      const double bound = view(n).float_or(key, 0);
      if (view(n).input(0).dtype != DType::kF32) throw UserError("node '{}' (Clip): only f32 is written", n.name);
      in[static_cast<std::size_t>(i)] = float_list(n.name + "." + key, {}, {bound});
    }
    while (in.back().empty()) in.pop_back();
    emit("Clip", n.name, in, output(n));
  }

  const Graph& graph_;
  pb::ModelProto model_;
  std::set<std::string> names_, read_;
};

const std::map<std::string, Exporter::Form>& Exporter::forms() {
  static const std::map<std::string, Form> all = {
      {"Add", &Exporter::plain},
      {"AveragePool", &Exporter::plain},
      {"BatchNormTrain", &Exporter::batch_norm_train},
      {"BatchNormalization", &Exporter::plain},
      {"Cast", &Exporter::cast},
      {"Clip", &Exporter::clip},
      {"Concat", &Exporter::plain},
      {"Conv", &Exporter::plain},
      {"ConvTranspose", &Exporter::plain},
      {"Div", &Exporter::plain},
      {"Dropout", &Exporter::dropout},
      {"DropoutTrain", &Exporter::dropout},
      {"Flatten", &Exporter::plain},
      {"Gemm", &Exporter::plain},
      {"GlobalAveragePool", &Exporter::plain},
      {"Identity", &Exporter::plain},
      {"LogSoftmax", &Exporter::plain},
      {"MatMul", &Exporter::mat_mul},
      {"MaxPool", &Exporter::plain},
      {"Mul", &Exporter::plain},
      {"ReduceMean", &Exporter::axes_as_attribute},
      {"ReduceSum", &Exporter::axes_as_input},
      {"Relu", &Exporter::plain},
      {"Reorder", &Exporter::identity},
      {"Reshape", &Exporter::reshape},
      {"Resize", &Exporter::resize},
      {"RunningStatistics", &Exporter::nothing},
      {"Sigmoid", &Exporter::plain},
      {"Slice", &Exporter::slice},
      {"Softmax", &Exporter::plain},
      {"Squeeze", &Exporter::axes_as_input},
      {"Sub", &Exporter::plain},
      {"Sum", &Exporter::plain},
      {"Tanh", &Exporter::plain},
      {"Transpose", &Exporter::plain},
      {"Unsqueeze", &Exporter::axes_as_input},
  };
  return all;
}

std::string bytes_of(const pb::ModelProto& model) {
  if (model.ByteSizeLong() > static_cast<std::size_t>(INT32_MAX))
    throw UserError("the model takes {} bytes; a single ONNX file holds at most {}: save with external data",
                    model.ByteSizeLong(), INT32_MAX);
  return model.SerializeAsString();
}

/// Moves every tensor's bytes to one string, each at a multiple of 64.
std::string move_out(pb::ModelProto& model, const std::string& location) {
  std::string data;
  for (pb::TensorProto& t : *model.mutable_graph()->mutable_initializer()) {
    data.resize(static_cast<std::size_t>(round_up(static_cast<Bytes>(data.size()), 64)));
    const auto put = [&](const char* key, const std::string& value) {
      pb::StringStringEntryProto& e = *t.add_external_data();
      e.set_key(key);
      e.set_value(value);
    };
    put("location", location);
    put("offset", std::to_string(data.size()));
    put("length", std::to_string(t.raw_data().size()));
    data += t.raw_data();
    t.clear_raw_data();
    t.set_data_location(pb::TensorProto::EXTERNAL);
  }
  return data;
}

}  // namespace

std::string serialise(const Graph& graph) { return bytes_of(Exporter(graph).run()); }

void save(const Graph& graph, const std::string& path, const SaveOptions& options) {
  pb::ModelProto model = Exporter(graph).run();
  if (static_cast<Bytes>(model.ByteSizeLong()) > options.external_above) {
    const std::string data = path + ".data";
    write_file_atomically(data, move_out(model, std::filesystem::path(data).filename().string()));
  }
  write_file_atomically(path, bytes_of(model));
}

}  // namespace neaptide::onnx
