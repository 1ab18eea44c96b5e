#include "neaptide/graph/text.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "neaptide/base/errors.hpp"
#include "neaptide/graph/builder.hpp"
#include "neaptide/ops/ops.hpp"

namespace neaptide::graph {
namespace {

std::string error_of(std::string_view text) {
  try {
    from_text(text, ops::all(), "g.txt");
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

Graph small_graph() {
  Builder b(ops::all());
  const ValueId x = b.input("x", {DType::kF32, {2, 3}});
  const ValueId w = b.parameter("w", tensor_of(DType::kF32, {3}, std::vector<float>{1, -0.5F, 0.1F}));
  const ValueId h = b.add("Add", {x, w}, {{"activation", std::string("relu")}}, "sum");
  const ValueId y = b.add("Relu", {h}, {}, "act");
  Graph g = b.take({y});
  g.name = "small";
  return g;
}

constexpr const char* kSmall = R"(graph "small"
input %x: f32[2x3]
parameter %w: f32[3] = [1, -0.5, 0.1]
%sum.out = Add(%x, %w) {activation = "relu"} "sum" forward
%act.out = Relu(%sum.out) "act" forward
output %act.out
)";

TEST(GraphText, WritesWhatAPersonReads) { EXPECT_EQ(to_text(small_graph()), kSmall); }

TEST(GraphText, ReadsBackAnEqualGraph) { EXPECT_EQ(from_text(kSmall, ops::all(), "g.txt"), small_graph()); }

TEST(GraphText, KeepsOptionalOutputsIdsFormatsRolesAndNotes) {
  Builder b(ops::all(), small_graph());
  const ValueId dy = b.input("d y", {DType::kF32, {2, 3}});
  const ValueId sign = b.want_output(NodeId(1), 1, "sign");
  const ValueId dx = b.add({.op = "ReluGrad",
                            .inputs = {dy, ValueId(), ValueId(), sign},
                            .name = "act \"grad\"\n",
                            .role = Role::kBackward})[0];
  Graph g = b.take({dx});
  g.notes = {"one", "two \\ lines\n"};
  g.values[sign].format = {"aB8b", 128};
  const std::string text = to_text(g);
  EXPECT_EQ(from_text(text, ops::all(), "g.txt"), g) << text;
  EXPECT_NE(text.find("%act.out, %act.sign#5 <\"aB8b\" 128> = Relu(%sum.out) \"act\" forward"), std::string::npos)
      << text;
  EXPECT_NE(text.find("ReluGrad(%\"d y\", _, _, %act.sign)"), std::string::npos) << text;
}

TEST(GraphText, KeepsContentsToTheBit) {
  Builder b(ops::all());
  const float odd_nan = std::bit_cast<float>(0x7fc00123U);
  b.constant("f",
             tensor_of(DType::kF32, {5},
                       std::vector<float>{odd_nan, -0.0F, std::numeric_limits<float>::infinity(), 1e-45F, 3.4e38F}));
  b.constant("d", tensor_of(DType::kF64, {2}, std::vector<double>{0.1, -std::numeric_limits<double>::infinity()}));
  b.constant("l", tensor_of(DType::kI64, {2}, std::vector<std::int64_t>{INT64_MIN, INT64_MAX}));
  b.state("i", tensor_of(DType::kI32, {}, std::vector<std::int32_t>{-7}));
  b.parameter("u", tensor_of(DType::kU8, {2}, std::vector<std::uint8_t>{0, 255}));
  b.constant("none", zeros({DType::kBool, {0, 4}}));
  const Graph g = b.take({});
  EXPECT_EQ(from_text(to_text(g), ops::all(), "g.txt"), g) << to_text(g);
}

TEST(GraphText, KeepsEveryKindOfAttribute) {
  Graph g = small_graph();
  Node& n = g.nodes[NodeId(1)];
  n.attrs = {{"int", std::int64_t{-3}},
             {"real", 2.0},
             {"small", 1e-300},
             {"text", std::string("a \"b\" \x01")},
             {"ints", std::vector<std::int64_t>{1, -2}},
             {"reals", std::vector<double>{1.0, 2.5}},
             {"words", std::vector<std::string>{"a", "b"}},
             {"no ints", std::vector<std::int64_t>()},
             {"no reals", std::vector<double>()},
             {"no words", std::vector<std::string>()},
             {"tensor", tensor_of(DType::kI64, {1}, std::vector<std::int64_t>{4})}};
  EXPECT_EQ(from_text(to_text(g), ops::all(), "g.txt"), g) << to_text(g);
}

TEST(GraphText, LargeContentsAreADigestAndReadAsZeros) {
  Builder b(ops::all());
  b.parameter("w", tensor_of(DType::kF32, {2000}, std::vector<float>(2000, 1.5F)));
  const Graph g = b.take({});
  const std::string text = to_text(g);
  EXPECT_NE(text.find("parameter %w: f32[2000] = sha256:"), std::string::npos) << text;
  const Graph back = from_text(text, ops::all(), "g.txt");
  EXPECT_EQ(back.data.at(ValueId(0)), zeros({DType::kF32, {2000}}));
}

TEST(GraphText, ErrorsNamePlaceAndLine) {
  EXPECT_EQ(error_of(""), "g.txt:1: the text does not begin with 'graph \"name\"'");
  EXPECT_EQ(error_of("input %x: f32[2]\n"), "g.txt:1: the text does not begin with 'graph \"name\"'");
  EXPECT_EQ(error_of("graph \"g\"\ninput %x: f16[2]\n"),
            "g.txt:2: 'f16' is not an element type; known are f32, f64, i64, i32, bool, u8");
  EXPECT_EQ(error_of("graph \"g\"\n\n# a remark\n%y = Relu(%x) \"r\" forward\n"),
            "g.txt:4: value '%x' is not defined before");
  EXPECT_EQ(error_of("graph \"g\"\ninput %x: f32[2]\ninput %x: f32[2]\n"), "g.txt:3: value '%x' is defined twice");
  EXPECT_EQ(error_of("graph \"g\"\ninput %x: f32[2]\n%y = Rleu(%x) \"r\" forward\n"),
            "g.txt:3: there is no operator 'Rleu'; did you mean 'Relu'?");
  EXPECT_EQ(error_of("graph \"g\"\ninput %x: f32[2]\n%y = Relu(%x) \"r\" sideways\n"),
            "g.txt:3: 'sideways' is not a role; forward, backward or update is right");
  EXPECT_EQ(error_of("graph \"g\"\nconstant %c: f32[2] = [1]\n"), "g.txt:2: f32[2] needs 2 elements and has 1");
  EXPECT_EQ(error_of("graph \"g\"\nconstant %c: i32[1] = [5000000000]\n"),
            "g.txt:2: '5000000000' is not an integer that fits");
  EXPECT_EQ(error_of("graph \"g\"\nconstant %c: f32[99999999999] = sha256:0\n"),
            "g.txt:2: digests stand for more than 17179869184 bytes");
  EXPECT_EQ(error_of("graph \"g\"\ninput %x: f32[-2]\n"), "g.txt:2: shape -2 has a negative dimension");
  EXPECT_EQ(error_of("graph \"g\"\ninput %x#3: f32[2]\n"), "g.txt:3: value ids are not complete");
  EXPECT_EQ(
      error_of("graph \"g\"\nvalue %x: f32[2]\n"),
      "g.txt:2: a line begins with 'value'; graph, note, input, parameter, state, constant, output or '%' is right");
  EXPECT_EQ(error_of("graph \"g\nnote"), "g.txt:1: a string lacks its closing quote");
}

TEST(GraphText, SurvivesCutAndCorruptedText) {
  const std::string whole = to_text(small_graph());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const char c : std::string("\0\"%#[]{}<,=x9_\n", 15)) {
      std::string changed = whole;
      changed[i] = c;
      for (const std::string& text : {whole.substr(0, i), changed}) {
        try {
          from_text(text, ops::all(), "g.txt");
        } catch (const UserError& e) {
          EXPECT_TRUE(std::string_view(e.what()).starts_with("g.txt:")) << e.what();
        }
      }
    }
  }
}

TEST(GraphText, DotNamesNodesTypesAndRoles) {
  const std::string dot = to_dot(small_graph());
  EXPECT_NE(dot.find("v0 [shape=ellipse, fillcolor=\"#eeeeee\", label=\"x  f32[2x3]\"];"), std::string::npos) << dot;
  EXPECT_NE(dot.find("n0 [fillcolor=\"#cfe8fc\", label=\"sum  Add\"];"), std::string::npos) << dot;
  EXPECT_NE(dot.find("n0 -> n1 [label=\"f32[2x3]\"];"), std::string::npos) << dot;
}

}  // namespace
}  // namespace neaptide::graph
