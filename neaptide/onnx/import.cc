#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/files.hpp"
#include "neaptide/base/text.hpp"
#include "neaptide/onnx/fold.hpp"
#include "neaptide/onnx/onnx.hpp"
#include "neaptide/onnx/rules.hpp"
#include "neaptide/onnx/tensors.hpp"

namespace neaptide::onnx {

using graph::Attrs;
using graph::DType;
using graph::Graph;
using graph::Tensor;
using graph::TensorType;
using graph::ValueId;
using graph::ValueKind;

namespace {

constexpr std::int64_t kOldestOpset = 7;

bool floating(DType dtype) { return dtype == DType::kF32 || dtype == DType::kF64; }

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// The first few of a list, for a sentence: "'a', 'b' and 3 more".
std::string some_of(const std::vector<std::string>& items, std::size_t most) {
  const std::vector<std::string> shown(items.begin(),
                                       items.begin() + static_cast<std::ptrdiff_t>(std::min(most, items.size())));
  std::string out = join(shown, ", ");
  if (items.size() > most) out += fmt::format(" and {} more", items.size() - most);
  return out;
}

bool default_domain(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }

/// Names for all nodes: their own where given and unique, else the operator's with a number.
std::vector<std::string> node_names(const pb::GraphProto& graph) {
  std::set<std::string> used;
  for (const pb::NodeProto& n : graph.node()) used.insert(n.name());
  std::set<std::string> given;
  std::map<std::string, int> counts;
  std::vector<std::string> names;
  for (const pb::NodeProto& n : graph.node()) {
    if (!n.name().empty() && given.insert(n.name()).second) {
      names.push_back(n.name());
      continue;
    }
    const std::string base = n.name().empty() ? lower_case(n.op_type()) : n.name() + "_";
    std::string name;
    do {
      name = base + std::to_string(++counts[base]);
    } while (!used.insert(name).second);
    names.push_back(name);
  }
  return names;
}

}  // namespace

/// Walks the file's nodes in order and builds the graph.
class Importer {
 public:
  Importer(const pb::ModelProto& model, const graph::OpSet& ops, const LoadOptions& options, ExternalFiles& files)
      : proto_(model.graph()),
        model_(model),
        options_(options),
        files_(files),
        builder_(ops),
        names_(node_names(model.graph())),
        folded_left_(options.folded_limit) {}

  Graph run() {
    if (options_.batch && *options_.batch < 1) throw UserError("batch {} is not at least 1", *options_.batch);
    read_opset();
    refuse_unsupported_nodes();
    refuse_unsupported_types();
    reserve_names();
    for (const pb::TensorProto& t : proto_.initializer()) add_initialiser(t);
    for (const pb::ValueInfoProto& i : proto_.input()) add_input(i);
    for (int i = 0; i < proto_.node_size(); ++i) add_node(proto_.node(i), names_[static_cast<std::size_t>(i)]);
    builder_.graph().name = proto_.name().empty() ? "model" : proto_.name();
    return builder_.take(outputs());
  }

  int opset() const { return opset_; }
  graph::Builder& builder() { return builder_; }
  bool used(const std::string& name) const { return !name.empty() && readers_.contains(name); }
  bool trained(ValueId v) const { return trained_.contains(v); }
  std::optional<std::pair<std::int64_t, std::int64_t>> rebatched() const {
    if (!options_.batch || !file_batch_ || *file_batch_ == *options_.batch) return std::nullopt;
    return std::pair(*options_.batch, *file_batch_);
  }

  void note(const std::string& sentence) {
    std::vector<std::string>& notes = builder_.graph().notes;
    if (std::find(notes.begin(), notes.end(), sentence) == notes.end()) notes.push_back(sentence);
  }

