// Copies a graph node by node into a new one, so that a pass can leave out, change or insert nodes on the way.
//
//   Rewriter out(graph);
//   for (const Node& node : graph.nodes) out.copy(node);
//   return out.take();
#pragma once

#include "neaptide/graph/graph.hpp"

namespace neaptide::passes {

class Rewriter {
 public:
  /// Starts with the inputs, parameters, state and constants of `from` (which must outlive the rewriter), their
  /// contents and the notes.
  explicit Rewriter(const graph::Graph& from);

  /// The new value that stands for an old one; invalid for none. InternalError when it is not there yet.
  graph::ValueId at(graph::ValueId old) const;
  bool has(graph::ValueId old) const { return map_[old].valid(); }
  void set(graph::ValueId old, graph::ValueId now) { map_[old] = now; }

  /// A copy of `node` that reads what stands for its inputs and makes new outputs; not appended yet.
  graph::Node prepare(const graph::Node& node);
  /// Appends a node and makes it the producer of its outputs.
  graph::NodeId append(graph::Node node);
  graph::NodeId copy(const graph::Node& node) { return append(prepare(node)); }

  graph::Graph& graph() { return to_; }
  const graph::Graph& graph() const { return to_; }
  /// The new graph, with the old one's outputs.
  graph::Graph take();

 private:
  const graph::Graph* from_;
  graph::Graph to_;
  IdVector<struct graph::ValueTag, graph::ValueId> map_;
};

}  // namespace neaptide::passes
