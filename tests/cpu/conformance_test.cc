// Every kernel of the CPU backend against the reference in double precision: plain and blocked inputs, odd channel
// counts, all implementations, gradients.
#include <gtest/gtest.h>

#include <memory>
#include <ostream>

#include "neaptide/autodiff/autodiff.hpp"
#include "neaptide/backends/cpu/cpu.hpp"
#include "neaptide/graph/verify.hpp"
#include "neaptide/onnx/zoo.hpp"
#include "neaptide/ops/ops.hpp"
#include "neaptide/passes/passes.hpp"
#include "tests/cpu/harness.hpp"

namespace neaptide {
namespace {

using graph::Attrs;
using graph::Builder;
using graph::DType;
using graph::Shape;
using graph::Tensor;
using graph::ValueId;
using ops::random_tensor;
using Ints = std::vector<std::int64_t>;

runtime::Backend& cpu() {
  static const std::unique_ptr<runtime::Backend> backend = backends::cpu::make(2);
  return *backend;
}

/// The same with plain and with blocked input 0.
void conform_both(const std::vector<Tensor>& inputs, const ops::MakeOp& make, double tolerance = 1e-4) {
  for (const bool blocked : {false, true}) {
    SCOPED_TRACE(blocked ? "blocked input" : "plain input");
    conform(cpu(), inputs, make, {.tolerance = tolerance, .blocked = blocked});
  }
}

ops::MakeOp op(const std::string& name, const Attrs& attrs = {}) {
  return [=](Builder& b, const std::vector<ValueId>& x) { return std::vector{b.add(name, x, attrs)}; };
}

struct ConvCase {
  const char* name;
  Shape x, w;
  Attrs attrs = {};
  bool bias = true;
};

void PrintTo(const ConvCase& c, std::ostream* os) { *os << c.name; }

class Convolutions : public testing::TestWithParam<ConvCase> {};

TEST_P(Convolutions, AgreeWithTheReference) {
  const ConvCase& c = GetParam();
  std::vector<Tensor> inputs = {random_tensor(c.x, 1), random_tensor(c.w, 2)};
  if (c.bias) inputs.push_back(random_tensor({c.w[0]}, 3));
  conform_both(inputs, op("Conv", c.attrs));
}

INSTANTIATE_TEST_SUITE_P(
    Cpu, Convolutions,
    testing::Values(
        ConvCase{"first", {2, 3, 15, 15}, {16, 3, 7, 7}, {{"strides", Ints{2, 2}}, {"pads", Ints{3, 3, 3, 3}}}},
        ConvCase{"odd", {2, 10, 7, 9}, {17, 10, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}}},
        ConvCase{"pointwise", {2, 16, 8, 8}, {32, 16, 1, 1}, {}, false},
        ConvCase{"pointwise_strided", {2, 32, 8, 8}, {16, 32, 1, 1}, {{"strides", Ints{2, 2}}}, false},
        ConvCase{"relu", {1, 16, 8, 8}, {16, 16, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}, {"activation", "relu"}}},
        ConvCase{"depthwise", {2, 32, 7, 7}, {32, 1, 3, 3}, {{"group", std::int64_t{32}}, {"pads", Ints{1, 1, 1, 1}}}},
        ConvCase{"depthwise_odd", {2, 10, 7, 7}, {10, 1, 3, 3}, {{"group", std::int64_t{10}}}},
        ConvCase{"grouped", {1, 32, 6, 6}, {64, 16, 3, 3}, {{"group", std::int64_t{2}}}},
        ConvCase{"grouped_odd", {1, 6, 6, 6}, {9, 2, 3, 3}, {{"group", std::int64_t{3}}}},
        ConvCase{"dilated", {1, 16, 9, 9}, {16, 16, 3, 3}, {{"dilations", Ints{2, 2}}, {"pads", Ints{2, 2, 2, 2}}}},
        ConvCase{"uneven_pads", {1, 16, 8, 7}, {16, 16, 2, 3}, {{"pads", Ints{0, 1, 1, 2}}}},
        ConvCase{"same_upper", {1, 3, 8, 8}, {8, 3, 3, 3}, {{"strides", Ints{2, 2}}, {"auto_pad", "SAME_UPPER"}}},
        ConvCase{"line", {2, 16, 20}, {32, 16, 5}, {{"pads", Ints{2, 2}}}},
        ConvCase{"volume", {1, 4, 5, 6, 7}, {8, 4, 3, 3, 3}, {{"pads", Ints{1, 1, 1, 1, 1, 1}}}}),
    [](const auto& parameter) { return std::string(parameter.param.name); });

