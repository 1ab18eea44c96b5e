// How each ONNX operator becomes ours: one function per operator, which also evens out what opsets changed. Internal to
// this folder.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "neaptide/graph/builder.hpp"

namespace neaptide::onnx {

/// A tensor whose contents are known at import; becomes a value of the graph when a node reads it.
struct Known {
  graph::Tensor tensor;
  std::string name;
  bool weight = false;  // an initialiser (or stands for one): may be trained
  graph::ValueId value = {};
};

/// What an ONNX name stands for: a value of the graph, or a known tensor.
struct Operand {
  graph::ValueId value = {};
  std::shared_ptr<Known> known = {};
  bool given() const { return value.valid() || known != nullptr; }
};

/// How a node uses an operand, which decides what a known tensor becomes.
enum class Use {
  kData,       // constant
  kWeight,     // parameter
  kOwnWeight,  // parameter of this node alone, copied if others use it too
  kState,      // running statistics of this node alone
  kOperand,    // parameter when it is an initialiser of several elements, combined with something trained
  kSetting     // always constant: bounds, scales
};

class Importer;

/// One ONNX node on its way into the graph.
class NodeImport {
 public:
  NodeImport(Importer& importer, std::string op, std::string name, graph::Attrs attrs, std::vector<Operand> inputs,
             std::vector<std::string> outputs);

  const std::string& op() const { return op_; }
  const std::string& name() const { return name_; }
  int opset() const;
  const graph::Attrs& attrs() const { return attrs_; }
  std::size_t n_inputs() const { return inputs_.size(); }
  std::size_t n_outputs() const { return outputs_.size(); }
  const std::vector<Operand>& inputs() const { return inputs_; }

  bool has_input(std::size_t i) const { return i < inputs_.size() && inputs_[i].given(); }
  graph::TensorType type(std::size_t i) const;  // UserError when the input is missing
  graph::TensorType type_of(graph::ValueId value) const;
  const graph::Tensor* known(std::size_t i) const;  // null unless its contents are known
  bool weight(std::size_t i) const { return has_input(i) && inputs_[i].known && inputs_[i].known->weight; }
  graph::ValueId value(std::size_t i, Use use);  // UserError when missing
  bool output_used(std::size_t k) const;

  /// Attributes; fail when they have another type.
  std::int64_t int_or(const char* key, std::int64_t otherwise) const;
  double float_or(const char* key, double otherwise) const;
  std::string string_or(const char* key, const std::string& otherwise) const;
  std::optional<std::vector<std::int64_t>> ints(const char* key) const;
  /// An attribute in old opsets, a known input in newer ones.
  std::optional<std::vector<std::int64_t>> ints_or_input(const char* key, std::size_t i) const;
  /// The named attributes, where given.
  graph::Attrs pick(std::initializer_list<const char*> keys) const;

  /// A node of ours between others, named "<node>.<suffix>".
  graph::ValueId emit(const std::string& op, const std::vector<graph::ValueId>& inputs, graph::Attrs attrs,
                      const std::string& suffix);
  /// The node itself: makes ONNX output `k`.
  void finish(const std::string& op, const std::vector<graph::ValueId>& inputs, graph::Attrs attrs, std::size_t k = 0);
  /// ONNX output `k` is a known tensor.
  void finish_known(graph::Tensor tensor, bool weight, std::size_t k = 0);
  /// ONNX output 0 is the same tensor as an input.
  void alias(std::size_t input);
  void note(const std::string& sentence);

  /// The batch dimension asked for and the one in the file, when they differ.
  std::optional<std::pair<std::int64_t, std::int64_t>> rebatched() const;

  [[noreturn]] void fail(const std::string& message) const;  // "node 'NAME' (OP): <message>"

 private:
  template <class T>
  const T* attribute(const char* key, const char* what) const;

  Importer* importer_;
  std::string op_, name_;
  graph::Attrs attrs_;
  std::vector<Operand> inputs_;
  std::vector<std::string> outputs_;
};

using Rule = void (*)(NodeImport&);

/// Null when the operator is not supported.
Rule rule_for(const std::string& op);

}  // namespace neaptide::onnx
