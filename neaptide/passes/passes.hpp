// Graph -> Graph, one file per pass. `all()` is the flat list in the order in which a session runs them.
#pragma once

#include <span>
#include <string_view>

#include "neaptide/graph/format_rules.hpp"
#include "neaptide/graph/op_def.hpp"

namespace neaptide::passes {

/// BatchNormalization -> BatchNormTrain + RunningStatistics, Dropout -> DropoutTrain (with the input "rng" i64[2]); a
/// note for each kind. Constant parameters of an inference export (initialisers read by Conv, Gemm, BatchNormalization
/// ...) are trainable parameters already; running mean and variance become state.
graph::Graph promote_to_training(const graph::Graph& graph, const graph::OpSet& ops);

/// BatchNormTrain + Relu, Conv + Relu, Add + Relu -> one node with activation = "relu", where the value between has no
/// other reader.
graph::Graph fuse_activations(const graph::Graph& graph, const graph::OpSet& ops);

/// Gives every value a storage format by the backend's rules and inserts Reorder nodes. Graph inputs and outputs stay
/// plain.
graph::Graph assign_formats(const graph::Graph& graph, const graph::OpSet& ops, const graph::FormatRules& rules);

/// Drops nodes whose outputs nothing needs (and that have no effect), and optional outputs that nothing reads.
graph::Graph remove_dead(const graph::Graph& graph, const graph::OpSet& ops);

}  // namespace neaptide::passes