  /// The value that a known tensor is in this use, made when there is none yet.
  ValueId materialise(Known& k, Use use, bool beside_trained) {
    const bool trainable = floating(k.tensor.type.dtype) &&
                           (use == Use::kWeight || use == Use::kOwnWeight ||
                            (use == Use::kOperand && k.weight && k.tensor.type.elements() > 1 && beside_trained));
    const ValueKind kind = use == Use::kState ? ValueKind::kState
                           : trainable        ? ValueKind::kParameter
                                              : ValueKind::kConstant;
    const bool own = use == Use::kState || use == Use::kOwnWeight;
    if (k.value.valid() && !own) {
      graph::Value& v = builder_.graph().values[k.value];
      if (kind == ValueKind::kParameter && v.kind == ValueKind::kConstant) v.kind = kind;
      return remember(k.value);
    }
    const bool first = !k.value.valid();
    const ValueId v = builder_.initialised(k.name, kind, k.tensor);
    if (first && !k.name.empty()) builder_.graph().values[v].name = k.name;
    if (!first) note(fmt::format("'{}' is used by several nodes that each need their own; it is copied", k.name));
    k.value = v;
    return remember(v);
  }

  ValueId add(const std::string& op, const std::vector<ValueId>& inputs, Attrs attrs, const std::string& node,
              const std::string& output) {
    graph::Builder::NodeSpec spec{.op = op, .inputs = inputs, .attrs = std::move(attrs), .name = node};
    if (!output.empty()) spec.output_names = {output};
    const ValueId v = builder_.add(spec)[0];
    Graph& g = builder_.graph();
    graph::Node& made = g.nodes[g.values[v].producer];
    if (reserved_nodes_.contains(node)) made.name = node;
    if (!output.empty()) g.values[v].name = output;
    if (std::any_of(inputs.begin(), inputs.end(), [&](ValueId i) { return i.valid() && trained(i); }))
      trained_.insert(v);
    return v;
  }

  /// Readers of `alias` count as readers of `name` from now on.
  void add_readers(const std::string& name, const std::string& alias) {
    if (const auto found = readers_.find(alias); found != readers_.end()) readers_[name] += found->second;
  }

  void bind(const std::string& name, Operand operand) {
    if (!name.empty()) operands_.insert_or_assign(name, std::move(operand));
  }

 private:
  ValueId remember(ValueId v) {
    if (builder_.graph().values[v].kind == ValueKind::kParameter) trained_.insert(v);
    return v;
  }

  void read_opset() {
    std::int64_t version = -1;
    for (const pb::OperatorSetIdProto& o : model_.opset_import()) {
      if (default_domain(o.domain())) version = std::max(version, o.version());
    }
    if (version < 0) throw UserError("the model names no opset; is it an ONNX file?");
    if (version < kOldestOpset)
      throw UserError("the model has opset {}; {} is the oldest that is read", version, kOldestOpset);
    opset_ = static_cast<int>(std::min<std::int64_t>(version, 1 << 20));
  }

  /// All nodes that cannot be read, in one message. A foldable operator is fine when its inputs will be known.
  void refuse_unsupported_nodes() {
    std::set<std::string> known;
    for (const pb::TensorProto& t : proto_.initializer()) known.insert(t.name());
    std::vector<std::string> wrong;
    for (int i = 0; i < proto_.node_size(); ++i) {
      const pb::NodeProto& n = proto_.node(i);
      const bool all_known = std::all_of(n.input().begin(), n.input().end(),
                                         [&](const std::string& in) { return in.empty() || known.contains(in); });
      const bool ours = default_domain(n.domain());
      const bool folds = ours && foldable(n.op_type()) && all_known;
      if (folds || n.op_type() == "Shape" || n.op_type() == "Size") known.insert(n.output().begin(), n.output().end());
      if (folds || (ours && rule_for(n.op_type()) != nullptr)) continue;
      const std::string op = ours ? n.op_type() : n.domain() + "." + n.op_type();
      wrong.push_back(fmt::format("'{}' ({})", names_[static_cast<std::size_t>(i)], op));
    }
    if (!wrong.empty())
      throw UserError("{} of {} nodes need operators that are not supported: {}", wrong.size(), proto_.node_size(),
                      join(wrong, ", "));
  }

