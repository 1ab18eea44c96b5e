#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "neaptide/base/errors.hpp"
#include "neaptide/graph/builder.hpp"
#include "neaptide/lower/lower.hpp"
#include "neaptide/ops/ops.hpp"
#include "neaptide/plan/simulate.hpp"

namespace neaptide::lower {
namespace {

using graph::DType;
using graph::ValueId;

const cost::Machine kMachine = {.devices = {{.name = "cpu:0",
                                             .backend = "reference",
                                             .threads = 1,
                                             .budget = {},
                                             .alignment = 64,
                                             .flops_per_second = 1,
                                             .bytes_per_second = 1}},
                                .links = {}};

/// Every implementation of every node, one second each.
cost::CostTable unit_costs(const graph::Graph& g) {
  cost::CostTable table(g.nodes.size());
  for (std::size_t n = 0; n < g.nodes.size(); ++n) {
    const graph::NodeView node(g, g.nodes[graph::NodeId(n)]);
    const graph::OpDef& op = ops::all().at(node.node().op);
    if (!op.renames.empty()) continue;
    for (const graph::Implementation& i : op.implementations(node))
      table[graph::NodeId(n)].impls.push_back({.device = "cpu:0", .spec = i.spec, .seconds = 1});
  }
  return table;
}

/// x -> relu -> reshape -> relu -> SGD on a parameter that has the same type.
graph::Graph small_step() {
  graph::Builder b(ops::all());
  const ValueId x = b.input("x", {DType::kF32, {2, 32}});
  const ValueId lr = b.input("lr", {DType::kF32, {}});
  const ValueId w = b.parameter("w", graph::zeros({DType::kF32, {64}}));
  const ValueId a = b.add("Relu", {x}, {}, "a");
  const ValueId r = b.add("Reshape", {a}, {{"shape", std::vector<std::int64_t>{64}}}, "r");
  const ValueId c = b.add("Relu", {r}, {}, "c");
  const ValueId next = b.add("SgdUpdate", {w, c, lr}, {}, "update");
  return b.take({next});
}

TEST(Lower, RenamesAndUpdatesShareBuffers) {
  const graph::Graph g = small_step();
  const Lowered l = lower(g, ops::all(), kMachine, unit_costs(g));
  const auto buffer = [&](const char* name) { return l.buffer_of_value[graph::find_value(g, name)]; };
  EXPECT_EQ(buffer("a.out"), buffer("r.out"));
  EXPECT_EQ(buffer("w"), buffer("update.out"));
  EXPECT_NE(buffer("a.out"), buffer("c.out"));
  EXPECT_EQ(l.problem.ops.size(), 3U) << "a rename is no op";
  const plan::Buffer& w = l.problem.buffers[buffer("w")];
  EXPECT_TRUE(w.home && w.keep && !w.pageable);
  EXPECT_FALSE(l.problem.buffers[buffer("x")].keep);
  EXPECT_TRUE(l.problem.ops[plan::OpId(std::size_t{2})].once);
  EXPECT_TRUE(plan::check(l.problem).empty());
}

TEST(Lower, LeavesOutInPlaceOverHomedBuffers) {
  const graph::Graph g = small_step();
  const Lowered l = lower(g, ops::all(), kMachine, unit_costs(g));
  const auto n_in_place = [&](std::size_t op) {
    int n = 0;
    for (const plan::Impl& i : l.problem.ops[plan::OpId(op)].impls) n += !i.in_place.empty();
    return n;
  };
  EXPECT_EQ(n_in_place(0), 0) << "x is homed";
  EXPECT_GE(n_in_place(1), 1) << "r is not";
}

TEST(Lower, PinnedKeepsTheFirstImplementationOnly) {
  const graph::Graph g = small_step();
  const Lowered l = lower(g, ops::all(), kMachine, unit_costs(g), {.pinned = true});
  for (const plan::Op& op : l.problem.ops) EXPECT_EQ(op.impls.size(), 1U);
}

TEST(Lower, NamesEveryNodeThatNoDeviceRuns) {
  const graph::Graph g = small_step();
  cost::CostTable table = unit_costs(g);
  for (const std::size_t n : {0, 2}) {
    table[graph::NodeId(n)].impls.clear();
    table[graph::NodeId(n)].why_not["cpu:0"] = "the day is wrong";
  }
  try {
    lower(g, ops::all(), kMachine, table);
    FAIL() << "must throw";
  } catch (const UserError& e) {
    EXPECT_STREQ(
        e.what(),
        "no device can run 2 of the model's nodes: 'a' (Relu) (cpu:0: the day is wrong); 'c' (Relu) (cpu:0: the "
        "day is wrong)");
  }
}

}  // namespace
}  // namespace neaptide::lower
