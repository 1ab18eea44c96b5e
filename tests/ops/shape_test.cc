#include <cmath>
#include <limits>

#include "check.hpp"

namespace neaptide::ops {
namespace {

using graph::Attrs;
using graph::Builder;
using graph::DType;
using graph::Shape;
using graph::tensor_of;
using graph::ValueId;
using Ints = std::vector<std::int64_t>;

MakeOp op(const std::string& name, const Attrs& attrs = {}) {
  return [=](Builder& b, const std::vector<ValueId>& x) { return std::vector{b.add(name, x, attrs)}; };
}

/// The second input is a constant.
MakeOp with_constant(const std::string& name, const Ints& values) {
  return [=](Builder& b, const std::vector<ValueId>& x) {
    const auto n = static_cast<std::int64_t>(values.size());
    return std::vector{b.add(name, {x[0], b.constant("values", integers({n}, values))})};
  };
}

Shape shape_after(const Shape& from, const MakeOp& make) {
  return evaluate({random_tensor(from, 1)}, make)[0].type.shape;
}

TEST(Shape, Reshape) {
  EXPECT_EQ(shape_after({2, 3, 4}, op("Reshape", {{"shape", Ints{6, -1}}})), (Shape{6, 4}));
  EXPECT_EQ(shape_after({2, 3, 4}, with_constant("Reshape", {0, -1})), (Shape{2, 12}));
  EXPECT_EQ(shape_after({1}, op("Reshape", {{"shape", Ints{}}})), (Shape{}));
  EXPECT_EQ(shape_after({2, 0}, op("Reshape", {{"shape", Ints{0, 5}}, {"allowzero", std::int64_t{1}}})), (Shape{0, 5}));
  check_op({random_tensor({2, 3}, 1)}, op("Reshape", {{"shape", Ints{3, 2}}}));
}

TEST(Shape, FlattenSqueezeUnsqueezeIdentity) {
  EXPECT_EQ(shape_after({2, 3, 4}, op("Flatten")), (Shape{2, 12}));
  EXPECT_EQ(shape_after({2, 3, 4}, op("Flatten", {{"axis", std::int64_t{0}}})), (Shape{1, 24}));
  EXPECT_EQ(shape_after({2, 3, 4}, op("Flatten", {{"axis", std::int64_t{-1}}})), (Shape{6, 4}));
  EXPECT_EQ(shape_after({2, 1, 4, 1}, op("Squeeze")), (Shape{2, 4}));
  EXPECT_EQ(shape_after({2, 1, 4, 1}, op("Squeeze", {{"axes", Ints{-1}}})), (Shape{2, 1, 4}));
  EXPECT_EQ(shape_after({2, 1, 4, 1}, with_constant("Squeeze", {1})), (Shape{2, 4, 1}));
  EXPECT_EQ(shape_after({2, 3}, op("Unsqueeze", {{"axes", Ints{0, -1}}})), (Shape{1, 2, 3, 1}));
  EXPECT_EQ(shape_after({2, 3}, with_constant("Unsqueeze", {1})), (Shape{2, 1, 3}));
  check_op({random_tensor({2, 1, 3}, 1)}, op("Flatten"));
  check_op({random_tensor({2, 1, 3}, 1)}, op("Squeeze"));
  check_op({random_tensor({2, 1, 3}, 1)}, with_constant("Unsqueeze", {0}));
  check_op({random_tensor({2, 1, 3}, 1)}, op("Identity"));
}

TEST(Shape, Transpose) {
  for (const Ints& perm : std::vector<Ints>{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}})
    check_op({random_tensor({2, 3, 4}, 1)}, op("Transpose", {{"perm", perm}}));
  EXPECT_EQ(to_doubles(evaluate({integers({2, 3}, {1, 2, 3, 4, 5, 6})}, op("Transpose"))[0]),
            (std::vector<double>{1, 4, 2, 5, 3, 6}));
  const auto bytes = tensor_of(DType::kU8, {2, 2}, std::vector<std::uint8_t>{1, 2, 3, 4});
  EXPECT_EQ(to_doubles(evaluate({bytes}, op("Transpose"))[0]), (std::vector<double>{1, 3, 2, 4}));
}

TEST(Shape, Concat) {
  check_op({random_tensor({2, 1, 3}, 1), random_tensor({2, 4, 3}, 2), random_tensor({2, 2, 3}, 3)},
           op("Concat", {{"axis", std::int64_t{1}}}));
  check_op({random_tensor({2, 3}, 1), random_tensor({1, 3}, 2)}, op("Concat", {{"axis", std::int64_t{0}}}));
  check_op({random_tensor({2, 3}, 1), random_tensor({2, 1}, 2)}, op("Concat", {{"axis", std::int64_t{-1}}}));
  EXPECT_EQ(to_doubles(evaluate({integers({2, 1}, {1, 2}), integers({2, 2}, {3, 4, 5, 6})},
                                op("Concat", {{"axis", std::int64_t{1}}}))[0]),
            (std::vector<double>{1, 3, 4, 2, 5, 6}));
}

struct SliceCase {
  std::int64_t axis, start, end;
  Shape result;
};

TEST(Shape, Slice) {
  const std::vector<SliceCase> cases = {{0, 0, 1, {1, 5, 3}},   {1, 1, 4, {2, 3, 3}},  {2, 0, 3, {2, 5, 3}},
                                        {-1, -2, 3, {2, 5, 2}}, {1, 2, -1, {2, 2, 3}}, {1, 3, 1000, {2, 2, 3}}};
  for (const SliceCase& c : cases) {
    const MakeOp make = op("Slice", {{"axis", c.axis}, {"start", c.start}, {"end", c.end}});
    EXPECT_EQ(shape_after({2, 5, 3}, make), c.result);
    check_op({random_tensor({2, 5, 3}, 1)}, make);
  }
  const MakeOp empty = op("Slice", {{"axis", std::int64_t{0}}, {"start", std::int64_t{3}}, {"end", std::int64_t{1}}});
  EXPECT_EQ(shape_after({4}, empty), (Shape{0}));
}

TEST(Shape, Cast) {
  const MakeOp there_and_back = [](Builder& b, const std::vector<ValueId>& x) {
    const std::string from(graph::to_string(b.graph().values[x[0]].type.dtype));
    return std::vector{b.add("Cast", {b.add("Cast", x, {{"to", "f64"}})}, {{"to", from}})};
  };
  check_op({random_tensor({2, 3}, 1)}, there_and_back);
  const auto x = reals({6}, {1.9, -1.9, 0, 1e30, -1e30, std::nan("")});
  EXPECT_EQ(to_doubles(evaluate({x}, op("Cast", {{"to", "i32"}}))[0]),
            (std::vector<double>{1, -1, 0, 2147483647.0, -2147483648.0, 0}));
  EXPECT_EQ(to_doubles(evaluate({x}, op("Cast", {{"to", std::int64_t{9}}}))[0]),
            (std::vector<double>{1, 1, 0, 1, 1, 1}));
  EXPECT_EQ(evaluate({x}, op("Cast", {{"to", std::int64_t{1}}}))[0].type.dtype, DType::kF32);
  EXPECT_EQ(to_doubles(evaluate({integers({2}, {3, -4})}, op("Cast", {{"to", "f32"}}))[0]),
            (std::vector<double>{3, -4}));
}

TEST(Shape, Refusals) {
  EXPECT_EQ(refusal({random_tensor({2, 3}, 1)}, op("Reshape", {{"shape", Ints{4, -1}}})),
            "node 'reshape' (Reshape): f64[2x3] cannot become [4, -1]");
  EXPECT_EQ(refusal({random_tensor({2, 3}, 1)}, op("Reshape", {{"shape", Ints{-1, -1}}})),
            "node 'reshape' (Reshape): the shape has more than one -1");
  EXPECT_EQ(refusal({random_tensor({2, 3}, 1), integers({1}, {6})}, op("Reshape")),
            "node 'reshape' (Reshape): 'shape' is not a constant");
  EXPECT_EQ(refusal({random_tensor({2, 3}, 1)}, op("Squeeze", {{"axes", Ints{1}}})),
            "node 'squeeze' (Squeeze): dimension 1 of f64[2x3] is not 1");
  EXPECT_EQ(refusal({random_tensor({2, 3}, 1)}, op("Transpose", {{"perm", Ints{0, 0}}})),
            "node 'transpose' (Transpose): perm names axis 0 twice");
  EXPECT_EQ(refusal({random_tensor({2, 3}, 1), random_tensor({3, 3}, 1)}, op("Concat", {{"axis", std::int64_t{1}}})),
            "node 'concat' (Concat): input 1 is f64[3x3], which does not fit input 0, f64[2x3], along axis 1");
  EXPECT_EQ(refusal({random_tensor({2, 3}, 1)}, op("Cast", {{"to", std::int64_t{8}}})),
            "node 'cast' (Cast): ONNX element type 8 is not supported");
}

}  // namespace
}  // namespace neaptide::ops
