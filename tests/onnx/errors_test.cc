#include <gtest/gtest.h>

#include "neaptide/base/files.hpp"
#include "tests/onnx/models.hpp"

namespace neaptide::onnx {
namespace {

TEST(OnnxErrors, ListsAllUnsupportedNodesAtOnce) {
  EXPECT_EQ(error_of("bad_operators"),
            "3 of 4 nodes need operators that are not supported: 'norm1' (LRN), 'gelu' (com.example.FusedGelu), "
            "'einsum1' (Einsum)");
  EXPECT_EQ(error_of("bad_branch"), "1 of 1 nodes need operators that are not supported: 'choose' (If)");
  EXPECT_EQ(error_of("bad_gather"), "1 of 1 nodes need operators that are not supported: 'pick' (Gather)");
}

TEST(OnnxErrors, ListsUnsupportedElementTypes) {
  EXPECT_EQ(error_of("bad_float16"),
            "element types that are not supported: input 'x' (float16), initialiser 'w' (float16), initialiser 'v' "
            "(bfloat16); convert the model to float32");
}

TEST(OnnxErrors, NamesWhatIsWrongWithTheFile) {
  EXPECT_EQ(error_of("bad_truncated"), "is not an ONNX model, or is cut off");
  EXPECT_EQ(error_of("bad_opset"), "the model has opset 6; 7 is the oldest that is read");
  EXPECT_EQ(error_of("bad_no_opset"), "the model names no opset; is it an ONNX file?");
  EXPECT_EQ(error_of("bad_no_outputs"), "the model has no outputs");
  EXPECT_EQ(error_of("relu", {.batch = 0}), "batch 0 is not at least 1");
}

TEST(OnnxErrors, NamesWhatIsWrongWithTheConnections) {
  EXPECT_EQ(error_of("bad_missing"), "node 'sum' reads 'nothing', which nothing produces");
  EXPECT_EQ(error_of("bad_order"),
            "node 'second' reads 'h', which is produced only later; nodes must stand in an executable order");
  EXPECT_EQ(error_of("bad_cycle"),
            "node 'one' reads 'b', which is produced only later; nodes must stand in an executable order");
  EXPECT_EQ(error_of("bad_twice"), "value 'y' is produced twice");
  EXPECT_EQ(error_of("bad_output"), "output 'z' is produced by no node");
}

TEST(OnnxErrors, NamesWhatIsWrongWithInputs) {
  EXPECT_EQ(error_of("bad_open_dimension"), "input 'x': dimension 1 is open ('length'); only the first may be");
  EXPECT_EQ(error_of("bad_negative_dimension"), "input 'x' has the negative dimension -3");
  EXPECT_EQ(error_of("bad_huge_input"), "input 'x': a shape overflows 63 bits: 1099511627776 * 1099511627776");
  EXPECT_EQ(error_of("bad_no_shape"), "input 'x' has no shape");
  EXPECT_EQ(error_of("bad_sequence"), "input 'x' is not a tensor");
}

TEST(OnnxErrors, NamesWhatIsWrongWithInitialisers) {
  EXPECT_EQ(error_of("bad_raw_size"), "initialiser 'b' is f32[3] and needs 12 bytes; it has 3");
  EXPECT_EQ(error_of("bad_huge_tensor"), "initialiser 'b': a shape overflows 63 bits: 3 * 4611686018427387904");
  EXPECT_EQ(error_of("bad_negative_tensor"), "initialiser 'b' has the negative dimension -1");
  EXPECT_EQ(error_of("bad_typed_size"), "initialiser 'b' is f32[3] but holds 4 elements");
  EXPECT_EQ(error_of("bad_external_path"),
            "initialiser 'w': external data '../secret' is not a path below the model's directory");
  EXPECT_EQ(error_of("bad_external_length"), "initialiser 'w' needs 48 bytes; its external data has 40");
}

TEST(OnnxErrors, NamesWhatIsWrongWithANode) {
  EXPECT_EQ(error_of("bad_fill"),
            "node 'fill' (ConstantOfShape): its constant result f32[1048576x1048576] is larger than the 4294967296 "
            "bytes allowed");
  EXPECT_EQ(error_of("bad_attribute"), "node 'soft' (Softmax): attribute 'axis' is not an integer");
  EXPECT_EQ(error_of("bad_pad"),
            "node 'pad' (Pad): pads that are not zero are not supported; use the pads of Conv or a pool");
  EXPECT_EQ(error_of("bad_resize"), "node 'up' (Resize): mode 'linear' is not supported; only 'nearest' is");
  EXPECT_EQ(error_of("bad_reshape"), "node 'view' (Reshape): 6 elements do not fill shape 4x-1");
}

TEST(OnnxErrors, RefusesExternalDataInMemory) {
  try {
    parse(read_file(model_path("external")), ops::all(), {}, "bytes");
    FAIL() << "no error";
  } catch (const UserError& e) {
    EXPECT_STREQ(e.what(), "bytes: initialiser 'w': its data is in another file, 'external.data'");
  }
}

// Every prefix of a model and many of its corruptions are either read or refused with a sentence.
TEST(OnnxErrors, SurvivesCutAndCorruptedFiles) {
  const std::string whole = read_file(model_path("shape_arithmetic"));
  const LoadOptions small{.folded_limit = 1 << 20};
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const int change : {-1, 1, 0x80, 0x7f}) {
      std::string bytes = change < 0 ? whole.substr(0, i) : whole;
      if (change > 0) bytes[i] = static_cast<char>(bytes[i] ^ change);
      try {
        parse(bytes, ops::all(), small, "bytes");
      } catch (const UserError& e) {
        EXPECT_TRUE(std::string_view(e.what()).starts_with("bytes: ")) << e.what();
      }
    }
  }
}

}  // namespace
}  // namespace neaptide::onnx
