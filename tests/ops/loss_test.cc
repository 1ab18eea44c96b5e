#include <cmath>

#include "check.hpp"
#include "neaptide/autodiff/autodiff.hpp"
#include "neaptide/ops/ops.hpp"

namespace neaptide::ops {
namespace {

using graph::Builder;
using graph::DType;
using graph::ValueId;

MakeOp op(const std::string& name) {
  return [=](Builder& b, const std::vector<ValueId>& x) { return std::vector{b.add(name, x)}; };
}

TEST(Loss, CrossEntropyGradientScaledByWhatReachesIt) {
  check_op({random_tensor({4, 3}, 1, -2, 2), integers({4}, {0, 2, 1, 2})}, op("SoftmaxCrossEntropy"));
  check_op({random_tensor({1, 2}, 1), integers({1}, {1})}, op("SoftmaxCrossEntropy"));
}

TEST(Loss, MeanSquaredErrorGradients) {
  check_op({random_tensor({4, 3}, 1), random_tensor({4, 3}, 2)}, op("MeanSquaredError"));
  check_op({random_tensor({}, 1), random_tensor({}, 2)}, op("MeanSquaredError"));
}

TEST(Loss, TheGradientOfTheLossItselfIsOne) {
  Builder b(all());
  const ValueId x = b.input("x", {DType::kF64, {2, 2}}), labels = b.input("labels", {DType::kI64, {2}});
  const ValueId loss = b.add("SoftmaxCrossEntropy", {x, labels});
  const ValueId dx = autodiff::append_backward(b, loss, {x})[0];
  const graph::Graph g = b.take({loss, dx});
  EXPECT_TRUE(values_of_kind(g, graph::ValueKind::kConstant).empty());
  const Values v = expect_implementations_agree(
      g, {{x, reals({2, 2}, {0, std::log(3.0), 0, 0})}, {labels, integers({2}, {1, 0})}}, 1e-14);
  EXPECT_NEAR(to_doubles(v[loss])[0], (-std::log(0.75) - std::log(0.5)) / 2, 1e-14);
  expect_close(v[dx], reals({2, 2}, {0.125, -0.125, -0.25, 0.25}), 1e-14, "dx");
}

TEST(Loss, BothWaysToTheGradientGiveTheSameBits) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    Builder b(all());
    const ValueId x = b.input("x", {dtype, {5, 4}}), labels = b.input("labels", {DType::kI64, {5}});
    const ValueId loss = b.add("SoftmaxCrossEntropy", {x, labels});
    const ValueId dx = autodiff::append_backward(b, loss, {x})[0];
    const graph::Graph g = b.take({loss, dx});
    expect_implementations_agree(
        g, {{x, to_dtype(random_tensor({5, 4}, 3, -4, 4), dtype)}, {labels, integers({5}, {0, 1, 2, 3, 0})}}, 0);
  }
}

TEST(Loss, ALabelOutsideTheClassesMakesTheLossNaN) {
  const auto y = evaluate({random_tensor({2, 3}, 1), integers({2}, {0, 3})}, op("SoftmaxCrossEntropy"));
  EXPECT_TRUE(std::isnan(to_doubles(y[0])[0]));
}

TEST(Loss, CountCorrectTakesTheFirstLargest) {
  const auto n = evaluate({reals({4, 2}, {1, 1, 1, 1, 0, 2, 3, 2}), integers({4}, {0, 1, 1, 0})}, op("CountCorrect"));
  EXPECT_EQ(to_doubles(n[0]), (std::vector<double>{3}));
  EXPECT_EQ(n[0].type, (graph::TensorType{DType::kI64, {}}));
}

TEST(Loss, Refusals) {
  EXPECT_EQ(refusal({random_tensor({2, 3}, 1), integers({3}, {0, 1, 2})}, op("SoftmaxCrossEntropy")),
            "node 'softmaxcrossentropy' (SoftmaxCrossEntropy): the labels are i64[3]; i64[2] is needed");
  EXPECT_EQ(refusal({random_tensor({2}, 1), integers({2}, {0, 1})}, op("CountCorrect")),
            "node 'countcorrect' (CountCorrect): the logits are f64[2]; [samples, classes] is needed");
}

}  // namespace
}  // namespace neaptide::ops