TEST(TransposedConvolutions, AgreeWithTheReference) {
  const Attrs twice = {{"strides", Ints{2, 2}}};
  for (const std::int64_t c : {16, 10}) {
    for (const bool bias : {false, true}) {
      std::vector<Tensor> inputs = {random_tensor({2, c, 5, 4}, 1), random_tensor({c, 17, 2, 2}, 2)};
      if (bias) inputs.push_back(random_tensor({17}, 3));
      conform_both(inputs, op("ConvTranspose", twice));
    }
  }
  conform_both({random_tensor({1, 4, 5, 5}, 1), random_tensor({4, 3, 3, 3}, 2)},
               op("ConvTranspose", {{"group", std::int64_t{2}}, {"pads", Ints{1, 1, 1, 1}}}));
}

TEST(Conv, RunsInDoublePrecisionByTheReference) {
  Builder b(ops::all());
  const ValueId x = b.input("x", {DType::kF64, {1, 2, 4, 4}}), w = b.input("w", {DType::kF64, {2, 2, 3, 3}});
  const graph::Graph g = b.take({b.add("Conv", {x, w})});
  const runtime::Offer offer = cpu().offer(graph::NodeView(g, g.nodes[graph::NodeId(0)]));
  ASSERT_FALSE(offer.impls.empty()) << offer.why_not;
  EXPECT_TRUE(offer.impls[0].name.starts_with("reference:")) << offer.impls[0].name;
}

class BatchNorms : public testing::TestWithParam<Shape> {};

TEST_P(BatchNorms, AgreeWithTheReference) {
  const Shape x = GetParam();
  const std::vector<Tensor> inputs = {random_tensor(x, 1), random_tensor({x[1]}, 2, 0.5, 1.5),
                                      random_tensor({x[1]}, 3, -0.5, 0.5)};
  for (const char* activation : {"", "relu"}) {
    SCOPED_TRACE(activation);
    conform_both(inputs, [&](Builder& b, const std::vector<ValueId>& in) {
      return b.add({.op = "BatchNormTrain",
                    .inputs = in,
                    .attrs = {{"activation", std::string(activation)}, {"epsilon", 1e-5}},
                    .wanted = {true, true, true}});
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, BatchNorms,
                         testing::Values(Shape{4, 16, 5, 5}, Shape{3, 3, 6, 4}, Shape{2, 10, 5, 5}, Shape{2, 17, 3, 3},
                                         Shape{8, 32}, Shape{4, 16, 9}, Shape{2, 16, 3, 3, 3}),
                         [](const auto& parameter) {
                           return "c" + std::to_string(parameter.param[1]) + "_" +
                                  std::to_string(parameter.param.size()) + "d";
                         });

struct PoolCase {
  const char* name;
  const char* op;
  Shape x;
  Attrs attrs;
};

void PrintTo(const PoolCase& c, std::ostream* os) { *os << c.name; }

class Pools : public testing::TestWithParam<PoolCase> {};

TEST_P(Pools, AgreeWithTheReference) {
  conform_both({random_tensor(GetParam().x, 1)}, op(GetParam().op, GetParam().attrs));
}

INSTANTIATE_TEST_SUITE_P(
    Cpu, Pools,
    testing::Values(
        PoolCase{"max",
                 "MaxPool",
                 {2, 16, 9, 9},
                 {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}}},
        PoolCase{"max_odd", "MaxPool", {2, 10, 8, 7}, {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}}},
        PoolCase{"max_up",
                 "MaxPool",
                 {1, 17, 8, 8},
                 {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"ceil_mode", std::int64_t{1}}}},
        PoolCase{"average", "AveragePool", {2, 16, 9, 9}, {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}}},
        PoolCase{"average_pads",
                 "AveragePool",
                 {2, 3, 9, 9},
                 {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}, {"count_include_pad", std::int64_t{1}}}},
        PoolCase{"average_up",
                 "AveragePool",
                 {1, 16, 8, 8},
                 {{"kernel_shape", Ints{3, 3}},
                  {"strides", Ints{2, 2}},
                  {"pads", Ints{1, 1, 1, 1}},
                  {"ceil_mode", std::int64_t{1}},
                  {"count_include_pad", std::int64_t{1}}}},
        PoolCase{"global", "GlobalAveragePool", {2, 16, 7, 7}, {}},
        PoolCase{"global_odd", "GlobalAveragePool", {2, 17, 7, 5}, {}}),
    [](const auto& parameter) { return std::string(parameter.param.name); });

