#include <gtest/gtest.h>

#include "neaptide/graph/builder.hpp"
#include "neaptide/graph/verify.hpp"
#include "neaptide/ops/interpret.hpp"
#include "neaptide/ops/ops.hpp"
#include "neaptide/passes/passes.hpp"
#include "tests/ops/check.hpp"

namespace neaptide::passes {
namespace {

using graph::Builder;
using graph::DType;
using graph::Graph;
using graph::ValueId;
using ops::random_tensor;

std::vector<std::string> operators(const Graph& g) {
  std::vector<std::string> names;
  for (const graph::Node& n : g.nodes) names.push_back(n.op);
  return names;
}

/// The fused graph computes the same outputs as `before`, to the bit.
Graph expect_same(const Graph& before, const std::vector<graph::Tensor>& inputs) {
  const Graph after = fuse_activations(before, ops::all());
  EXPECT_TRUE(verify(after, ops::all()).empty());
  const auto evaluate = [&](const Graph& g) {
    ops::Feeds feeds;
    for (const ValueId v : graph::values_of_kind(g, graph::ValueKind::kInput)) feeds.emplace(v, inputs[feeds.size()]);
    const ops::Values values = ops::interpret(g, ops::all(), feeds);
    std::vector<graph::Tensor> out;
    for (const ValueId v : g.outputs) out.push_back(values[v]);
    return out;
  };
  EXPECT_EQ(evaluate(before), evaluate(after));
  return after;
}

TEST(FuseActivations, TakesReluIntoConvolutionNormalisationAndSum) {
  Builder b(ops::all());
  const ValueId x = b.input("x", {DType::kF64, {2, 3, 5, 5}});
  const ValueId w = b.parameter("w", random_tensor({3, 3, 1, 1}, 2));
  const ValueId scale = b.parameter("scale", random_tensor({3}, 3)),
                shift = b.parameter("shift", random_tensor({3}, 4));
  const ValueId conv = b.add("Relu", {b.add("Conv", {x, w})});
  const ValueId norm = b.add("Relu", {b.add("BatchNormTrain", {conv, scale, shift})});
  const ValueId sum = b.add("Relu", {b.add("Add", {norm, x})});
  const Graph after = expect_same(b.take({sum}), {random_tensor({2, 3, 5, 5}, 1)});
  EXPECT_EQ(operators(after), (std::vector<std::string>{"Conv", "BatchNormTrain", "Add"}));
}

TEST(FuseActivations, KeepsWhatSomethingElseReads) {
  Builder b(ops::all());
  const ValueId x = b.input("x", {DType::kF64, {4}});
  const ValueId read_twice = b.add("Add", {x, x}), given = b.add("Add", {x, read_twice});
  const ValueId y = b.add("Sub", {b.add("Relu", {read_twice}), read_twice}), z = b.add("Relu", {given});
  const Graph after = expect_same(b.take({y, z, given}), {random_tensor({4}, 1)});
  EXPECT_EQ(operators(after), (std::vector<std::string>{"Add", "Add", "Relu", "Sub", "Relu"}));
}

TEST(FuseActivations, LeavesIntegersAndOtherOperatorsAlone) {
  Builder b(ops::all());
  const ValueId i = b.input("i", {DType::kI64, {2}});
  const ValueId x = b.input("x", {DType::kF64, {2}});
  const ValueId y = b.add("Relu", {b.add("Add", {i, i})}), z = b.add("Relu", {b.add("Mul", {x, x})});
  const Graph after = expect_same(b.take({y, z}), {ops::integers({2}, {-3, 4}), random_tensor({2}, 1)});
  EXPECT_EQ(after.nodes.size(), 4U);
}

}  // namespace
}  // namespace neaptide::passes
