#include <gtest/gtest.h>

#include "neaptide/autodiff/autodiff.hpp"
#include "neaptide/graph/builder.hpp"
#include "neaptide/graph/verify.hpp"
#include "neaptide/ops/interpret.hpp"
#include "neaptide/ops/ops.hpp"
#include "neaptide/passes/passes.hpp"

namespace neaptide::passes {
namespace {

using graph::Builder;
using graph::DType;
using graph::Graph;
using graph::tensor_of;
using graph::ValueId;

std::vector<std::string> node_names(const Graph& g) {
  std::vector<std::string> names;
  for (const graph::Node& n : g.nodes) names.push_back(n.name);
  return names;
}

TEST(RemoveDead, DropsNodesThatNothingNeedsWithTheirConstants) {
  Builder b(ops::all());
  const ValueId x = b.input("x", {DType::kF32, {2}});
  const ValueId used = b.constant("used", tensor_of(DType::kF32, {2}, std::vector<float>{1, 2}));
  const ValueId unused = b.constant("unused", tensor_of(DType::kF32, {2}, std::vector<float>{3, 4}));
  const ValueId dead = b.add("Mul", {x, unused}, {}, "dead");
  b.add("Tanh", {dead}, {}, "deader");
  const ValueId y = b.add("Add", {x, used}, {}, "alive");
  const Graph before = b.take({y});
  const Graph after = remove_dead(before, ops::all());
  EXPECT_EQ(node_names(after), (std::vector<std::string>{"alive"}));
  EXPECT_FALSE(find_value(after, "unused").valid());
  EXPECT_EQ(after.data.size(), 1U);
  EXPECT_TRUE(verify(after, ops::all()).empty());
  const ops::Feeds feeds{{find_value(after, "x"), tensor_of(DType::kF32, {2}, std::vector<float>{5, 6})}};
  EXPECT_EQ(ops::interpret(after, ops::all(), feeds)[after.outputs[0]].as<float>()[1], 8);
}

TEST(RemoveDead, DropsOptionalOutputsThatNothingReads) {
  Builder b(ops::all());
  const ValueId x = b.input("x", {DType::kF32, {2}});
  const auto y = b.add({.op = "Relu", .inputs = {x}, .wanted = {true, true}});
  const Graph after = remove_dead(b.take({y[0]}), ops::all());
  EXPECT_EQ(after.nodes[graph::NodeId(std::size_t{0})].outputs.size(), 1U);
  EXPECT_EQ(after.values.size(), 2U);
}

TEST(RemoveDead, KeepsEffects) {
  Builder b(ops::all());
  const ValueId x = b.input("x", {DType::kF32, {2, 3}});
  const ValueId w = b.parameter("w", tensor_of(DType::kF32, {3}, std::vector<float>{1, 2, 3}));
  const ValueId y = b.add("Softmax", {b.add("Mul", {x, w})});
  const autodiff::Training t = autodiff::make_training(b.take({y}), ops::all(), {});
  const Graph after = remove_dead(t.graph, ops::all());
  EXPECT_TRUE(find_node(after, "w.update").valid());
  EXPECT_FALSE(find_node(after, "softmax").valid());
  EXPECT_TRUE(verify(after, ops::all()).empty());
}

TEST(RemoveDead, LeavesALiveGraphAsItIs) {
  Builder b(ops::all());
  const ValueId x = b.input("x", {DType::kF32, {2}});
  const Graph g = b.take({b.add("Tanh", {x})});
  EXPECT_EQ(remove_dead(g, ops::all()), g);
}

}  // namespace
}  // namespace neaptide::passes