TEST(Elementwise, AgreesWithTheReference) {
  const Shape shape = {2, 17, 5, 6};
  conform_both({random_tensor(shape, 1)}, op("Relu"));
  conform_both({random_tensor(shape, 1), random_tensor(shape, 2)}, op("Add"));
  conform_both({random_tensor(shape, 1), random_tensor(shape, 2)}, op("Add", {{"activation", std::string("relu")}}));
  conform_both({random_tensor(shape, 1), random_tensor(shape, 2)}, op("Mul"));
  conform_both({random_tensor(shape, 1), random_tensor(shape, 2, 0.5, 1)}, op("Div"));
}

TEST(Activations, AgreeWithTheReference) {
  const std::vector<Tensor> x = {random_tensor({2, 17, 5, 6}, 1, -3, 3)};
  conform_both(x, op("Clip", {{"min", -1.0}, {"max", 2.0}}));
  conform_both(x, op("Clip", {{"min", 0.5}, {"max", 2.0}}));  // zero does not stay zero: padding forbids the layout
  conform_both(x, op("Sigmoid"));
  conform_both(x, op("Tanh"));
}

TEST(Elementwise, BroadcastsLikeTheReference) {
  for (const std::int64_t c : {16, 17}) {
    const Shape shape = {2, c, 5, 6};
    for (const Shape& small : {Shape{c, 1, 1}, Shape{2, c, 1, 1}, Shape{1, c, 1, 1}, Shape{}, Shape{6}}) {
      for (const char* name : {"Add", "Sub", "Mul", "Div"}) {
        SCOPED_TRACE(name + (" " + graph::to_string(small)));
        conform_both({random_tensor(shape, 1), random_tensor(small, 2, 0.5, 1)}, op(name));
        conform_both({random_tensor(small, 2), random_tensor(shape, 1, 0.5, 1)}, op(name));
      }
    }
  }
}

TEST(Matrices, AgreeWithTheReference) {
  const auto check = [](const Shape& a, const Shape& b, const Attrs& attrs, bool bias) {
    std::vector<Tensor> inputs = {random_tensor(a, 1), random_tensor(b, 2)};
    if (bias) inputs.push_back(random_tensor({7}, 3));
    conform(cpu(), inputs, op("Gemm", attrs));
  };
  const std::int64_t yes = 1;
  for (const bool bias : {false, true}) {
    check({5, 10}, {10, 7}, {}, bias);
    check({5, 10}, {7, 10}, {{"transB", yes}}, bias);
    check({10, 5}, {10, 7}, {{"transA", yes}}, bias);
    check({5, 10}, {10, 7}, {{"alpha", 0.5}, {"beta", 2.0}}, bias);
  }
  conform(cpu(), {random_tensor({4, 6}, 1), random_tensor({6, 3}, 2)}, op("MatMul"));
  conform(cpu(), {random_tensor({2, 3, 4, 6}, 1), random_tensor({6, 5}, 2)}, op("MatMul"));
  conform(cpu(), {random_tensor({2, 3, 4, 6}, 1), random_tensor({3, 6, 5}, 2)}, op("MatMul"));
}

