#include <cmath>
#include <limits>

#include "check.hpp"
#include "neaptide/ops/ops.hpp"

namespace neaptide::ops {
namespace {

using graph::Attrs;
using graph::Builder;
using graph::DType;
using graph::tensor_of;
using graph::ValueId;

MakeOp op(const std::string& name, const Attrs& attrs = {}) {
  return [=](Builder& b, const std::vector<ValueId>& x) { return std::vector{b.add(name, x, attrs)}; };
}

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(Activation, Gradients) {
  for (const std::string name : {"Relu", "Sigmoid", "Tanh"}) {
    SCOPED_TRACE(name);
    for (const graph::Shape& shape : std::vector<graph::Shape>{{}, {1}, {8}, {9}, {2, 3, 5}})
      check_op({random_tensor(shape, 1, -3, 3)}, op(name));
  }
}

TEST(Activation, ReluKeepsNaN) {
  const auto y = to_doubles(evaluate({reals({3}, {kNaN, -1, 2})}, op("Relu"))[0]);
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(y[1], 0);
  EXPECT_EQ(y[2], 2);
}

TEST(Activation, ReluOfIntegers) {
  EXPECT_EQ(to_doubles(evaluate({integers({3}, {-5, 0, 7})}, op("Relu"))[0]), (std::vector<double>{0, 0, 7}));
}

TEST(Activation, SigmoidAndTanhDoNotOverflow) {
  const auto x = reals({4}, {-1000, -30, 30, 1000});
  EXPECT_EQ(to_doubles(evaluate({x}, op("Sigmoid"))[0])[0], 0);
  EXPECT_EQ(to_doubles(evaluate({x}, op("Sigmoid"))[0])[3], 1);
  EXPECT_NEAR(to_doubles(evaluate({x}, op("Sigmoid"))[0])[1], std::exp(-30), 1e-25);
  EXPECT_EQ(to_doubles(evaluate({x}, op("Tanh"))[0])[3], 1);
}

TEST(Activation, ClipByAttributes) {
  for (const Attrs& attrs : std::vector<Attrs>{{{"min", -0.5}, {"max", 0.75}}, {{"min", 0.1}}, {{"max", 0.1}}, {}})
    check_op({random_tensor({3, 7}, 2)}, op("Clip", attrs));
}

TEST(Activation, ClipByConstantInputs) {
  const MakeOp both = [](Builder& b, const std::vector<ValueId>& x) {
    const DType dtype = b.graph().values[x[0]].type.dtype;
    return std::vector{b.add("Clip", {x[0], b.constant("low", to_dtype(reals({}, {-0.5}), dtype)),
                                      b.constant("high", to_dtype(reals({1}, {0.25}), dtype))})};
  };
  check_op({random_tensor({3, 7}, 3)}, both);
  const MakeOp high_only = [](Builder& b, const std::vector<ValueId>& x) {
    return std::vector{b.add("Clip", {x[0], ValueId(), b.constant("high", reals({}, {0.25}))})};
  };
  check_op({random_tensor({5}, 4)}, high_only);
  EXPECT_EQ(to_doubles(evaluate({reals({4}, {-1, -0.5, 0.25, 3})}, both)[0]),
            (std::vector<double>{-0.5, -0.5, 0.25, 0.25}));
}

TEST(Activation, ClipOfIntegers) {
  EXPECT_EQ(to_doubles(evaluate({integers({3}, {-5, 2, 7})}, op("Clip", {{"min", -1.0}, {"max", 3.0}}))[0]),
            (std::vector<double>{-1, 2, 3}));
  EXPECT_EQ(to_doubles(evaluate({integers({3}, {-5, 2, 7})}, op("Clip"))[0]), (std::vector<double>{-5, 2, 7}));
}

TEST(Activation, TheGradientOfClipPassesBetweenTheBoundsOnly) {
  Builder b(all());
  const ValueId dy = b.input("dy", {DType::kF64, {5}}), x = b.input("x", {DType::kF64, {5}});
  const ValueId dx = b.add("ClipGrad", {dy, x}, {{"min", 0.0}, {"max", 6.0}});
  const graph::Graph g = b.take({dx});
  const Values v = interpret(g, all(), {{dy, reals({5}, {1, 2, 3, 4, 5})}, {x, reals({5}, {-1, 0, 3, 6, 7})}});
  EXPECT_EQ(to_doubles(v[dx]), (std::vector<double>{0, 0, 3, 0, 0}));
}

TEST(Activation, Refusals) {
  EXPECT_EQ(refusal({integers({2}, {1, 2})}, op("Tanh")), "node 'tanh' (Tanh): computes on f32 and f64, not on i64");
  EXPECT_EQ(refusal({random_tensor({2}, 1), random_tensor({}, 1)}, op("Clip")),
            "node 'clip' (Clip): 'min' is not a constant");
  EXPECT_EQ(refusal({random_tensor({2}, 1), random_tensor({3}, 1)}, op("ReluGrad")),
            "node 'relugrad' (ReluGrad): input 0 is f64[2] and input 1 is f64[3]; they must be alike");
}

}  // namespace
}  // namespace neaptide::ops
