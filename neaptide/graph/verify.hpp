// Everything that is wrong with a graph, independent of the builder that made it.
#pragma once

#include <string>
#include <vector>

#include "neaptide/graph/op_def.hpp"

namespace neaptide::graph {

/// Sentences naming node and value; empty when sound: names unique, ids in range, producers consistent, order
/// executable, arities legal, types equal to what the OpDefs infer, nothing reads a value after a node that overwrites
/// it, initialised values have data of their type.
std::vector<std::string> verify(const Graph& graph, const OpSet& ops);

}  // namespace neaptide::graph
