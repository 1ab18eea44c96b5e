#include <gtest/gtest.h>

#include <map>

#include "neaptide/autodiff/autodiff.hpp"
#include "neaptide/base/errors.hpp"
#include "neaptide/graph/builder.hpp"
#include "neaptide/graph/verify.hpp"
#include "neaptide/ops/interpret.hpp"
#include "neaptide/ops/ops.hpp"
#include "neaptide/passes/passes.hpp"
#include "tests/ops/check.hpp"

namespace neaptide::passes {
namespace {

using graph::Builder;
using graph::DType;
using graph::Format;
using graph::FormatChoice;
using graph::Graph;
using graph::Node;
using graph::NodeView;
using graph::Tensor;
using graph::ValueId;
using ops::random_tensor;

/// A backend whose convolutions want everything "tight" (two bytes more), whose elementwise operators follow input 0
/// and whose other operators want plain.
class FakeRules : public graph::FormatRules {
 public:
  FormatChoice choose(const NodeView& node) const override {
    FormatChoice choice{std::vector<Format>(node.n_inputs()), std::vector<Format>(node.n_outputs())};
    const std::string& op = node.node().op;
    const bool conv = op.starts_with("Conv"), follows = op == "Relu" || op == "ReluGrad" || op.ends_with("Update");
    for (std::size_t i = 0; i < node.n_inputs(); ++i) {
      if (!node.has_input(i) || node.input(i).shape.size() != 4) continue;
      if (conv) choice.inputs[i] = tight(node.input(i));
      if (follows) choice.inputs[i] = node.input_value(0).format;
    }
    for (std::size_t k = 0; k < node.n_outputs(); ++k) {
      if (!node.has_output(k) || node.output(k).shape.size() != 4) continue;
      if (conv) choice.outputs[k] = tight(node.output(k));
      if (follows) choice.outputs[k] = node.input_value(0).format;
    }
    return choice;
  }
  Format parameter_format(const NodeView& reader, std::size_t input) const override {
    return choose(reader).inputs[input];
  }

 private:
  static Format tight(const graph::TensorType& type) { return {"tight", type.bytes() + 2}; }
};

std::map<std::string, int> count(const Graph& g) {
  std::map<std::string, int> counts;
  for (const Node& n : g.nodes) ++counts[n.op];
  return counts;
}

Format format(const Graph& g, const std::string& name) { return g.values[graph::find_value(g, name)].format; }

/// conv -> relu -> conv -> flatten -> cross entropy, trained with momentum.
Graph small_training() {
  Builder b(ops::all());
  const ValueId x = b.input("x", {DType::kF32, {2, 2, 4, 4}});
  const auto weights = [&](const std::string& name, unsigned seed) {
    return b.parameter(name, ops::to_dtype(random_tensor({2, 2, 1, 1}, seed), DType::kF32));
  };
  const ValueId hidden = b.add("Relu", {b.add("Conv", {x, weights("w1", 1)})}, {}, "hidden");
  const ValueId y = b.add("Flatten", {b.add("Conv", {hidden, weights("w2", 2)})}, {}, "y");
  return autodiff::make_training(b.take({y}), ops::all(), {}).graph;
}

TEST(AssignFormats, ReordersOnlyWhereTheFormatsDiffer) {
  Builder b(ops::all());
  const ValueId x = b.input("x", {DType::kF32, {1, 2, 4, 4}});
  const ValueId w = b.parameter("w", graph::zeros({DType::kF32, {2, 2, 1, 1}}));
  const ValueId one = b.add("Conv", {x, w}, {}, "one"), two = b.add("Relu", {one}, {}, "two");
  const ValueId three = b.add("Conv", {two, w}, {}, "three");
  const Graph g = assign_formats(b.take({three, two}), ops::all(), FakeRules());
  EXPECT_TRUE(verify(g, ops::all()).empty());
  EXPECT_EQ(count(g)["Reorder"], 3);  // x on the way in; three and two on the way out
  EXPECT_EQ(format(g, "w"), (Format{"tight", 18}));
  EXPECT_EQ(format(g, "two.out").tag, "tight");
  for (const ValueId v : g.outputs) EXPECT_TRUE(g.values[v].format.plain());
}

TEST(AssignFormats, KeepsAParameterItsMomentAndItsNextVersionAlike) {
  const Graph g = assign_formats(small_training(), ops::all(), FakeRules());
  EXPECT_TRUE(verify(g, ops::all()).empty());
  int updates = 0;
  for (const Node& node : g.nodes) {
    if (node.op != "MomentumUpdate") continue;
    ++updates;
    for (const std::size_t i : {0, 1, 2}) EXPECT_EQ(g.values[node.inputs[i]].format.tag, "tight");
    for (const ValueId v : node.outputs) EXPECT_EQ(g.values[v].format.tag, "tight");
  }
  EXPECT_EQ(updates, 2);
}

TEST(AssignFormats, ChangesNoValue) {
  const Graph before = small_training(), after = assign_formats(before, ops::all(), FakeRules());
  const auto run = [](const Graph& g) {
    ops::Feeds feeds;
    for (const ValueId v : graph::values_of_kind(g, graph::ValueKind::kInput)) {
      const graph::TensorType& type = g.values[v].type;
      feeds.emplace(
          v, type.dtype == DType::kF32 ? ops::to_dtype(random_tensor(type.shape, 5), DType::kF32) : graph::zeros(type));
    }
    const ops::Values values = ops::interpret(g, ops::all(), feeds);
    std::map<std::string, Tensor> named;
    for (std::size_t v = 0; v < g.values.size(); ++v) named.emplace(g.values[ValueId(v)].name, values[ValueId(v)]);
    return named;
  };
  const auto expected = run(before), actual = run(after);
  for (const auto& [name, tensor] : expected) EXPECT_EQ(actual.at(name), tensor) << name;
}

TEST(AssignFormats, RefusesRulesThatMoveAnOverwrittenValue) {
  class Moving : public FakeRules {
    FormatChoice choose(const NodeView& node) const override {
      FormatChoice choice = FakeRules::choose(node);
      if (node.node().op == "MomentumUpdate") choice.inputs[0] = {};
      return choice;
    }
  };
  EXPECT_THROW(assign_formats(small_training(), ops::all(), Moving()), InternalError);
}

}  // namespace
}  // namespace neaptide::passes
