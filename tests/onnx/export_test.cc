#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "neaptide/autodiff/autodiff.hpp"
#include "neaptide/base/files.hpp"
#include "neaptide/graph/builder.hpp"
#include "neaptide/graph/text.hpp"
#include "neaptide/graph/verify.hpp"
#include "neaptide/onnx/zoo.hpp"
#include "neaptide/ops/interpret.hpp"
#include "neaptide/passes/passes.hpp"
#include "tests/onnx/models.hpp"
#include "tests/onnx/python.hpp"

namespace neaptide::onnx {
namespace {

using graph::Graph;
using graph::Tensor;
using graph::ValueId;

Tensor some_image(const graph::TensorType& type) {
  std::vector<float> v(static_cast<std::size_t>(type.elements()));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>((i * 7) % 19) / 9 - 1;
  return graph::tensor_of(graph::DType::kF32, type.shape, v);
}

std::vector<float> output_of(const Graph& g, const Tensor& image) {
  const ValueId x = graph::find_value(g, "x");
  const auto y = ops::interpret(g, ops::all(), {{x, image}})[g.outputs[0]];
  return {y.as<float>().begin(), y.as<float>().end()};
}

std::string numbers_line(std::span<const float> v) { return fmt::format("{}\n", fmt::join(v, " ")); }

/// Promoted, with fused activations where the pass puts them: what a session holds after training.
Graph trained(const std::string& name) { return passes::promote_to_training(make(name, 2), ops::all()); }

TEST(OnnxExport, PassesTheCheckerAndTheReferenceEvaluator) {
  if (const std::string why = no_python(); !why.empty()) GTEST_SKIP() << why;
  const std::string folder = fresh_folder("exports"), log = folder + ".log";
  for (const char* name : {"lenet", "mlp", "resnet8", "unet", "mobilenet_v2"}) {
    const Graph g = make(name, 1, {.image = std::string(name) == "mobilenet_v2" ? 16 : 0});
    const Tensor image = some_image(g.values[graph::find_value(g, "x")].type);
    save(g, folder + "/" + name + ".onnx");
    write_file_atomically(folder + "/" + name + ".txt",
                          numbers_line(image.as<float>()) + numbers_line(output_of(g, image)));
  }
  save(make("mlp", 1), folder + "/external.onnx", {.external_above = 1000});
  std::filesystem::copy(folder + "/mlp.txt", folder + "/external.txt");
  EXPECT_EQ(run_python("check_exports.py", folder, log), 0) << read_file(log);
}

TEST(OnnxExport, WritesTrainingFormsAsInferenceForms) {
  for (const char* name : {"resnet8", "vgg11", "mobilenet_v2"}) {
    const Graph back = parse(serialise(trained(name)), ops::all(), {}, name);
    EXPECT_EQ(graph::to_text(back), graph::to_text(make(name, 2))) << name;
  }
}

TEST(OnnxExport, WritesFusedActivationsAsNodes) {
  Graph g = make("lenet", 1);
  const Tensor image = some_image(g.values[graph::find_value(g, "x")].type);
  graph::Builder b(ops::all());
  const ValueId x = b.input("x", {graph::DType::kF32, {1, 1, 28, 28}});
  const ValueId w = b.parameter("w", g.data.at(graph::find_value(g, "conv1.weight")));
  const Graph fused = b.take({b.add("Conv", {x, w}, {{"activation", std::string("relu")}}, "conv")});
  const Graph back = parse(serialise(fused), ops::all(), {}, "fused");
  ASSERT_EQ(back.nodes.size(), 2U);
  EXPECT_EQ(back.nodes[graph::NodeId(1)].op, "Relu");
  EXPECT_EQ(output_of(back, image), output_of(fused, image));
}

TEST(OnnxExport, WritesOutputsThatNoNodeMakesOrReads) {
  graph::Builder b(ops::all());
  const ValueId x = b.input("x", {graph::DType::kF32, {2}});
  const ValueId c =
      b.initialised("c", graph::ValueKind::kConstant, graph::tensor_of(graph::DType::kF32, {}, std::vector<float>{3}));
  b.graph().name = "model";
  const Graph g = b.take({x, c});
  EXPECT_EQ(graph::to_text(parse(serialise(g), ops::all(), {}, "g")), graph::to_text(g));
}

TEST(OnnxExport, KeepsLargeWeightsInAnotherFile) {
  const std::string path = fresh_folder("large") + "/mlp.onnx";
  const Graph g = make("mlp", 1);
  save(g, path, {.external_above = 1000});
  EXPECT_LT(std::filesystem::file_size(path), 4000U);
  EXPECT_GT(std::filesystem::file_size(path + ".data"), 900'000U);
  EXPECT_TRUE(load(path, ops::all()) == g);
}

TEST(OnnxExport, ListsNodesWithoutAnInferenceForm) {
  const autodiff::Training t = autodiff::make_training(make("mlp", 1), ops::all(), {});
  try {
    serialise(t.graph);
    FAIL() << "no error";
  } catch (const UserError& e) {
    const std::string sentence = e.what();
    EXPECT_NE(sentence.find("nodes have no inference form in ONNX: "), std::string::npos) << sentence;
    EXPECT_NE(sentence.find("(SoftmaxCrossEntropy)"), std::string::npos) << sentence;
    EXPECT_NE(sentence.find("(MomentumUpdate)"), std::string::npos) << sentence;
    EXPECT_TRUE(sentence.ends_with("; export the forward graph")) << sentence;
  }
}

// The light models of the Python package: whole networks of the model zoo with computed weights.
TEST(OnnxLightModels, AreReadOrRefusedByName) {
  std::string light;
  for (const auto& lib : std::filesystem::directory_iterator(std::string(NEAPTIDE_VENV) + "/lib")) {
    const std::string at = lib.path().string() + "/site-packages/onnx/backend/test/data/light/";
    if (std::filesystem::exists(at)) light = at;
  }
  if (light.empty()) GTEST_SKIP() << "no light models under " NEAPTIDE_VENV;
  const std::map<std::string, std::string> expected = {
      {"bvlc_alexnet", "2 of 40 nodes need operators that are not supported: 'n2' (LRN), 'n6' (LRN)"},
      {"densenet121", "1x1000x1x1"},
      {"inception_v1", "2 of 237 nodes need operators that are not supported: 'n3' (LRN), 'n8' (LRN)"},
      {"inception_v2", "1x1000"},
      {"resnet50", "1x1000"},
      {"shufflenet", "1x1000"},
      {"squeezenet", "1x1000x1x1"},
      {"vgg19", "1x1000"},
      {"zfnet512", "2 of 38 nodes need operators that are not supported: 'n2' (LRN), 'n6' (LRN)"}};
  for (const auto& [name, outcome] : expected) {
    const std::string path = light + "light_" + name + ".onnx";
    try {
      const Graph g = load(path, ops::all());
      EXPECT_EQ(graph::to_string(g.values[g.outputs[0]].type.shape), outcome) << name;
      EXPECT_TRUE(graph::verify(passes::promote_to_training(g, ops::all()), ops::all()).empty()) << name;
    } catch (const UserError& e) {
      EXPECT_EQ(std::string(e.what()), path + ": " + outcome) << name;
    }
  }
}

}  // namespace
}  // namespace neaptide::onnx
