#include <gtest/gtest.h>

#include <algorithm>

#include "neaptide/base/errors.hpp"
#include "neaptide/graph/builder.hpp"
#include "neaptide/graph/text.hpp"
#include "neaptide/ops/interpret.hpp"
#include "neaptide/ops/ops.hpp"
#include "neaptide/passes/passes.hpp"

namespace neaptide::passes {
namespace {

using graph::Builder;
using graph::DType;
using graph::Graph;
using graph::Tensor;
using graph::ValueId;

Tensor floats(const std::vector<float>& v) {
  return graph::tensor_of(DType::kF32, {static_cast<std::int64_t>(v.size())}, v);
}

/// x -> BatchNormalization -> Dropout -> BatchNormalization with the same statistics.
Graph inference_graph(double ratio = 0.5) {
  Builder b(ops::all());
  const ValueId x = b.input("x", {DType::kF32, {2, 2, 1, 2}});
  const ValueId scale = b.parameter("scale", floats({1, 2})), bias = b.parameter("bias", floats({0, 1}));
  const ValueId mean = b.constant("mean", floats({0, 0})), var = b.constant("var", floats({1, 1}));
  ValueId y = b.add("BatchNormalization", {x, scale, bias, mean, var}, {{"epsilon", 0.25}, {"momentum", 0.5}}, "bn1");
  y = b.add("Dropout", {y}, {{"ratio", ratio}}, "drop");
  y = b.add("BatchNormalization", {y, scale, bias, mean, var}, {}, "bn2");
  return b.take({y});
}

TEST(PromoteToTraining, SplitsNormalisationFromItsStatistics) {
  const Graph g = promote_to_training(inference_graph(), ops::all());
  const std::string text = graph::to_text(g);
  EXPECT_NE(
      text.find("%bn1.out, %bn1.batch_mean#8, %bn1.batch_var = BatchNormTrain(%x, %scale, %bias) "
                "{epsilon = 0.25} \"bn1\" forward\n"
                "%mean.next = RunningStatistics(%mean, %bn1.batch_mean) {momentum = 0.5} \"bn1.running_mean\" "
                "forward\n"
                "%var.next = RunningStatistics(%var, %bn1.batch_var) {momentum = 0.5} \"bn1.running_var\" forward"),
      std::string::npos)
      << text;
  EXPECT_EQ(g.values[graph::find_value(g, "mean")].kind, graph::ValueKind::kState);
  EXPECT_EQ(g.notes, (std::vector<std::string>{
                         "2 BatchNormalization nodes normalise by the batch and update their running statistics",
                         "1 Dropout nodes drop values"}));
}

TEST(PromoteToTraining, GivesEachNodeStatisticsOfItsOwn) {
  const Graph g = promote_to_training(inference_graph(), ops::all());
  const graph::Node& second = g.nodes[graph::find_node(g, "bn2.running_mean")];
  EXPECT_EQ(g.values[second.inputs[0]].name, "mean_1");
  EXPECT_EQ(g.data.at(second.inputs[0]), g.data.at(graph::find_value(g, "mean")));
}

TEST(PromoteToTraining, DrawsDropoutFromTheInputRng) {
  const Graph g = promote_to_training(inference_graph(), ops::all());
  const graph::Node& drop = g.nodes[graph::find_node(g, "drop")];
  EXPECT_EQ(drop.op, "DropoutTrain");
  EXPECT_EQ(std::get<double>(drop.attrs.at("ratio")), 0.5);
  EXPECT_EQ(std::get<std::int64_t>(drop.attrs.at("stream")), 0);
  EXPECT_EQ(g.values[drop.inputs[1]].name, "rng");
  EXPECT_EQ(graph::to_string(g.values[drop.inputs[1]].type), "i64[2]");
}

TEST(PromoteToTraining, ComputesBatchStatisticsAndMovesTheRunningOnes) {
  const Graph g = promote_to_training(inference_graph(0), ops::all());
  EXPECT_FALSE(graph::find_value(g, "rng").valid());  // a ratio of 0 drops nothing
  const Tensor x = graph::tensor_of(DType::kF32, {2, 2, 1, 2}, std::vector<float>{1, 3, 0, 0, 5, 7, 2, 2});
  const ops::Values values = ops::interpret(g, ops::all(), {{graph::find_value(g, "x"), x}});
  const auto of = [&](const char* name) { return values[graph::find_value(g, name)].as<float>(); };
  EXPECT_FLOAT_EQ(of("bn1.batch_mean")[0], 4);
  EXPECT_FLOAT_EQ(of("bn1.batch_mean")[1], 1);
  EXPECT_FLOAT_EQ(of("mean.next")[0], 2);  // halfway from 0
  EXPECT_FLOAT_EQ(of("var.next")[0], 3);   // halfway from 1 to 5
}

TEST(PromoteToTraining, LeavesOtherGraphsAlone) {
  Builder b(ops::all());
  const Graph g = b.take({b.add("Relu", {b.input("x", {DType::kF32, {2}})}, {}, "act")});
  EXPECT_EQ(promote_to_training(g, ops::all()), g);
}

std::string error_of(const Graph& g) {
  try {
    promote_to_training(g, ops::all());
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

TEST(PromoteToTraining, NamesWhatStandsInItsWay) {
  Builder b(ops::all());
  const ValueId x = b.input("rng", {DType::kF32, {2, 2}});
  EXPECT_EQ(error_of(b.take({b.add("Dropout", {x}, {}, "drop")})),
            "the name 'rng' is reserved for the input i64[2] of seed and step; value 'rng' is f32[2x2]");
  Builder c(ops::all());
  const ValueId in = c.input("x", {DType::kF32, {2, 2}});
  const ValueId one = c.parameter("one", floats({1, 1}));
  const ValueId mean = c.add("Relu", {one}, {}, "mean");
  EXPECT_EQ(
      error_of(c.take({c.add("BatchNormalization", {in, one, one, mean, one}, {}, "bn")})),
      "node 'bn' (BatchNormalization): its running statistics 'mean.out' are computed; training needs them stored");
}

}  // namespace
}  // namespace neaptide::passes