/// Reorders there and back through every layout that is used, with padding.
TEST(Reorder, KeepsEveryElement) {
  for (const char* tag : {"aBcd16b", "aBcd8b", "acdb"}) {
    Builder b(ops::all());
    const ValueId x = b.input("x", {DType::kF32, {2, 10, 3, 5}});
    const ValueId there = b.add("Reorder", {x}), back = b.add("Reorder", {there});
    graph::Graph g = b.take({back});
    const std::int64_t stored = std::string(tag) == "acdb" ? 10 : 16;
    g.values[there].format = {tag, 2 * stored * 15 * 4};
    const Tensor data = ops::to_dtype(random_tensor({2, 10, 3, 5}, 1), DType::kF32);
    EXPECT_EQ(run_on(cpu(), g, {{x, data}})[0], data) << tag;
  }
}

class Updates : public testing::TestWithParam<const char*> {};

/// One step of convolution weights whose layout is blocked and padded.
TEST_P(Updates, AgreeWithTheReference) {
  const std::string name = GetParam();
  for (const double decay : {0.0, 0.01}) {
    for (const std::int64_t variant : {0, 1}) {
      const auto make = [&](Builder& b, const std::vector<ValueId>& x) {
        const ValueId y = b.add("Conv", {x[0], x[1]});
        const ValueId dy = b.add("Mul", {y, y});
        const ValueId dw = b.add("ConvGradWeight", {dy, x[0]}, {{"weight_shape", Ints{17, 10, 3, 3}}});
        const ValueId lr = b.constant("lr", graph::tensor_of(DType::kF32, {}, std::vector<float>{0.125F}));
        const ValueId rng = b.constant("rng", graph::tensor_of<std::int64_t>(DType::kI64, {2}, {1, 2}));
        const graph::TensorType w = b.graph().values[x[1]].type;
        const auto state = [&](const char* label, unsigned seed) {
          return b.state(label, ops::to_dtype(random_tensor(w.shape, seed, 0, 1), w.dtype));
        };
        Attrs attrs = {{"weight_decay", decay}};
        std::vector<ValueId> inputs = {x[1], dw};
        std::vector<bool> wanted = {true};
        if (name == "MomentumUpdate") attrs["nesterov"] = variant;
        if (name == "AdamUpdate") attrs["decoupled"] = variant;
        if (name != "SgdUpdate") inputs.push_back(state("m", 5)), wanted.push_back(true);
        if (name == "AdamUpdate") inputs.push_back(state("v", 6)), wanted.push_back(true);
        inputs.push_back(lr);
        if (name == "AdamUpdate") inputs.push_back(rng);
        return b.add({.op = name, .inputs = inputs, .attrs = attrs, .wanted = wanted});
      };
      conform(cpu(), {random_tensor({2, 10, 6, 6}, 1), random_tensor({17, 10, 3, 3}, 2)}, make,
              {.tolerance = 5e-4, .gradients = false});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, Updates, testing::Values("SgdUpdate", "MomentumUpdate", "AdamUpdate"),
                         [](const auto& parameter) { return std::string(parameter.param); });

TEST(Large, RunsOnAllThreads) {  // past the size at which own loops wake the second thread
  const Shape shape = {4, 24, 20, 20};
  conform_both({random_tensor(shape, 1)}, op("Relu"));
  conform_both({random_tensor(shape, 1), random_tensor(shape, 2)}, op("Add", {{"activation", std::string("relu")}}));
}

bool is_heavy(const std::string& name) {
  return name.starts_with("Conv") || name.starts_with("BatchNormTrain") || name.ends_with("Update") ||
         name.find("Pool") != std::string::npos || name == "Gemm" || name == "MatMul" || name == "Add" ||
         name.starts_with("Relu") || name == "Reorder";
}

/// A training step of a whole network with every implementation that the nodes have: loss and all new versions.
class Networks : public testing::TestWithParam<const char*> {};

TEST_P(Networks, TrainLikeTheReference) {
  const graph::Graph forward =
      passes::fuse_activations(passes::promote_to_training(onnx::make(GetParam(), 2), ops::all()), ops::all());
  const bool matrix = forward.values[forward.outputs[0]].type.shape.size() == 2;
  const auto loss = matrix ? autodiff::Loss::kSoftmaxCrossEntropy : autodiff::Loss::kMeanSquaredError;
  graph::Graph plain = autodiff::make_training(forward, ops::all(), {.loss = loss}).graph;
  plain = passes::remove_dead(plain, ops::all());
  for (const graph::Node& node : plain.nodes) {
    for (const auto& [output, input] : ops::all().at(node.op).overwrites)
      plain.outputs.push_back(node.outputs[static_cast<std::size_t>(output)]);
  }
  const graph::Graph fast = passes::assign_formats(plain, ops::all(), *cpu().format_rules());
  EXPECT_TRUE(graph::verify(fast, ops::all()).empty());
  ops::Feeds feeds, fast_feeds;
  for (const ValueId v : graph::values_of_kind(plain, graph::ValueKind::kInput)) {
    const graph::TensorType& type = plain.values[v].type;
    Tensor tensor = graph::zeros(type);
    if (type.dtype == DType::kF32)
      tensor = ops::to_dtype(type.shape.empty() ? ops::reals({}, {0.01}) : random_tensor(type.shape, 3), DType::kF32);
    feeds.emplace(v, tensor);
    fast_feeds.emplace(graph::find_value(fast, plain.values[v].name), tensor);
  }
  for (const graph::Node& node : fast.nodes) {  // what costs time has a kernel of its own
    const runtime::Offer offer = cpu().offer(graph::NodeView(fast, node));
    const bool own = offer.impls.empty() || !offer.impls[0].name.starts_with("reference:");
    EXPECT_TRUE(own || !is_heavy(node.op)) << node.name << " (" << node.op << ") runs by the reference";
  }
  const ops::Values expected = ops::interpret(plain, ops::all(), feeds);
  for (std::size_t k = 0; k < 3; ++k) {
    const std::vector<Tensor> actual = run_on(cpu(), fast, fast_feeds, {.implementation = k, .offset = 64});
    ASSERT_EQ(actual.size(), plain.outputs.size());
    for (std::size_t i = 0; i < actual.size(); ++i)
      ops::expect_close(actual[i], expected[plain.outputs[i]], 2e-3, plain.values[plain.outputs[i]].name);
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, Networks, testing::Values("lenet", "mlp", "resnet8", "unet"),
                         [](const auto& parameter) { return std::string(parameter.param); });

TEST(Residual, BlockAgreesWithTheReference) {
  const Ints pads = {1, 1, 1, 1};
  const std::vector<Tensor> inputs = {random_tensor({2, 17, 8, 8}, 1), random_tensor({17, 17, 3, 3}, 2, -0.2, 0.2),
                                      random_tensor({17}, 3, 0.5, 1.5), random_tensor({17}, 4)};
  conform_both(
      inputs,
      [&](Builder& b, const std::vector<ValueId>& x) {
        const ValueId y = b.add("Conv", {x[0], x[1]}, {{"pads", pads}});
        const ValueId n = b.add("BatchNormTrain", {y, x[2], x[3]}, {{"activation", std::string("relu")}});
        const ValueId s = b.add("Add", {n, x[0]}, {{"activation", std::string("relu")}});
        return std::vector{b.add("MaxPool", {s}, {{"kernel_shape", Ints{2, 2}}})};
      },
      5e-4);
}

}  // namespace
}  // namespace neaptide
