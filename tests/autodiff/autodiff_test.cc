#include "neaptide/autodiff/autodiff.hpp"

#include <gtest/gtest.h>

#include "../ops/check.hpp"
#include "neaptide/base/errors.hpp"
#include "neaptide/graph/verify.hpp"
#include "neaptide/ops/ops.hpp"

namespace neaptide::autodiff {
namespace {

using graph::Builder;
using graph::DType;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Role;
using graph::Tensor;
using graph::tensor_of;
using graph::ValueId;
using graph::ValueKind;
using ops::check_op;
using ops::random_tensor;

Tensor f32(const graph::Shape& shape, unsigned seed) {
  return ops::to_dtype(random_tensor(shape, seed, -0.5, 0.5), DType::kF32);
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
    return "";
  } catch (const UserError& e) {
    return e.what();
  }
}

TEST(Backward, GradientsThatMeetAreAdded) {
  check_op({random_tensor({2, 3}, 1), random_tensor({2, 3}, 2)}, [](Builder& b, const std::vector<ValueId>& x) {
    const ValueId t = b.add("Tanh", {x[0]}), s = b.add("Sigmoid", {t}), m = b.add("Mul", {t, x[1]});
    return std::vector{b.add("Sum", {t, s, m, b.add("Mul", {t, t})}), b.add("Add", {m, x[0]})};
  });
}

TEST(Backward, TheOrderOfAdditionIsReverseNodeOrder) {
  Builder b(ops::all());
  const ValueId x = b.input("x", {DType::kF32, {2}});
  const ValueId first = b.add("Tanh", {x}, {}, "first"), second = b.add("Tanh", {x}, {}, "second");
  const ValueId third = b.add("Tanh", {x}, {}, "third");
  const ValueId y = b.add("Sum", {first, second, third});
  append_backward(b, {y}, {b.input("dy", {DType::kF32, {2}})}, {x});
  const Graph g = b.take({y});
  std::vector<std::string> sums;
  for (const Node& n : g.nodes) {
    if (n.op != "Add") continue;
    for (const ValueId v : n.inputs) sums.push_back(g.values[v].name);
    EXPECT_EQ(n.role, Role::kBackward);
  }
  EXPECT_EQ(sums, (std::vector<std::string>{"third.grad.out", "second.grad.out", "x.grad_sum.out", "first.grad.out"}));
}

TEST(Backward, WhatTheLossDoesNotDependOnHasNoGradient) {
  Builder b(ops::all());
  const ValueId x = b.input("x", {DType::kF64, {2}}), other = b.input("other", {DType::kF64, {2}});
  b.add("Tanh", {other});
  const ValueId loss = b.add("ReduceSum", {x}, {{"keepdims", std::int64_t{0}}});
  const std::vector<ValueId> gradients = append_backward(b, loss, {x, other});
  EXPECT_TRUE(gradients[0].valid());
  EXPECT_FALSE(gradients[1].valid());
}

TEST(Backward, NothingIsEmittedTowardsValuesThatNeedNoGradient) {
  Builder b(ops::all());
  const ValueId x = b.input("x", {DType::kF64, {2, 3}}), w = b.input("w", {DType::kF64, {3, 4}});
  const ValueId y = b.add("Gemm", {b.add("Tanh", {x}), w});
  append_backward(b, {y}, {b.input("dy", {DType::kF64, {2, 4}})}, {w});
  std::vector<std::string> backward;
  for (const Node& n : b.graph().nodes) {
    if (n.role == Role::kBackward) backward.push_back(n.name);
  }
  EXPECT_EQ(backward, (std::vector<std::string>{"gemm.grad_b"}));
}

TEST(Backward, GradientsFlowThroughALossInTheMiddle) {
  check_op({random_tensor({2, 3}, 1), random_tensor({}, 2)}, [](Builder& b, const std::vector<ValueId>& x) {
    const ValueId loss = b.add("MeanSquaredError", {x[0], b.add("Tanh", {x[0]})});
    return std::vector{b.add("Mul", {loss, x[1]})};
  });
}

TEST(Backward, NamesTheOperatorWithoutAGradient) {
  EXPECT_EQ(message_of([] {
              Builder b(ops::all());
              const ValueId x = b.input("x", {DType::kF64, {2, 3}});
              const ValueId y = b.add("TanhGrad", {x, x}, {}, "odd");
              append_backward(b, {y}, {b.input("dy", {DType::kF64, {2, 3}})}, {x});
            }),
            "node 'odd' (TanhGrad): has no gradient, and stands between the loss and a trained parameter");
}

TEST(Backward, ALossHasOneElement) {
  EXPECT_EQ(message_of([] {
              Builder b(ops::all());
              const ValueId x = b.input("x", {DType::kF64, {2}});
              append_backward(b, x, {x});
            }),
            "'x' is f64[2]; a loss must have one element");
}

// ---- make_training
// -----------------------------------------------------------------------------------------------------

/// x -> Gemm(w1) -> Relu -> Gemm(w2) [-> last]
Graph two_layers(const std::string& last = "", const std::string& x_name = "x") {
  Builder b(ops::all());
  const ValueId x = b.input(x_name, {DType::kF32, {4, 5}});
  const ValueId w1 = b.parameter("w1", f32({5, 6}, 1)), w2 = b.parameter("w2", f32({6, 3}, 2));
  ValueId y = b.add("Gemm", {b.add("Relu", {b.add("Gemm", {x, w1}, {}, "fc1")}), w2}, {}, "fc2");
  if (!last.empty()) y = b.add(last, {y}, {}, "last");
  return b.take({y});
}

TEST(Training, EveryUpdateStandsRightAfterTheNodeThatCompletesItsGradient) {
  for (const Optimizer optimizer :
       {Optimizer::kSgd, Optimizer::kMomentum, Optimizer::kNesterov, Optimizer::kAdam, Optimizer::kAdamW}) {
    const Training t = make_training(two_layers(), ops::all(), {.optimizer = optimizer});
    std::vector<std::string> names;
    for (const Node& n : t.graph.nodes) names.push_back(n.name);
    EXPECT_EQ(names, (std::vector<std::string>{"fc1", "relu", "fc2", "softmaxcrossentropy", "countcorrect",
                                               "softmaxcrossentropy.grad", "fc2.grad_a", "fc2.grad_b", "w2.update",
                                               "relu.grad", "fc1.grad_b", "w1.update"}));
    EXPECT_TRUE(verify(t.graph, ops::all()).empty());
  }
}

TEST(Training, SaysWhatASessionFeedsAndReads) {
  const Training t = make_training(two_layers(), ops::all(), {.optimizer = Optimizer::kAdam});
  const auto name = [&](ValueId v) { return t.graph.values[v].name; };
  EXPECT_EQ(name(t.inputs.at(0)), "x");
  EXPECT_EQ(t.inputs.size(), 1U);
  EXPECT_EQ(name(t.labels), "labels");
  EXPECT_EQ(to_string(t.graph.values[t.labels].type), "i64[4]");
  EXPECT_EQ(name(t.lr), "lr");
  EXPECT_EQ(name(t.rng), "rng");
  EXPECT_EQ(name(t.loss), "loss");
  EXPECT_EQ(name(t.correct), "correct");
  EXPECT_EQ(name(t.output), "fc2.out");
  EXPECT_EQ(t.graph.outputs, (std::vector<ValueId>{t.loss, t.correct}));
  std::vector<std::string> state;
  for (const ValueId v : values_of_kind(t.graph, ValueKind::kState)) state.push_back(name(v));
  EXPECT_EQ(state, (std::vector<std::string>{"w2.adam_m", "w2.adam_v", "w1.adam_m", "w1.adam_v"}));
}

TEST(Training, ReusesTheRngInputThatPromotionMade) {
  Builder b(ops::all(), two_layers());
  const ValueId rng = b.input("rng", {DType::kI64, {2}});
  const Training t = make_training(b.take(b.graph().outputs), ops::all(), {});
  EXPECT_EQ(t.rng, rng);
  EXPECT_EQ(t.inputs.size(), 1U);
}

TEST(Training, TheLossReadsTheLogitsBeforeASoftmax) {
  const Training t = make_training(two_layers("Softmax"), ops::all(), {});
  EXPECT_EQ(t.graph.values[t.output].name, "fc2.out");
  EXPECT_EQ(t.graph.notes,
            (std::vector<std::string>{"the loss reads the input of 'last' (Softmax): cross entropy takes logits"}));
}

TEST(Training, AMeanSquaredErrorHasATargetOfTheOutputsType) {
  const Training t = make_training(two_layers("Softmax"), ops::all(), {.loss = Loss::kMeanSquaredError});
  EXPECT_EQ(to_string(t.graph.values[t.labels].type), "f32[4x3]");
  EXPECT_FALSE(t.correct.valid());
  EXPECT_EQ(t.graph.values[t.output].name, "last.out");
}

TEST(Training, FrozenParametersAreNotUpdated) {
  const Training t = make_training(two_layers(), ops::all(), {.frozen = {"w2"}});
  EXPECT_TRUE(find_node(t.graph, "w1.update").valid());
  EXPECT_FALSE(find_node(t.graph, "w2.update").valid());
  EXPECT_FALSE(find_node(t.graph, "fc2.grad_b").valid());
}

TEST(Training, LogitsMayHaveTrailingOnes) {
  Builder b(ops::all());
  const ValueId x = b.input("x", {DType::kF32, {4, 3, 1, 1}});
  const ValueId y = b.add("Mul", {x, b.parameter("w", f32({3, 1, 1}, 1))});
  const Training t = make_training(b.take({y}), ops::all(), {});
  EXPECT_EQ(to_string(t.graph.values[t.output].type), "f32[4x3]");
}

TEST(Training, AParameterReadTwiceIsUpdatedOnceAfterBoth) {
  Builder b(ops::all());
  const ValueId x = b.input("x", {DType::kF32, {4, 3}}), w = b.parameter("w", f32({3, 3}, 1));
  const ValueId y = b.add("Gemm", {b.add("Gemm", {x, w}, {}, "fc1"), w}, {}, "fc2");
  const Training t = make_training(b.take({y}), ops::all(), {.optimizer = Optimizer::kSgd});
  std::vector<std::string> tail;
  for (std::size_t n = t.graph.nodes.size() - 3; n < t.graph.nodes.size(); ++n)
    tail.push_back(t.graph.nodes[NodeId(n)].name);
  EXPECT_EQ(tail, (std::vector<std::string>{"fc1.grad_b", "w.grad_sum", "w.update"}));
}

TEST(Training, Refusals) {
  const auto make = [](const Graph& g, const TrainingOptions& o) {
    return message_of([&] { make_training(g, ops::all(), o); });
  };
  EXPECT_EQ(make(two_layers(), {.frozen = {"w3"}}), "there is no parameter 'w3' to freeze; did you mean 'w1'?");
  EXPECT_EQ(make(two_layers(), {.frozen = {"w1", "w2"}}), "graph '' has no parameter to train");
  EXPECT_EQ(make(two_layers(), {.output = "fc2.ou"}), "graph '' has no output 'fc2.ou'; did you mean 'fc2.out'?");
  EXPECT_EQ(make(two_layers("", "labels"), {}),
            "the name 'labels' is reserved for an input of the training step; rename the model's value");
  EXPECT_EQ(make(two_layers("", "rng"), {}),
            "the name 'rng' is reserved for the input i64[2] of seed and step; value 'rng' is f32[4x5]");
  Builder b(ops::all());
  const ValueId y = b.add("Mul", {b.input("x", {DType::kF32, {4, 3, 2}}), b.parameter("w", f32({2}, 1))});
  EXPECT_EQ(make(b.take({y}), {}),
            "output 'mul.out' is f32[4x3x2]; cross entropy needs a row of class scores for each sample");
}

}  // namespace
}  // namespace neaptide::autodiff
