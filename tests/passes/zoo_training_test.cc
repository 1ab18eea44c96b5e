// Every well-known network becomes a training graph, and a small one learns by the interpreter alone.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "neaptide/autodiff/autodiff.hpp"
#include "neaptide/graph/verify.hpp"
#include "neaptide/onnx/zoo.hpp"
#include "neaptide/ops/interpret.hpp"
#include "neaptide/ops/ops.hpp"
#include "neaptide/passes/passes.hpp"

namespace neaptide::passes {
namespace {

using graph::DType;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Role;
using graph::Tensor;
using graph::ValueId;
using graph::ValueKind;

autodiff::Training training_of(const std::string& name, std::int64_t batch, const autodiff::TrainingOptions& options) {
  return autodiff::make_training(promote_to_training(onnx::make(name, batch), ops::all()), ops::all(), options);
}

/// Every update directly follows the node that makes its gradient, or an update after it.
void expect_updates_in_place(const Graph& g) {
  for (std::size_t n = 0; n < g.nodes.size(); ++n) {
    if (g.nodes[NodeId(n)].role != Role::kUpdate) continue;
    std::size_t before = n;
    while (g.nodes[NodeId(before - 1)].role == Role::kUpdate) --before;
    const NodeId last = NodeId(before - 1);
    NodeId maker = g.values[g.nodes[NodeId(n)].inputs[1]].producer;
    // A gradient may complete in the node before the last one when that one serves another input of the same layer.
    EXPECT_LE(last.value - maker.value, 2) << g.nodes[NodeId(n)].name;
  }
}

TEST(ZooTraining, EveryNetworkHasATrainingGraph) {
  for (const std::string& name : onnx::zoo_names()) {
    SCOPED_TRACE(name);
    const Graph forward = promote_to_training(onnx::make(name, 2), ops::all());
    const bool matrix = forward.values[forward.outputs[0]].type.shape.size() == 2;
    const autodiff::Training t = autodiff::make_training(
        forward, ops::all(),
        {.loss = matrix ? autodiff::Loss::kSoftmaxCrossEntropy : autodiff::Loss::kMeanSquaredError});
    const Graph g = remove_dead(t.graph, ops::all());
    EXPECT_EQ(verify(g, ops::all()), std::vector<std::string>());
    std::size_t updates = 0;
    for (const Node& n : g.nodes) updates += n.op == "MomentumUpdate" ? 1 : 0;
    EXPECT_EQ(updates, values_of_kind(g, ValueKind::kParameter).size());
    expect_updates_in_place(g);
  }
}

Tensor noise(const graph::TensorType& type, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<float> values(static_cast<std::size_t>(type.elements()));
  for (float& v : values) v = static_cast<float>(generator()) / 2147483648.0F - 1.0F;
  return graph::tensor_of(type.dtype, type.shape, values);
}

TEST(ZooTraining, ASmallNetworkLearnsABatchByHeart) {
  const autodiff::Training t = training_of("lenet", 4, {.optimizer = autodiff::Optimizer::kMomentum});
  ops::Feeds feeds{{t.inputs[0], noise(t.graph.values[t.inputs[0]].type, 3)},
                   {t.labels, graph::tensor_of(DType::kI64, {4}, std::vector<std::int64_t>{1, 0, 3, 2})},
                   {t.lr, graph::tensor_of(DType::kF32, {}, std::vector<float>{0.02F})}};
  std::vector<float> losses;
  std::int64_t correct = 0;
  for (std::int64_t step = 0; step < 12; ++step) {
    feeds[t.rng] = graph::tensor_of(DType::kI64, {2}, std::vector<std::int64_t>{5, step});
    const ops::Values values = ops::interpret(t.graph, ops::all(), feeds);
    losses.push_back(values[t.loss].as<float>()[0]);
    correct = values[t.correct].as<std::int64_t>()[0];
    for (auto& [id, tensor] : ops::next_versions(t.graph, ops::all(), values)) feeds[id] = tensor;
  }
  EXPECT_LT(losses.back(), 0.3F * losses.front());
  EXPECT_EQ(correct, 4);
}

}  // namespace
}  // namespace neaptide::passes