  void refuse_unsupported_types() {
    std::vector<std::string> wrong;
    for (const pb::ValueInfoProto& i : proto_.input()) {
      const int type = i.type().tensor_type().elem_type();
      if (i.type().has_tensor_type() && !known_dtype(type))
        wrong.push_back(fmt::format("input '{}' ({})", i.name(), type_name(type)));
    }
    for (const pb::TensorProto& t : proto_.initializer()) {
      if (!known_dtype(t.data_type()))
        wrong.push_back(fmt::format("initialiser '{}' ({})", t.name(), type_name(t.data_type())));
    }
    if (!wrong.empty())
      throw UserError("element types that are not supported: {}; convert the model to float32", some_of(wrong, 8));
  }

  /// Keeps the names of the file for the file's own values and nodes; those made here get others.
  void reserve_names() {
    for (const pb::ValueInfoProto& i : proto_.input()) reserve(i.name());
    for (const pb::TensorProto& t : proto_.initializer()) reserve(t.name());
    for (const pb::NodeProto& n : proto_.node()) {
      for (const std::string& out : n.output()) {
        if (!out.empty() && !defined_.emplace(out, &n).second) throw UserError("value '{}' is produced twice", out);
        reserve(out);
      }
      for (const std::string& in : n.input()) ++readers_[in];
    }
    for (const std::string& n : names_) {
      builder_.unique(n);
      reserved_nodes_.insert(n);
    }
    for (const pb::ValueInfoProto& o : proto_.output()) ++readers_[o.name()];
  }

  void reserve(const std::string& name) {
    if (!name.empty() && reserved_.insert(name).second) builder_.unique(name);
  }

  void add_initialiser(const pb::TensorProto& t) {
    if (t.name().empty()) throw UserError("an initialiser has no name");
    if (operands_.contains(t.name())) throw UserError("initialiser '{}' is given twice", t.name());
    if (defined_.contains(t.name())) throw UserError("value '{}' is produced twice", t.name());
    auto known = std::make_shared<Known>();
    known->tensor = decode(t, fmt::format("initialiser '{}'", t.name()), files_);
    known->name = t.name();
    known->weight = floating(known->tensor.type.dtype);
    bind(t.name(), {.known = std::move(known)});
  }

  void add_input(const pb::ValueInfoProto& info) {
    if (info.name().empty()) throw UserError("an input has no name");
    if (!inputs_.insert(info.name()).second) throw UserError("input '{}' is given twice", info.name());
    if (operands_.contains(info.name())) return;  // an initialiser listed as an input
    if (defined_.contains(info.name())) throw UserError("value '{}' is produced twice", info.name());
    if (!used(info.name())) return note(fmt::format("input '{}' is read by nothing and left out", info.name()));
    const ValueId v = builder_.input(info.name(), input_type(info));
    builder_.graph().values[v].name = info.name();
    bind(info.name(), {.value = v});
  }

  TensorType input_type(const pb::ValueInfoProto& info) {
    const std::string what = fmt::format("input '{}'", info.name());
    if (!info.type().has_tensor_type()) throw UserError("{} is not a tensor", what);
    const pb::TypeProto_Tensor& t = info.type().tensor_type();
    if (!t.has_shape()) throw UserError("{} has no shape", what);
    TensorType type{dtype_of(t.elem_type(), what), {}};
    for (int d = 0; d < t.shape().dim_size(); ++d) type.shape.push_back(dimension(t.shape().dim(d), d, what));
    checked_bytes(type, what);
    return type;
  }

