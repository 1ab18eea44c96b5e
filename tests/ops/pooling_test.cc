#include <gmock/gmock.h>

#include <cmath>

#include "case.hpp"
#include "neaptide/ops/ops.hpp"

namespace neaptide::ops {
namespace {

using graph::DType;
using graph::Shape;
using graph::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;
using Ints = std::vector<std::int64_t>;

constexpr std::int64_t kOne = 1;

struct Config {
  Shape x;
  graph::Attrs attrs;
};

/// Distinct values, so that every window has one maximum.
Tensor shuffled(const Shape& shape) {
  const auto n = graph::n_elements(shape);
  std::vector<double> values;
  for (std::int64_t i = 0; i < n; ++i) values.push_back(static_cast<double>((i * 7919 + 13) % n) / 16 - 2);
  return reals(shape, values);
}

Case pool_case(const std::string& op, const Config& config) {
  return {.op = op, .attrs = config.attrs, .inputs = {shuffled(config.x)}};
}

std::vector<Config> configs() {
  const std::string upper = "SAME_UPPER", lower = "SAME_LOWER", valid = "VALID";
  return {
      {{2, 3, 6, 7}, {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}}},
      {{1, 2, 7, 7}, {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}}},
      {{1, 2, 7, 7}, {{"kernel_shape", Ints{3, 2}}, {"strides", Ints{2, 3}}, {"ceil_mode", kOne}}},
      {{1, 1, 6, 6},
       {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 4}}, {"ceil_mode", kOne}, {"pads", Ints{1, 0, 0, 1}}}},
      {{1, 2, 8, 9}, {{"kernel_shape", Ints{3, 2}}, {"dilations", Ints{2, 3}}, {"pads", Ints{1, 1, 2, 0}}}},
      {{1, 2, 7, 8}, {{"kernel_shape", Ints{4, 3}}, {"strides", Ints{2, 3}}, {"auto_pad", upper}}},
      {{1, 2, 7, 8}, {{"kernel_shape", Ints{4, 3}}, {"strides", Ints{2, 3}}, {"auto_pad", lower}}},
      {{1, 2, 7, 8}, {{"kernel_shape", Ints{4, 3}}, {"strides", Ints{2, 3}}, {"auto_pad", valid}}},
      {{2, 2, 9}, {{"kernel_shape", Ints{3}}, {"strides", Ints{2}}, {"pads", Ints{1, 0}}}},
      {{1, 2, 4, 5, 4},
       {{"kernel_shape", Ints{2, 3, 2}}, {"strides", Ints{2, 1, 1}}, {"pads", Ints{0, 1, 0, 1, 1, 1}}}},
      {{1, 1, 20, 18}, {{"kernel_shape", Ints{17, 16}}}},  // more than 256 positions
  };
}

TEST(MaxPool, GradientsMatchFiniteDifferences) {
  for (const Config& config : configs()) {
    check_case(pool_case("MaxPool", config));
    EXPECT_THAT(implementation_names(pool_case("MaxPool", config)),
                ElementsAre("MaxPool.plain", "MaxPool.index", "MaxPoolGrad.from-input", "MaxPoolGrad.from-index"));
  }
}

TEST(MaxPool, IndexIsAByteWhileTheWindowAllowsIt) {
  const auto index_type = [](Ints kernel) {
    const Built built = build(pool_case("MaxPool", {{1, 1, 20, 20}, {{"kernel_shape", kernel}}}));
    return built.graph.values[built.graph.nodes[graph::NodeId(0)].outputs[1]].type.dtype;
  };
  EXPECT_EQ(index_type({16, 16}), DType::kU8);
  EXPECT_EQ(index_type({16, 17}), DType::kI32);
}

TEST(MaxPool, TheFirstOfEqualMaximaGetsTheGradientAndANanIsAMaximum) {
  const double nan = std::nan("");
  Case c{.op = "MaxPool", .attrs = {{"kernel_shape", Ints{3}}}, .inputs = {reals({1, 1, 4}, {2, 2, 1, nan})}};
  const Built built = build(c);
  const Values values = evaluate(built, c, reals({1, 1, 2}, {5, 7}));
  EXPECT_EQ(values[built.y].as<double>()[0], 2);
  EXPECT_TRUE(std::isnan(values[built.y].as<double>()[1]));
  EXPECT_THAT(to_doubles(values[built.gradients[0]]), ElementsAre(5, 0, 0, 7));
}

TEST(MaxPool, RefusalsSayWhatWouldBeRight) {
  const auto pool = [](Config config) { return refusal(pool_case("MaxPool", config)); };
  EXPECT_EQ(pool({{1, 1, 4}, {{"kernel_shape", Ints{INT64_MAX}}}}),
            "node 'maxpool' (MaxPool): the kernel 9223372036854775807 is illegal; 1 to 2147483648 per axis is needed");
  EXPECT_EQ(pool({{1, 1, 4, 4}, {}}), "node 'maxpool' (MaxPool): attribute 'kernel_shape' is missing");
  EXPECT_EQ(pool({{1, 1, 4, 4}, {{"kernel_shape", Ints{2, 2}}, {"pads", Ints{2, 0, 0, 0}}}}),
            "node 'maxpool' (MaxPool): window 0 of an axis of 4 holds nothing but padding; smaller pads are needed");
  EXPECT_EQ(
      pool({{4, 4}, {{"kernel_shape", Ints{2, 2}}}}),
      "node 'maxpool' (MaxPool): input 0 has the shape 4x4; batch, channels and one to three spatial axes are needed");
  EXPECT_EQ(
      refusal({.op = "MaxPool", .attrs = {{"kernel_shape", Ints{2}}}, .inputs = {integers({1, 1, 4}, {1, 2, 3, 4})}}),
      "node 'maxpool' (MaxPool): computes on f32 and f64, not on i64");
}

TEST(AveragePool, GradientsMatchFiniteDifferences) {
  for (Config config : configs()) {
    for (const std::int64_t include : {0, 1}) {
      config.attrs["count_include_pad"] = include;
      check_case(pool_case("AveragePool", config));
    }
  }
}

TEST(AveragePool, DivisorCountsPaddingOnlyWhenAsked) {
  // 1 2 3 with one zero on the left and windows of 2 at every second place: (0 1) (2 3).
  const auto average = [](std::int64_t include) {
    Case c{.op = "AveragePool",
           .attrs = {{"kernel_shape", Ints{2}},
                     {"strides", Ints{2}},
                     {"pads", Ints{1, 0}},
                     {"count_include_pad", include}},
           .inputs = {reals({1, 1, 3}, {1, 2, 3})}};
    const Built built = build(c, false);
    return to_doubles(evaluate(built, c)[built.y]);
  };
  EXPECT_THAT(average(0), ElementsAre(1, 2.5));
  EXPECT_THAT(average(1), ElementsAre(0.5, 2.5));
}

TEST(GlobalAveragePool, GradientsMatchFiniteDifferences) {
  for (const Shape& shape : {Shape{2, 3, 4, 5}, Shape{1, 2, 7}, Shape{1, 2, 2, 3, 2}, Shape{3, 1, 1, 1}})
    check_case({.op = "GlobalAveragePool", .inputs = {random_tensor(shape, 4)}});
  EXPECT_THAT(refusal({.op = "GlobalAveragePool", .inputs = {random_tensor({2, 3}, 4)}}),
              HasSubstr("the shape 2x3 has no spatial elements to average"));
}

}  // namespace
}  // namespace neaptide::ops
