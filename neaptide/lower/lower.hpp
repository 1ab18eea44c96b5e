// Graph + Machine + CostTable -> Problem, and the map back. The only place where networks and planning meet.
//
// Values that only rename another value (Reshape) and new versions of a value (updates) share its buffer. Inputs,
// parameters, state and constants are homed on the machine's first device and kept; graph outputs are kept.
#pragma once

#include "neaptide/cost/cost_table.hpp"
#include "neaptide/cost/machine.hpp"
#include "neaptide/graph/op_def.hpp"
#include "neaptide/plan/problem.hpp"

namespace neaptide::lower {

struct Lowered {
  plan::Problem problem;
  IdVector<struct plan::OpTag, graph::NodeId> node_of_op;
  IdVector<struct plan::OpTag, std::vector<int>> cost_of_impl;  // [op][impl]: index into table[node].impls
  IdVector<struct graph::ValueTag, plan::BufferId> buffer_of_value;
  IdVector<struct plan::BufferTag, graph::ValueId> value_of_buffer;  // the first value that lies in it
};

/// UserError listing every node that no device can run, with the reasons. `pinned`: only the first implementation of
/// each node (the one of lowest index in the table), so that results are the same bits whatever the budget.
struct LowerOptions {
  bool pinned = false;
};
Lowered lower(const graph::Graph& graph, const graph::OpSet& ops, const cost::Machine& machine,
              const cost::CostTable& table, const LowerOptions& options = {});

}  // namespace neaptide::lower
