#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/files.hpp"
#include "neaptide/base/ids.hpp"
#include "neaptide/base/json.hpp"
#include "neaptide/base/sha256.hpp"
#include "neaptide/base/text.hpp"
#include "neaptide/base/units.hpp"

namespace neaptide {
namespace {

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

TEST(Units, ParsesSizes) {
  EXPECT_EQ(parse_bytes("838860800"), 838860800);
  EXPECT_EQ(parse_bytes("800MiB"), 838860800);
  EXPECT_EQ(parse_bytes("1.5 KiB"), 1536);
  EXPECT_EQ(parse_bytes("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(message_of([] { parse_bytes("8 apples", "budget"); }),
            "budget '8 apples' is not a number of bytes; write 838860800, 800MiB or 0.8GB");
  EXPECT_EQ(message_of([] { parse_bytes("1e30GiB", "budget"); }), "budget '1e30GiB' is larger than 63 bits hold");
}

TEST(Units, Formats) {
  EXPECT_EQ(format_bytes(838860800), "800 MiB");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_bytes(12), "12 B");
  EXPECT_EQ(format_seconds(0.00123), "1.23 ms");
}

TEST(Units, ChecksOverflow) {
  EXPECT_EQ(round_up(65, 64), 128);
  EXPECT_EQ(round_up(0, 64), 0);
  EXPECT_THROW(checked_mul(INT64_MAX, 2), UserError);
  EXPECT_THROW(checked_add(INT64_MAX, 1), UserError);
}

TEST(Text, DidYouMean) {
  const std::vector<std::string> verbs = {"train", "plan", "eval"};
  EXPECT_EQ(did_you_mean("trian", verbs), "; did you mean 'train'?");
  EXPECT_EQ(did_you_mean("zzzzzz", verbs), "");
}

TEST(Json, NamesThePlace) {
  const Json root = parse_json(R"({"ops": [{"seconds": "x"}]})", "p.json");
  const JsonReader r(root, "p.json");
  EXPECT_EQ(message_of([&] { r.items("ops")[0].number("seconds", 0); }), "p.json.ops[0].seconds is not a number");
  EXPECT_EQ(message_of([&] { r.at("devices"); }), "p.json has no \"devices\"");
  EXPECT_THROW(parse_json("{", "p.json"), UserError);
  EXPECT_THROW(parse_json(std::string(5000, '['), "p.json"), UserError);
}

TEST(Json, TextIsShortWhereItCanBe) {
  Json numbers = Json::array();
  for (int i = 0; i < 60; ++i) numbers.push_back(1000 + i);
  const Json root{
      {"name", "a \"b\""},
      {"cost", {{"seconds", 0.5}, {"bytes", 3}}},
      {"numbers", numbers},
      {"steps", Json::array({Json{{"compute", std::string(40, 'x')}}, Json{{"compute", std::string(60, 'y')}}})},
      {"long", std::string(150, 'z')},
      {"none", Json::array()}};
  const std::string text = json_text(root);
  EXPECT_EQ(parse_json(text, "t"), root);
  EXPECT_THAT(text,
              testing::StartsWith("{\n  \"name\": \"a \\\"b\\\"\",\n  \"cost\": {\"seconds\": 0.5, \"bytes\": 3},\n"));
  EXPECT_THAT(text, testing::HasSubstr("  \"numbers\": [\n    1000,1001,1002,"));
  EXPECT_THAT(text, testing::HasSubstr("x\"},\n    {\"compute\": \"y"));
  EXPECT_THAT(text, testing::EndsWith("  \"none\": []\n}\n"));
  std::size_t longest = 0, begin = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; begin = end + 1, end = text.find('\n', begin)) {
    if (text.find('z', begin) > end) longest = std::max(longest, end - begin);
  }
  EXPECT_LE(longest, 102U);
  EXPECT_EQ(json_text(Json(3)), "3\n");
}

TEST(Sha256, KnownAnswers) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Files, WritesAtomicallyAndNamesWhatIsMissing) {
  const std::string path = ::testing::TempDir() + "/neaptide_base_test.txt";
  write_file_atomically(path, "one");
  write_file_atomically(path, "two");
  EXPECT_EQ(read_file(path), "two");
  std::filesystem::remove(path);
  EXPECT_EQ(message_of([&] { read_file(path); }), "cannot read '" + path + "': No such file or directory");
  EXPECT_THROW(gunzip("\x1f\x8bnot gzip", "x.gz"), UserError);
}

TEST(Files, FullDiskKeepsTheOldContent) {
  EXPECT_THROW(write_file_atomically("/dev/full/x", "one"), UserError);
  EXPECT_THROW(write_file_atomically("/proc/none/x", "one"), UserError);
}

}  // namespace
}  // namespace neaptide
