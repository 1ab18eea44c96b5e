// Evaluates a graph node by node with the reference kernels: the oracle of tests and gradient checks. Every value gets
// a buffer of its own, whatever the budget; an in-place implementation or an update works on a copy of what it
// replaces. Outputs and workspaces hold NaN bit patterns before a kernel runs, so that nothing depends on what lay
// there before.
//
//   Values values = interpret(graph, ops::all(), {{x, image}, {labels, classes}});
//   float loss = values[loss_id].as<float>()[0];
#pragma once

#include <functional>
#include <map>

#include "neaptide/graph/op_def.hpp"

namespace neaptide::ops {

using Feeds = std::map<graph::ValueId, graph::Tensor>;
/// Contents by value; `data` is null for a value that no chosen implementation wrote.
using Values = IdVector<struct graph::ValueTag, graph::Tensor>;

/// The index of the implementation that a node runs, in the order of OpDef::implementations; -1: the default, the first
/// one whose inputs exist.
using Choose = std::function<int(const graph::NodeView&, const std::vector<graph::Implementation>&)>;

/// `feeds` must hold every graph input and may replace the initial contents of parameters, state and constants.
/// Every storage format is evaluated as plain. UserError when a feed is missing or has another type, or when a chosen
/// implementation reads a value that does not exist.
Values interpret(const graph::Graph& graph, const graph::OpSet& ops, const Feeds& feeds, const Choose& choose = {});

/// For each parameter and state that the graph overwrites, its last version: what to feed to the next step.
Feeds next_versions(const graph::Graph& graph, const graph::OpSet& ops, const Values& values);

/// Runs one node: the contents of its outputs, parallel to node.outputs, given the contents of its inputs, parallel to
/// node.inputs (an input that the implementation does not read may lack data).
std::vector<graph::Tensor> run_node(const graph::NodeView& node, const graph::OpDef& op,
                                    const graph::Implementation& implementation,
                                    const std::vector<graph::Tensor>& inputs);

}  // namespace neaptide::ops