  std::int64_t dimension(const pb::TensorShapeProto_Dimension& dim, int position, const std::string& what) {
    const std::int64_t size = dim.dim_value();
    if (size < 0) throw UserError("{} has the negative dimension {}", what, size);
    const std::string& symbol = dim.dim_param();
    if (position == 0 && size > 0) {
      if (!file_batch_ && batch_symbol_.empty()) file_batch_ = size;
      return options_.batch && file_batch_ == size ? *options_.batch : size;
    }
    if (size > 0) return size;
    if (position == 0) {
      batch_symbol_ = symbol;
      if (!options_.batch) note(fmt::format("the batch of {} is open in the file; 1 is used", what));
      return options_.batch.value_or(1);
    }
    if (!symbol.empty() && symbol == batch_symbol_) return options_.batch.value_or(1);
    throw UserError("{}: dimension {} is open ('{}'); only the first may be", what, position, symbol);
  }

  Attrs decode_attributes(const pb::NodeProto& n, const std::string& name);
  void add_node(const pb::NodeProto& n, const std::string& name);
  bool folds(const NodeImport& node) const;
  void fold_node(NodeImport& node);

  Operand operand(const std::string& name, const std::string& node) const {
    if (name.empty()) return {};
    const auto found = operands_.find(name);
    if (found != operands_.end()) return found->second;
    if (defined_.contains(name))
      throw UserError("node '{}' reads '{}', which is produced only later; nodes must stand in an executable order",
                      node, name);
    throw UserError("node '{}' reads '{}', which nothing produces", node, name);
  }

  std::vector<ValueId> outputs() {
    std::vector<ValueId> out;
    for (const pb::ValueInfoProto& o : proto_.output()) {
      const auto found = operands_.find(o.name());
      if (found == operands_.end()) throw UserError("output '{}' is produced by no node", o.name());
      const Operand& from = found->second;
      out.push_back(from.known ? materialise(*from.known, Use::kSetting, false) : from.value);
    }
    if (out.empty()) throw UserError("the model has no outputs");
    return out;
  }

