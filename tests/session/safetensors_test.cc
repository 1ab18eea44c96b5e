#include "neaptide/session/safetensors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "neaptide/base/errors.hpp"

namespace neaptide::session {
namespace {

using graph::DType;
using testing::HasSubstr;

std::string message_of(const std::string& content) {
  try {
    tensors_from(content, "f");
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

std::string file_of(const std::string& header, const std::string& data) {
  const std::uint64_t n = header.size();
  std::string out(8, '\0');
  std::memcpy(out.data(), &n, 8);
  return out + header + data;
}

TensorFile example() {
  TensorFile f;
  f.tensors = {{"w", graph::tensor_of<float>(DType::kF32, {2, 2}, {1, 2, 3, 4})},
               {"n", graph::tensor_of<std::int64_t>(DType::kI64, {}, {7})},
               {"none", graph::zeros({DType::kF32, {0, 3}})},
               {"mask", graph::tensor_of<unsigned char>(DType::kU8, {3}, {1, 2, 3})}};
  f.metadata = {{"format", "neaptide.example"}, {"note", "a \"quoted\" text"}};
  return f;
}

TEST(SafeTensors, ReadsBackWhatItWrote) { EXPECT_EQ(tensors_from(to_safetensors(example()), "f"), example()); }

TEST(SafeTensors, ReadsFilesOfOthers) {
  const TensorFile f = tensors_from(
      file_of(
          R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[4,5]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}  )",
          std::string("\0\0\x80\x3f", 4) + "x"),
      "f");
  ASSERT_EQ(f.tensors.size(), 2U);
  EXPECT_EQ(f.tensors[1].second.as<float>()[0], 1.0F);
  EXPECT_TRUE(f.metadata.empty());
}

TEST(SafeTensors, EveryTruncationIsRefused) {
  const std::string whole = to_safetensors(example());
  for (std::size_t n = 0; n < whole.size(); ++n) EXPECT_NE(message_of(whole.substr(0, n)), "no error") << n;
  EXPECT_NE(message_of(whole + "x"), "no error");
}

TEST(SafeTensors, EveryFlippedBitIsNoticed) {
  const std::string whole = to_safetensors(example());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string bad = whole;
    bad[i] = static_cast<char>(bad[i] ^ 4);
    try {
      const TensorFile read = tensors_from(bad, "f");
      EXPECT_NE(read.metadata.at("format"), "neaptide.example") << "byte " << i << " is not covered by the digest";
    } catch (const UserError&) {
    } catch (const std::out_of_range&) {  // the word "format" itself, or the metadata's name
    }
  }
}

TEST(SafeTensors, SaysWhatIsWrong) {
  EXPECT_EQ(message_of("abc"), "f is no safetensors file: 3 bytes, fewer than the 8 of the header's length");
  EXPECT_EQ(message_of(std::string(8, '\x7f') + "{}"),
            "f is no whole safetensors file: it announces a header of 9187201950435737471 bytes, 2 follow");
  EXPECT_EQ(message_of(file_of("[]", "")), "f: its header does not begin with '{'");
  EXPECT_THAT(message_of(file_of("{", "")), HasSubstr("f: not JSON"));
  EXPECT_EQ(message_of(file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "abcd")),
            "f: 'a': the range 0 to 4 is not the 8 bytes of f32[2]");
  EXPECT_EQ(message_of(file_of(R"({"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}})", "abcd")),
            "f: 'a'.dtype is 'F16'; this program reads F32, F64, I64, I32, BOOL and U8");
  EXPECT_EQ(message_of(file_of(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", "abc")),
            "f: tensor 'a' begins at byte 1 of the data; byte 0 is next");
  EXPECT_EQ(message_of(file_of(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", "abc")),
            "f: its tensors take 2 bytes, but 3 follow the header");
  EXPECT_EQ(message_of(file_of(R"({"a":{"dtype":"U8","shape":[-2],"data_offsets":[0,2]}})", "ab")),
            "f: 'a'.shape[0] is -2; it must be at least 0");
  EXPECT_THAT(
      message_of(file_of(
          R"({"a":{"dtype":"F64","shape":[4611686018427387904,4611686018427387904],"data_offsets":[0,2]}})", "ab")),
      HasSubstr("overflows 63 bits"));
}

}  // namespace
}  // namespace neaptide::session
