#include "neaptide/onnx/zoo.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "neaptide/base/errors.hpp"
#include "neaptide/graph/text.hpp"
#include "neaptide/onnx/onnx.hpp"
#include "neaptide/ops/interpret.hpp"
#include "neaptide/ops/ops.hpp"

namespace neaptide::onnx {
namespace {

using graph::ValueId;

std::int64_t n_parameters(const graph::Graph& g) {
  std::int64_t n = 0;
  for (const ValueId v : graph::values_of_kind(g, graph::ValueKind::kParameter)) n += g.values[v].type.elements();
  return n;
}

struct Expected {
  graph::Shape output;
  std::int64_t parameters;  // as published, or as the usual implementation has; 0: of our own making
};

TEST(Zoo, HasThePublishedSizes) {
  const std::map<std::string, Expected> all = {
      {"lenet", {{2, 10}, 61'706}},          {"mlp", {{2, 10}, 0}},
      {"mobilenet_v2", {{2, 10}, 0}},        {"mobilenet_v2_224", {{2, 1000}, 3'504'872}},
      {"resnet18", {{2, 1000}, 11'689'512}}, {"resnet20", {{2, 10}, 0}},
      {"resnet50", {{2, 1000}, 25'557'032}}, {"resnet8", {{2, 10}, 0}},
      {"unet", {{2, 1, 32, 32}, 0}},         {"vgg11", {{2, 10}, 0}},
      {"vgg16", {{2, 1000}, 138'357'544}}};
  EXPECT_EQ(zoo_names().size(), all.size());
  for (const auto& [name, expected] : all) {
    const graph::Graph g = make(name, 2);
    EXPECT_EQ(g.name, name);
    EXPECT_EQ(g.values[g.outputs.at(0)].type.shape, expected.output) << name;
    if (expected.parameters > 0) {
      EXPECT_EQ(n_parameters(g), expected.parameters) << name;
    }
  }
}

TEST(Zoo, TakesImageSizeAndClasses) {
  const graph::Graph g = make("resnet18", 3, {.image = 64, .classes = 7});
  EXPECT_EQ(g.values[g.outputs[0]].type.shape, (graph::Shape{3, 7}));
  EXPECT_EQ(graph::to_string(g.values[ValueId(0)].type), "f32[3x3x64x64]");
}

TEST(Zoo, WeightsDependOnTheSeedAlone) {
  const graph::Graph a = make("lenet", 1), b = make("lenet", 4), c = make("lenet", 1, {.seed = 2});
  const ValueId w = graph::find_value(a, "fc1.weight");
  EXPECT_EQ(a.data.at(w), b.data.at(w));
  EXPECT_FALSE(a.data.at(w) == c.data.at(w));
  EXPECT_FALSE(a.data.at(w).as<float>()[0] == a.data.at(graph::find_value(a, "fc2.weight")).as<float>()[0]);
  EXPECT_EQ(make("lenet", 1), a);
}

// Uniform in +-sqrt(6 / fan_in): the variance is 2 / fan_in.
TEST(Zoo, WeightsHaveTheirVariance) {
  const graph::Graph g = make("mlp", 1);
  const auto w = g.data.at(graph::find_value(g, "fc1.weight")).as<float>();
  double sum = 0, squares = 0;
  for (const float x : w) {
    sum += x;
    squares += static_cast<double>(x) * x;
  }
  const auto n = static_cast<double>(w.size());
  EXPECT_NEAR(sum / n, 0, 5e-4);
  EXPECT_NEAR(squares / n * 784 / 2, 1, 0.02);
}

TEST(Zoo, OutputsAreFinite) {
  for (const char* name : {"lenet", "mlp", "resnet8", "unet"}) {
    const graph::Graph g = make(name, 1);
    std::vector<float> image(static_cast<std::size_t>(g.values[ValueId(0)].type.elements()));
    for (std::size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>(i % 17) / 8 - 1;
    const ops::Values values = ops::interpret(
        g, ops::all(), {{ValueId(0), graph::tensor_of(graph::DType::kF32, g.values[ValueId(0)].type.shape, image)}});
    double size = 0;
    for (const float y : values[g.outputs[0]].as<float>()) size += std::abs(y);
    EXPECT_TRUE(std::isfinite(size) && size > 0) << name;
  }
}

TEST(Zoo, ErrorsAreSentences) {
  try {
    make("resnet5", 1);
    FAIL();
  } catch (const UserError& e) {
    EXPECT_STREQ(e.what(),
                 "there is no network 'resnet5'; did you mean 'resnet50'?; known are lenet, mlp, mobilenet_v2, "
                 "mobilenet_v2_224, resnet18, resnet20, resnet50, resnet8, unet, vgg11, vgg16");
  }
  EXPECT_THROW(make("lenet", 0), UserError);
  EXPECT_THROW(make("lenet", 1, {.image = 4}), UserError);
}

// Writing a graph and reading it again gives the same graph: names, order, attributes and weights.
TEST(Zoo, SurvivesTheRoundTripThroughOnnx) {
  for (const char* name : {"lenet", "mlp", "mobilenet_v2", "resnet20", "unet", "vgg11"}) {
    const graph::Graph g = make(name, 2);
    const graph::Graph back = parse(serialise(g), ops::all(), {}, name);
    EXPECT_EQ(graph::to_text(back), graph::to_text(g)) << name;
    EXPECT_TRUE(back == g) << name;
  }
}

TEST(Zoo, TakesAnotherBatchAfterTheRoundTrip) {
  for (const char* name : {"lenet", "mobilenet_v2", "unet"})
    EXPECT_TRUE(parse(serialise(make(name, 1)), ops::all(), {.batch = 5}, name) == make(name, 5)) << name;
}

}  // namespace
}  // namespace neaptide::onnx
