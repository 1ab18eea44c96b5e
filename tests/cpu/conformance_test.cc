// Every kernel of the CPU backend against the reference in double precision: plain and blocked inputs, odd channel
// counts, all implementations, gradients.
#include <gtest/gtest.h>

#include <memory>
#include <ostream>

#include "neaptide/backends/cpu/cpu.hpp"
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

TEST(Large, RunsOnAllThreads) {  // past the size at which own loops wake the second thread
  const Shape shape = {4, 24, 20, 20};
  conform_both({random_tensor(shape, 1)}, op("Relu"));
  conform_both({random_tensor(shape, 1), random_tensor(shape, 2)}, op("Add", {{"activation", std::string("relu")}}));
}

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