  const pb::GraphProto& proto_;
  const pb::ModelProto& model_;
  const LoadOptions& options_;
  ExternalFiles& files_;
  graph::Builder builder_;
  std::vector<std::string> names_;  // of nodes
  Bytes folded_left_;
  int opset_ = 0;
  std::optional<std::int64_t> file_batch_;  // leading dimension of the first input, where it is fixed
  std::string batch_symbol_;
  std::set<std::string> reserved_, reserved_nodes_, inputs_;
  std::map<std::string, int> readers_;
  std::map<std::string, const pb::NodeProto*> defined_;  // names that nodes produce
  std::map<std::string, Operand> operands_;
  std::set<ValueId> trained_;  // parameters, and values that depend on one
};

Attrs Importer::decode_attributes(const pb::NodeProto& n, const std::string& name) {
  Attrs out;
  for (const pb::AttributeProto& a : n.attribute()) {
    const auto put = [&](graph::Attr v) {
      if (!out.emplace(a.name(), std::move(v)).second)
        throw UserError("node '{}' ({}): attribute '{}' is given twice", name, n.op_type(), a.name());
    };
    switch (a.type()) {
      case pb::AttributeProto::INT:
        put(std::int64_t{a.i()});
        break;
      case pb::AttributeProto::FLOAT:
        put(shortest(a.f()));
        break;
      case pb::AttributeProto::STRING:
        put(a.s());
        break;
      case pb::AttributeProto::INTS:
        put(std::vector<std::int64_t>(a.ints().begin(), a.ints().end()));
        break;
      case pb::AttributeProto::FLOATS: {
        std::vector<double> v(static_cast<std::size_t>(a.floats_size()));
        std::transform(a.floats().begin(), a.floats().end(), v.begin(), shortest);
        put(std::move(v));
        break;
      }
      case pb::AttributeProto::STRINGS:
        put(std::vector<std::string>(a.strings().begin(), a.strings().end()));
        break;
      case pb::AttributeProto::TENSOR:
        put(decode(a.t(), fmt::format("attribute '{}' of node '{}'", a.name(), name), files_));
        break;
      default:
        throw UserError("node '{}' ({}): attribute '{}' has a type that is not supported", name, n.op_type(), a.name());
    }
  }
  return out;
}

void Importer::add_node(const pb::NodeProto& n, const std::string& name) {
  std::vector<Operand> inputs;
  for (const std::string& in : n.input()) inputs.push_back(operand(in, name));
  if (n.output_size() == 0) throw UserError("node '{}' ({}): has no outputs", name, n.op_type());
  NodeImport node(*this, n.op_type(), name, decode_attributes(n, name), std::move(inputs),
                  {n.output().begin(), n.output().end()});
  try {
    if (folds(node)) return fold_node(node);
    const Rule rule = rule_for(n.op_type());
    if (rule == nullptr) node.fail("is supported only where its inputs are constant");
    rule(node);
  } catch (const UserError& e) {
    if (std::string_view(e.what()).starts_with("node '")) throw;
    node.fail(e.what());
  }
}

/// Weights are folded only where that neither unties shared ones nor freezes trainable ones.
bool Importer::folds(const NodeImport& node) const {
  if (!foldable(node.op())) return false;
  const auto known = [](const Operand& in) { return !in.given() || in.known; };
  if (!std::all_of(node.inputs().begin(), node.inputs().end(), known)) return false;
  if (node.op() == "Identity") return false;  // an alias
  if (rule_for(node.op()) == nullptr) return true;
  for (std::size_t i = 0; i < node.n_inputs(); ++i) {
    if (!node.weight(i) || node.type(i).elements() <= 1) continue;
    const auto readers = readers_.find(node.inputs()[i].known->name);
    const bool shared = readers != readers_.end() && readers->second > 1;
    if (!only_moves(node.op()) || shared) return false;
  }
  return true;
}

void Importer::fold_node(NodeImport& node) {
  std::vector<const Tensor*> inputs;
  for (std::size_t i = 0; i < node.n_inputs(); ++i) inputs.push_back(node.known(i));
  Tensor result = fold(node.op(), {node.attrs(), inputs, folded_left_});
  const bool shares = std::any_of(inputs.begin(), inputs.end(), [&](auto t) { return t && t->data == result.data; });
  if (!shares) folded_left_ -= result.type.bytes();
  const bool filled = node.op() == "ConstantOfShape" && result.type.elements() > 1;
  const bool weight = floating(result.type.dtype) && (filled || (only_moves(node.op()) && node.weight(0)));
  node.finish_known(std::move(result), weight);
}

// ---- NodeImport ----

NodeImport::NodeImport(Importer& importer, std::string op, std::string name, Attrs attrs, std::vector<Operand> inputs,
                       std::vector<std::string> outputs)
    : importer_(&importer),
      op_(std::move(op)),
      name_(std::move(name)),
      attrs_(std::move(attrs)),
      inputs_(std::move(inputs)),
      outputs_(std::move(outputs)) {}

int NodeImport::opset() const { return importer_->opset(); }

void NodeImport::fail(const std::string& message) const { throw UserError("node '{}' ({}): {}", name_, op_, message); }

TensorType NodeImport::type_of(ValueId value) const { return importer_->builder().graph().values[value].type; }

TensorType NodeImport::type(std::size_t i) const {
  if (!has_input(i)) fail(fmt::format("input {} is missing", i));
  return inputs_[i].known ? inputs_[i].known->tensor.type : type_of(inputs_[i].value);
}

const Tensor* NodeImport::known(std::size_t i) const {
  return has_input(i) && inputs_[i].known ? &inputs_[i].known->tensor : nullptr;
}

ValueId NodeImport::value(std::size_t i, Use use) {
  if (!has_input(i)) fail(fmt::format("input {} is missing", i));
  if (!inputs_[i].known) return inputs_[i].value;
  const bool beside_trained = std::any_of(inputs_.begin(), inputs_.end(), [&](const Operand& in) {
    return in.value.valid() && importer_->trained(in.value);
  });
  return importer_->materialise(*inputs_[i].known, use, beside_trained);
}

bool NodeImport::output_used(std::size_t k) const { return k < outputs_.size() && importer_->used(outputs_[k]); }

template <class T>
const T* NodeImport::attribute(const char* key, const char* what) const {
  const auto found = attrs_.find(key);
  if (found == attrs_.end()) return nullptr;
  const T* v = std::get_if<T>(&found->second);
  if (v == nullptr) fail(fmt::format("attribute '{}' is not {}", key, what));
  return v;
}

std::int64_t NodeImport::int_or(const char* key, std::int64_t otherwise) const {
  const auto* v = attribute<std::int64_t>(key, "an integer");
  return v != nullptr ? *v : otherwise;
}

double NodeImport::float_or(const char* key, double otherwise) const {
  const auto* v = attribute<double>(key, "a number");
  return v != nullptr ? *v : otherwise;
}

std::string NodeImport::string_or(const char* key, const std::string& otherwise) const {
  const auto* v = attribute<std::string>(key, "a string");
  return v != nullptr ? *v : otherwise;
}

std::optional<std::vector<std::int64_t>> NodeImport::ints(const char* key) const {
  const auto* v = attribute<std::vector<std::int64_t>>(key, "a list of integers");
  if (v == nullptr) return std::nullopt;
  return *v;
}

std::optional<std::vector<std::int64_t>> NodeImport::ints_or_input(const char* key, std::size_t i) const {
  if (auto v = ints(key)) return v;
  if (known(i) == nullptr) return std::nullopt;
  return integers(*known(i), fmt::format("input {}", i));
}

Attrs NodeImport::pick(std::initializer_list<const char*> keys) const {
  Attrs out;
  for (const char* key : keys) {
    if (const auto found = attrs_.find(key); found != attrs_.end()) out.insert(*found);
  }
  return out;
}

ValueId NodeImport::emit(const std::string& op, const std::vector<ValueId>& inputs, Attrs attrs,
                         const std::string& suffix) {
  return importer_->add(op, inputs, std::move(attrs), name_ + "." + suffix, "");
}

void NodeImport::finish(const std::string& op, const std::vector<ValueId>& inputs, Attrs attrs, std::size_t k) {
  const std::string node = k == 0 ? name_ : fmt::format("{}.{}", name_, k);
  importer_->bind(outputs_[k], {.value = importer_->add(op, inputs, std::move(attrs), node, outputs_[k])});
}

void NodeImport::finish_known(Tensor tensor, bool weight, std::size_t k) {
  auto known = std::make_shared<Known>();
  known->tensor = std::move(tensor);
  known->name = outputs_[k];
  known->weight = weight;
  importer_->bind(outputs_[k], {.known = std::move(known)});
}

void NodeImport::alias(std::size_t input) {
  importer_->add_readers(inputs_[input].known->name, outputs_[0]);
  importer_->bind(outputs_[0], inputs_[input]);
}

void NodeImport::note(const std::string& sentence) { importer_->note(sentence); }

std::optional<std::pair<std::int64_t, std::int64_t>> NodeImport::rebatched() const { return importer_->rebatched(); }

// ---- entry points ----

Graph parse(std::string_view bytes, const graph::OpSet& ops, const LoadOptions& options, const std::string& place,
            const std::string& directory) {
  pb::ModelProto model;
  if (bytes.size() > static_cast<std::size_t>(INT32_MAX))
    throw UserError("{}: is larger than 2 GiB; save the model with external data", place);
  if (!model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) || !model.has_graph())
    throw UserError("{}: is not an ONNX model, or is cut off", place);
  ExternalFiles files(directory);
  try {
    return Importer(model, ops, options, files).run();
  } catch (const UserError& e) {
    throw UserError("{}: {}", place, e.what());
  }
}

Graph load(const std::string& path, const graph::OpSet& ops, const LoadOptions& options) {
  const std::filesystem::path directory = std::filesystem::path(path).parent_path();
  return parse(read_file(path), ops, options, path, directory.empty() ? "." : directory.string());
}

}  // namespace neaptide::onnx
