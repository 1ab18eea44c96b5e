#include "neaptide/ops/interpret.hpp"

#include <gtest/gtest.h>

#include "neaptide/base/errors.hpp"
#include "neaptide/graph/builder.hpp"
#include "neaptide/ops/ops.hpp"

namespace neaptide::ops {
namespace {

using graph::Builder;
using graph::DType;
using graph::Graph;
using graph::Implementation;
using graph::NodeView;
using graph::tensor_of;
using graph::ValueId;

struct ReluPair {
  Graph graph;
  ValueId x, dy, y, sign, dx;
};

ReluPair relu_pair() {
  Builder b(all());
  ReluPair p;
  p.x = b.input("x", {DType::kF64, {9}});
  p.dy = b.input("dy", {DType::kF64, {9}});
  const auto outputs = b.add({.op = "Relu", .inputs = {p.x}, .wanted = {true, true}});
  p.y = outputs[0];
  p.sign = outputs[1];
  p.dx = b.add("ReluGrad", {p.dy, p.x, p.y, p.sign});
  p.graph = b.take({p.dx});
  return p;
}

const std::vector<double> kX = {-2, -1, 0, 1, 2, 3, -4, 5, 6};
const std::vector<double> kDy = {1, 2, 3, 4, 5, 6, 7, 8, 9};

Choose by_name(const std::string& relu, const std::string& grad) {
  return [=](const NodeView& node, const std::vector<Implementation>& list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i].spec.name == (node.node().op == "Relu" ? relu : grad)) return static_cast<int>(i);
    }
    return -1;
  };
}

Feeds feeds(const ReluPair& p) {
  return {{p.x, tensor_of(DType::kF64, {9}, kX)}, {p.dy, tensor_of(DType::kF64, {9}, kDy)}};
}

TEST(Interpret, EveryWayThroughReluGivesTheSameGradient) {
  const ReluPair p = relu_pair();
  for (const std::string relu : {"sign", "sign-in-place"}) {
    for (const std::string from : {"from-output", "from-input", "from-sign"}) {
      for (const std::string place : {"", "-in-place"}) {
        const Values v = interpret(p.graph, all(), feeds(p), by_name(relu, from + place));
        const auto dx = v[p.dx].as<double>();
        EXPECT_EQ(std::vector<double>(dx.begin(), dx.end()), (std::vector<double>{0, 0, 0, 4, 5, 6, 0, 8, 9}));
        const auto y = v[p.y].as<double>();
        EXPECT_EQ(std::vector<double>(y.begin(), y.end()), (std::vector<double>{0, 0, 0, 1, 2, 3, 0, 5, 6}));
        EXPECT_EQ(v[p.sign].as<std::uint8_t>()[0], 0b10111000);
        EXPECT_EQ(v[p.sign].as<std::uint8_t>()[1], 1);
      }
    }
  }
}

TEST(Interpret, AnOutputThatNoChosenImplementationWritesDoesNotExist) {
  const ReluPair p = relu_pair();
  const Values v = interpret(p.graph, all(), feeds(p));
  EXPECT_EQ(v[p.sign].data, nullptr);
  EXPECT_NE(v[p.dx].data, nullptr);
  EXPECT_THROW(interpret(p.graph, all(), feeds(p), by_name("plain", "from-sign")), UserError);
}

TEST(Interpret, InPlaceLeavesTheInterpretersInputAlone) {
  const ReluPair p = relu_pair();
  const Values v = interpret(p.graph, all(), feeds(p), by_name("in-place", "from-output-in-place"));
  const auto x = v[p.x].as<double>();
  EXPECT_EQ(std::vector<double>(x.begin(), x.end()), kX);
}

TEST(Interpret, NamesTheInputThatIsNotFed) {
  const ReluPair p = relu_pair();
  try {
    interpret(p.graph, all(), {});
    FAIL();
  } catch (const UserError& e) {
    EXPECT_STREQ(e.what(), "input 'x' is not fed");
  }
}

TEST(Interpret, NamesTheFeedOfTheWrongType) {
  const ReluPair p = relu_pair();
  Feeds wrong = feeds(p);
  wrong[p.x] = tensor_of(DType::kF32, {1}, std::vector<float>{1});
  try {
    interpret(p.graph, all(), wrong);
    FAIL();
  } catch (const UserError& e) {
    EXPECT_STREQ(e.what(), "value 'x' is f64[9] but is fed with f32[1]");
  }
}

}  // namespace
}  // namespace neaptide::ops
