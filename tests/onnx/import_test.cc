// Every sound model must read as the text beside it (models/<name>.txt). With NEAPTIDE_REWRITE=1 in the environment the
// texts are written anew; read the difference before committing it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "neaptide/base/files.hpp"
#include "neaptide/graph/text.hpp"
#include "tests/onnx/models.hpp"

namespace neaptide::onnx {
namespace {

std::vector<std::string> sound_models() {
  std::vector<std::string> out;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(NEAPTIDE_SOURCE_DIR) + "/tests/onnx/models")) {
    const std::string name = entry.path().stem().string();
    if (entry.path().extension() == ".onnx" && !name.starts_with("bad_")) out.push_back(name);
  }
  std::sort(out.begin(), out.end());
  return out;
}

class OnnxImport : public testing::TestWithParam<std::string> {};

TEST_P(OnnxImport, ReadsAsExpected) {
  const std::string text = graph::to_text(load_model(GetParam()));
  const std::string path = model_path(GetParam()).substr(0, model_path(GetParam()).size() - 4) + "txt";
  if (std::getenv("NEAPTIDE_REWRITE") != nullptr) write_file_atomically(path, text);
  EXPECT_EQ(text, read_file(path));
}

TEST_P(OnnxImport, SurvivesTheRoundTrip) {
  const graph::Graph g = load_model(GetParam());
  graph::Graph back = parse(serialise(g), ops::all(), {}, GetParam());
  back.notes = g.notes;  // about the file, which is mended now
  EXPECT_EQ(graph::to_text(back), graph::to_text(g));
}

INSTANTIATE_TEST_SUITE_P(Models, OnnxImport, testing::ValuesIn(sound_models()),
                         [](const auto& param) { return param.param; });

std::string line_of(const graph::Graph& g, const std::string& start) {
  const std::string text = graph::to_text(g);
  const std::size_t at = text.find("\n" + start);
  return at == std::string::npos ? "" : text.substr(at + 1, text.find('\n', at + 1) - at - 1);
}

TEST(OnnxBatch, RewritesFixedAndOpenBatches) {
  EXPECT_EQ(line_of(load_model("relu", {.batch = 7}), "input"), "input %x: f32[7x3]");
  EXPECT_EQ(line_of(load_model("open_batch", {.batch = 7}), "input"), "input %x: f32[7x3]");
  EXPECT_TRUE(load_model("open_batch", {.batch = 7}).notes.empty());
}

TEST(OnnxBatch, FollowsIntoShapes) {
  EXPECT_EQ(line_of(load_model("reshape_fixed_batch", {.batch = 3}), "%y"),
            "%y = Reshape(%x) {shape = [3, 48]} \"flat\" forward");
  EXPECT_EQ(line_of(load_model("shape_arithmetic", {.batch = 3}), "%y"),
            "%y = Reshape(%x) {shape = [3, 48]} \"flat\" forward");
  const graph::Graph resized = load_model("resize_sizes", {.batch = 3});
  EXPECT_EQ(resized.values[resized.outputs[0]].type.shape, (graph::Shape{3, 3, 8, 12}));
}

}  // namespace
}  // namespace neaptide::onnx
