#include <gmock/gmock.h>

#include "case.hpp"
#include "neaptide/ops/ops.hpp"

namespace neaptide::ops {
namespace {

using graph::Shape;
using testing::ElementsAre;

Case train_case(const Shape& shape, const std::string& activation) {
  return {
      .op = "BatchNormTrain",
      .attrs = {{"activation", activation}, {"epsilon", 1e-3}},
      .inputs = {random_tensor(shape, 1, -2, 3), random_tensor({shape[1]}, 2, 0.5, 2), random_tensor({shape[1]}, 3)}};
}

const std::vector<Shape> kShapes = {{4, 3, 3, 2}, {5, 2}, {2, 3, 7}, {1, 2, 2, 3, 2}, {3, 1, 1, 1}};

TEST(BatchNormTrain, GradientsMatchFiniteDifferences) {
  for (const Shape& shape : kShapes) {
    for (const std::string activation : {"", "relu"}) check_case(train_case(shape, activation));
  }
}

TEST(BatchNormTrain, ReluHasThreeWaysBack) {
  EXPECT_THAT(implementation_names(train_case({2, 3, 7}, "")),
              ElementsAre("BatchNormTrain.plain", "BatchNormTrainGrad.plain", "BatchNormTrainGrad.in-place"));
  EXPECT_THAT(implementation_names(train_case({2, 3, 7}, "relu")),
              ElementsAre("BatchNormTrain.plain", "BatchNormTrain.mask", "BatchNormTrainGrad.from-output",
                          "BatchNormTrainGrad.from-output-in-place", "BatchNormTrainGrad.from-mask",
                          "BatchNormTrainGrad.from-mask-in-place", "BatchNormTrainGrad.from-input",
                          "BatchNormTrainGrad.from-input-in-place"));
}

TEST(BatchNormTrain, OnlyTheGradientsWantedAreComputed) {
  for (const std::string activation : {"", "relu"}) {
    Case c = train_case({3, 2, 4}, activation);
    c.fixed = {0};
    check_case(c);
    c.fixed = {1, 2};
    check_case(c);
  }
}

TEST(BatchNormTrain, StatisticsAreThoseOfThePopulation) {
  Case c{.op = "BatchNormTrain", .inputs = {reals({4, 1}, {1, 2, 3, 6}), reals({1}, {1}), reals({1}, {0})}};
  const Built built = build(c);
  const Values values = evaluate(built, c, reals({4, 1}, {1, 0, 0, 0}));
  const graph::Node& node = built.graph.nodes[graph::NodeId(0)];
  EXPECT_THAT(to_doubles(values[node.outputs[1]]), ElementsAre(3));
  EXPECT_THAT(to_doubles(values[node.outputs[2]]), ElementsAre(3.5));
}

TEST(BatchNormTrain, RefusalsSayWhatWouldBeRight) {
  Case c = train_case({4, 3, 2}, "tanh");
  EXPECT_EQ(refusal(c),
            "node 'batchnormtrain' (BatchNormTrain): activation 'tanh' is unknown; 'relu' or none is needed");
  c = train_case({4, 3, 2}, "");
  c.inputs[1] = random_tensor({4}, 1);
  EXPECT_EQ(refusal(c), "node 'batchnormtrain' (BatchNormTrain): input 1 is f64[4]; f64[3] is needed");
  c = train_case({0, 3, 2}, "");
  EXPECT_EQ(refusal(c), "node 'batchnormtrain' (BatchNormTrain): the input 0x3x2 is empty");
}

TEST(BatchNormalization, UsesTheStatisticsGiven) {
  const auto vector = [](const std::vector<double>& values) { return reals({2}, values); };
  Case c{.op = "BatchNormalization",
         .attrs = {{"epsilon", 1.0}},
         .inputs = {reals({1, 2, 2}, {1, 3, 5, 7}), vector({2, 4}), vector({0, 1}), vector({1, 5}), vector({3, 15})}};
  const Built built = build(c, false);
  EXPECT_THAT(to_doubles(evaluate(built, c)[built.y]), ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(implementation_names(c), ElementsAre("BatchNormalization.plain", "BatchNormalization.in-place"));
  c.attrs["training_mode"] = std::int64_t{1};
  EXPECT_EQ(refusal(c),
            "node 'batchnormalization' (BatchNormalization): training_mode is 1; BatchNormTrain computes that");
}

TEST(RunningStatistics, KeepsMomentumOfTheOld) {
  Case c{.op = "RunningStatistics", .attrs = {{"momentum", 0.75}}, .inputs = {reals({2}, {4, 8}), reals({2}, {8, 0})}};
  const Built built = build(c, false);
  EXPECT_THAT(to_doubles(evaluate(built, c)[built.y]), ElementsAre(5, 6));
  EXPECT_TRUE(all().at("RunningStatistics").once);
}

}  // namespace
}  // namespace neaptide::ops
