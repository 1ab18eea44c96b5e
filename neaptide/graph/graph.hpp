// Graph: nodes and values in SSA form. Every value has one producer (or none: inputs, parameters, state, constants).
// Nodes stand in an executable order. An effect - a weight update, a running statistic - is a node whose OpDef says
// that an output is the next version of an input (`overwrites`); both are values here, and one buffer in the Problem.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "neaptide/base/ids.hpp"
#include "neaptide/graph/types.hpp"

namespace neaptide::graph {

using NodeId = Id<struct NodeTag>;
using ValueId = Id<struct ValueTag>;

using Attr = std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>,
                          std::vector<std::string>, Tensor>;
using Attrs = std::map<std::string, Attr>;

enum class ValueKind : std::uint8_t {
  kInput,      // fed before every step: samples, labels, learning rate, {seed, step}
  kParameter,  // trained
  kState,      // lives across steps, not trained by gradient: running statistics, optimizer moments
  kConstant,   // never changes
  kTemp        // produced by a node
};

enum class Role : std::uint8_t { kForward, kBackward, kUpdate };

struct Value {
  std::string name;  // unique
  TensorType type;
  Format format;
  ValueKind kind = ValueKind::kTemp;
  NodeId producer;  // none unless kTemp
  Bytes bytes() const { return format.plain() ? type.bytes() : format.bytes; }
  friend bool operator==(const Value&, const Value&) = default;
};

struct Node {
  std::string name;              // unique
  std::string op;                // an OpDef's name
  std::vector<ValueId> inputs;   // an invalid id: optional input not given
  std::vector<ValueId> outputs;  // an invalid id: optional output that nothing needs
  Attrs attrs;
  Role role = Role::kForward;
  friend bool operator==(const Node&, const Node&) = default;
};

struct Graph {
  std::string name;
  IdVector<struct ValueTag, Value> values;
  IdVector<struct NodeTag, Node> nodes;  // executable in this order
  std::vector<ValueId> outputs;          // must exist at the end of a step
  std::map<ValueId, Tensor> data;        // initial contents of parameters, state and constants, plain format
  std::vector<std::string> notes;        // what passes changed that a user should know
  friend bool operator==(const Graph&, const Graph&) = default;
};

/// Values of a kind, in id order.
std::vector<ValueId> values_of_kind(const Graph& graph, ValueKind kind);

/// By name; invalid when absent.
ValueId find_value(const Graph& graph, const std::string& name);
NodeId find_node(const Graph& graph, const std::string& name);

/// Nodes that read each value, in order.
IdVector<struct ValueTag, std::vector<NodeId>> consumers(const Graph& graph);

}  // namespace neaptide::graph
