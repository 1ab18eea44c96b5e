#include "check.hpp"

namespace neaptide::ops {
namespace {

using graph::Attrs;
using graph::Builder;
using graph::DType;
using graph::Shape;
using graph::Tensor;
using graph::tensor_of;
using graph::ValueId;

MakeOp op(const std::string& name, const Attrs& attrs = {}) {
  return [=](Builder& b, const std::vector<ValueId>& x) { return std::vector{b.add(name, x, attrs)}; };
}

struct Shapes {
  Shape a, b;
};

const std::vector<Shapes> kBroadcasts = {
    {{2, 3}, {2, 3}},
    {{2, 3}, {3}},
    {{3}, {2, 3}},
    {{2, 3}, {1}},
    {{2, 3}, {}},
    {{}, {2, 3}},
    {{2, 1}, {1, 3}},
    {{2, 3, 2}, {2, 1, 2}},
    {{2, 3, 2}, {3, 1}},
    {{}, {}},
    {{1, 1}, {1}},
    {{2, 3, 1, 2}, {3, 4, 1}},
    {{1, 2, 3, 2}, {1, 2, 1, 1}},
};

class Binary : public testing::TestWithParam<std::string> {};

TEST_P(Binary, GradientsUnderBroadcasting) {
  for (const Shapes& s : kBroadcasts) {
    SCOPED_TRACE(graph::to_string(s.a) + " with " + graph::to_string(s.b));
    check_op({random_tensor(s.a, 1), random_tensor(s.b, 2, 0.5, 2)}, op(GetParam()));
  }
}

TEST_P(Binary, TheSameValueTwice) {
  const std::string name = GetParam();
  check_op({random_tensor({2, 3}, 3, 0.5, 2)}, [=](Builder& b, const std::vector<ValueId>& x) {
    return std::vector{b.add(name, {x[0], x[0]})};
  });
}

INSTANTIATE_TEST_SUITE_P(Arithmetic, Binary, testing::Values("Add", "Sub", "Mul", "Div"),
                         [](const auto& i) { return i.param; });

TEST(Arithmetic, AddWithReluActivation) {
  for (const Shapes& s : kBroadcasts) {
    check_op({random_tensor(s.a, 4), random_tensor(s.b, 5)}, op("Add", {{"activation", "relu"}}));
  }
  const auto y = evaluate({reals({3}, {-2, 1, 3}), reals({3}, {1, 1, -3})}, op("Add", {{"activation", "relu"}}));
  EXPECT_EQ(to_doubles(y[0]), (std::vector<double>{0, 2, 0}));
}

TEST(Arithmetic, IntegersWrapAndDivideTowardsZero) {
  const Tensor a = tensor_of(DType::kI32, {4}, std::vector<std::int32_t>{7, -7, 2147483647, -2147483648});
  const Tensor b = tensor_of(DType::kI32, {4}, std::vector<std::int32_t>{2, 2, 0, -1});
  EXPECT_EQ(to_doubles(evaluate({a, b}, op("Div"))[0]), (std::vector<double>{3, -3, 0, -2147483648.0}));
  EXPECT_EQ(to_doubles(evaluate({a, b}, op("Sub"))[0]), (std::vector<double>{5, -9, 2147483647.0, -2147483647.0}));
  EXPECT_EQ(to_doubles(evaluate({integers({2}, {3, 4}), integers({2}, {5, -6})}, op("Mul"))[0]),
            (std::vector<double>{15, -24}));
}

TEST(Arithmetic, SumOfMany) {
  check_op({random_tensor({2, 3}, 1)}, op("Sum"));
  check_op({random_tensor({2, 3}, 1), random_tensor({3}, 2), random_tensor({2, 1}, 3)}, op("Sum"));
}

TEST(Arithmetic, SumToIsTheAdjointOfBroadcasting) {
  for (const Shape& to : std::vector<Shape>{{2, 3, 2}, {3, 2}, {2, 1, 2}, {1, 3, 1}, {1}, {}, {2}, {3, 1}})
    check_op({random_tensor({2, 3, 2}, 6)}, op("SumTo", {{"shape", to}}));
  EXPECT_EQ(to_doubles(evaluate({reals({2, 2}, {1, 2, 3, 4})}, op("SumTo", {{"shape", Shape{2}}}))[0]),
            (std::vector<double>{4, 6}));
}

TEST(Arithmetic, ExpandTo) {
  for (const Shape& from : std::vector<Shape>{{2, 3, 2}, {3, 2}, {2, 1, 2}, {1, 3, 1}, {1}, {}, {2}, {3, 1}})
    check_op({random_tensor(from, 7)}, op("ExpandTo", {{"shape", Shape{2, 3, 2}}, {"scale", -0.25}}));
}

TEST(Arithmetic, Refusals) {
  EXPECT_EQ(refusal({random_tensor({2}, 1), random_tensor({3}, 1)}, op("Add")),
            "node 'add' (Add): shapes 2 and 3 cannot be broadcast together");
  EXPECT_EQ(refusal({random_tensor({2}, 1), integers({2}, {1, 2})}, op("Mul")),
            "node 'mul' (Mul): the operands are f64 and i64; they must have one element type");
  EXPECT_EQ(refusal({random_tensor({2}, 1), random_tensor({2}, 1)}, op("Add", {{"activation", "tanh"}})),
            "node 'add' (Add): activation 'tanh' is unknown; '' and 'relu' are known");
  EXPECT_EQ(refusal({random_tensor({2}, 1)}, op("SumTo", {{"shape", Shape{3}}})),
            "node 'sumto' (SumTo): shape 3 cannot be broadcast to the input's 2");
}

}  // namespace
}  // namespace neaptide::ops
