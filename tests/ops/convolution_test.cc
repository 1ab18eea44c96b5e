#include <gmock/gmock.h>

#include "case.hpp"
#include "neaptide/ops/ops.hpp"

namespace neaptide::ops {
namespace {

using graph::DType;
using graph::Shape;
using Ints = std::vector<std::int64_t>;

/// Input, weight, attributes; with a bias unless the weight says otherwise.
struct Config {
  Shape x, w;
  graph::Attrs attrs = {};
  bool bias = true;
};

Case conv_case(const std::string& op, const Config& config) {
  Case c{.op = op, .attrs = config.attrs, .inputs = {}};
  c.inputs = {random_tensor(config.x, 1), random_tensor(config.w, 2)};
  const std::int64_t groups = config.attrs.contains("group") ? std::get<std::int64_t>(config.attrs.at("group")) : 1;
  const std::int64_t outputs = op == "Conv" ? config.w[0] : config.w[1] * groups;
  if (config.bias) c.inputs.push_back(random_tensor({outputs}, 3));
  return c;
}

std::vector<Config> conv_configs() {
  const std::string upper = "SAME_UPPER", lower = "SAME_LOWER", valid = "VALID", relu = "relu";
  return {
      {{2, 2, 5, 6}, {3, 2, 3, 2}},
      {{1, 1, 1, 1}, {1, 1, 1, 1}, {}, false},
      {{2, 3, 4, 4}, {2, 3, 1, 1}, {{"strides", Ints{2, 2}}}},
      {{1, 4, 5, 5}, {4, 2, 3, 3}, {{"group", std::int64_t{2}}, {"pads", Ints{1, 1, 1, 1}}}},
      {{2, 3, 6, 5}, {6, 1, 3, 3}, {{"group", std::int64_t{3}}, {"strides", Ints{2, 1}}, {"pads", Ints{1, 0, 0, 2}}}},
      {{1, 2, 9, 8}, {2, 2, 3, 2}, {{"dilations", Ints{2, 3}}, {"strides", Ints{1, 2}}, {"pads", Ints{2, 1, 1, 3}}}},
      {{1, 2, 7, 8}, {2, 2, 4, 3}, {{"auto_pad", upper}, {"strides", Ints{2, 3}}}},
      {{1, 2, 7, 8}, {2, 2, 4, 3}, {{"auto_pad", lower}, {"strides", Ints{2, 3}}, {"dilations", Ints{1, 2}}}},
      {{1, 2, 7, 8}, {2, 2, 4, 3}, {{"auto_pad", valid}, {"strides", Ints{2, 2}}}},
      {{1, 1, 2, 2}, {1, 1, 3, 3}, {{"pads", Ints{4, 3, 4, 3}}, {"strides", Ints{3, 3}}}},
      {{2, 3, 9}, {4, 3, 3}, {{"strides", Ints{2}}, {"pads", Ints{1, 2}}}},
      {{1, 2, 3, 4, 5}, {2, 2, 2, 3, 2}, {{"pads", Ints{1, 1, 0, 0, 1, 1}}, {"strides", Ints{1, 2, 2}}}},
      {{2, 2, 5, 5}, {3, 2, 3, 3}, {{"activation", relu}, {"pads", Ints{1, 1, 1, 1}}}},
      {{2, 2, 5, 5}, {4, 1, 3, 3}, {{"activation", relu}, {"group", std::int64_t{2}}}, false},
  };
}

TEST(Conv, GradientsMatchFiniteDifferences) {
  for (const Config& config : conv_configs()) check_case(conv_case("Conv", config));
}

TEST(Conv, RowsLongerThanATileAreJoinedSeamlessly) {
  for (const std::int64_t stride : {1, 2, 3}) {
    const Config config{{1, 1, 1, 700},
                        {1, 1, 1, 5},
                        {{"strides", Ints{1, stride}}, {"pads", Ints{0, 3, 0, 2}}, {"dilations", Ints{1, 2}}}};
    check_case(conv_case("Conv", config));
  }
}

TEST(Conv, OnlyTheGradientsWantedAreComputed) {
  Case c = conv_case("Conv", {{1, 2, 4, 4}, {3, 2, 3, 3}});
  c.fixed = {0, 1};  // the bias alone
  check_case(c);
  c.fixed = {0, 2};
  check_case(c);
  const Built built = build(c);
  ASSERT_EQ(built.graph.nodes.size(), 2u);
  EXPECT_EQ(built.graph.nodes[graph::NodeId(1)].op, "ConvGradWeight");
}

TEST(Conv, WorkCountsMultipliesAndAdds) {
  const Built built = build(conv_case("Conv", {{2, 4, 5, 5}, {6, 2, 3, 3}, {{"group", std::int64_t{2}}}}));
  const graph::NodeView node(built.graph, built.graph.nodes[graph::NodeId(0)]);
  const graph::Work work = all().at("Conv").work(node);
  EXPECT_EQ(work.flops, 2.0 * 2 * 6 * 3 * 3 * 2 * 3 * 3);
  EXPECT_EQ(work.bytes, 8.0 * (2 * 4 * 25 + 6 * 2 * 9 + 6 + 2 * 6 * 9));
}

TEST(Conv, RefusalsSayWhatWouldBeRight) {
  const auto conv = [](Config config) { return refusal(conv_case("Conv", config)); };
  EXPECT_EQ(conv({{1, 3, 8, 8}, {4, 2, 3, 3}}),
            "node 'conv' (Conv): weight 4x2x3x3 takes 2 input channels in 1 groups, but the input 1x3x8x8 has 3");
  EXPECT_EQ(conv({{1, 3, 8, 8}, {4, 1, 3, 3}, {{"group", std::int64_t{2}}}}),
            "node 'conv' (Conv): group 2 does not divide the 3 input and 4 output channels");
  EXPECT_EQ(conv({{1, 3, 2, 2}, {4, 3, 3, 3}}), "node 'conv' (Conv): the window spans 3 but the padded input only 2");
  EXPECT_EQ(conv({{1, 3, 8, 8}, {4, 3, 3}}),
            "node 'conv' (Conv): input 1x3x8x8 and weight 4x3x3 do not have the same number of axes, at least 3");
  EXPECT_EQ(conv({{1, 3, 8, 8}, {4, 3, 3, 3}, {{"strides", Ints{1}}}}),
            "node 'conv' (Conv): attribute 'strides' has 1 entries; 2 are needed");
  EXPECT_EQ(conv({{1, 3, 8, 8}, {4, 3, 3, 3}, {{"strides", Ints{0, 1}}}}),
            "node 'conv' (Conv): attribute 'strides' holds 0; 1 to 2147483648 is legal");
  EXPECT_EQ(conv({{1, 3, 8, 8}, {4, 3, 3, 3}, {{"kernel_shape", Ints{5, 5}}}}),
            "node 'conv' (Conv): kernel_shape 5x5 differs from the weight's 3x3");
  EXPECT_EQ(conv({{1, 3, 8, 8}, {4, 3, 3, 3}, {{"auto_pad", std::string("SAME")}}}),
            "node 'conv' (Conv): auto_pad 'SAME' is unknown; NOTSET, VALID, SAME_UPPER or SAME_LOWER is needed");
  EXPECT_EQ(conv({{1, 3, 0, 8}, {4, 3, 3, 3}}),
            "node 'conv' (Conv): the input 1x3x0x8 is illegal; 1 to 2147483648 per spatial axis is needed");
  EXPECT_EQ(conv({{1, 3, 8, 8}, {0, 3, 3, 3}}), "node 'conv' (Conv): the weight 0x3x3x3 is empty");
  Case c = conv_case("Conv", {{1, 3, 8, 8}, {4, 3, 3, 3}});
  c.inputs[2] = random_tensor({5}, 1);
  EXPECT_EQ(refusal(c), "node 'conv' (Conv): input 2 is f64[5]; f64[4] is needed");
  c.inputs[1] = to_dtype(random_tensor({4, 3, 3, 3}, 1), DType::kF32);
  EXPECT_EQ(refusal(c), "node 'conv' (Conv): input 1 is f32[4x3x3x3]; f64[4x3x3x3] is needed");
}

std::vector<Config> transposed_configs() {
  const std::string upper = "SAME_UPPER", lower = "SAME_LOWER", valid = "VALID";
  return {
      {{2, 2, 3, 4}, {2, 3, 3, 2}},
      {{1, 2, 3, 3}, {2, 2, 3, 3}, {{"strides", Ints{2, 3}}, {"pads", Ints{1, 0, 1, 2}}}},
      {{1, 4, 3, 3},
       {4, 2, 3, 3},
       {{"group", std::int64_t{2}}, {"strides", Ints{2, 2}}, {"output_padding", Ints{1, 1}}}},
      {{1, 2, 3, 3}, {2, 1, 3, 2}, {{"dilations", Ints{2, 3}}, {"group", std::int64_t{2}}}, false},
      {{1, 1, 3, 3}, {1, 2, 3, 3}, {{"output_shape", Ints{10, 8}}, {"strides", Ints{3, 2}}}},
      {{1, 1, 3, 3}, {1, 2, 3, 3}, {{"output_shape", Ints{8, 5}}, {"strides", Ints{3, 2}}, {"auto_pad", upper}}},
      {{1, 1, 3, 3}, {1, 2, 4, 3}, {{"strides", Ints{2, 2}}, {"auto_pad", lower}}},
      {{1, 1, 3, 3}, {1, 2, 2, 2}, {{"strides", Ints{2, 2}}, {"auto_pad", valid}}},
      {{2, 2, 5}, {2, 3, 4}, {{"strides", Ints{2}}, {"pads", Ints{1, 2}}}},
      {{1, 2, 2, 3, 2}, {2, 1, 2, 2, 3}, {{"strides", Ints{2, 1, 2}}}},
  };
}

TEST(ConvTranspose, GradientsMatchFiniteDifferences) {
  for (const Config& config : transposed_configs()) check_case(conv_case("ConvTranspose", config));
}

TEST(ConvTranspose, OutputShapeIsWhatWasAskedFor) {
  const Built built = build(conv_case("ConvTranspose", transposed_configs()[4]));
  EXPECT_EQ(built.graph.values[built.y].type.shape, (Shape{1, 2, 10, 8}));
}

TEST(ConvTranspose, RefusalsSayWhatWouldBeRight) {
  const auto transposed = [](Config config) { return refusal(conv_case("ConvTranspose", config)); };
  EXPECT_EQ(transposed({{1, 3, 4, 4}, {4, 2, 3, 3}}),
            "node 'convtranspose' (ConvTranspose): weight 4x2x3x3 takes 4 input channels, but the input 1x3x4x4 has 3");
  EXPECT_EQ(transposed({{1, 2, 1, 1}, {2, 2, 2, 2}, {{"pads", Ints{1, 1, 1, 1}}}}),
            "node 'convtranspose' (ConvTranspose): the pads 1 and 1 leave nothing of an output axis of 2");
}

}  // namespace
}  // namespace neaptide::ops
