#include "check.hpp"
#include "neaptide/autodiff/autodiff.hpp"
#include "neaptide/ops/ops.hpp"

namespace neaptide::ops {
namespace {

using graph::Attrs;
using graph::Builder;
using graph::Shape;
using graph::ValueId;

MakeOp op(const std::string& name, const Attrs& attrs = {}) {
  return [=](Builder& b, const std::vector<ValueId>& x) { return std::vector{b.add(name, x, attrs)}; };
}

TEST(Gemm, GradientsWithEveryTransposition) {
  for (const std::int64_t ta : {0, 1}) {
    for (const std::int64_t tb : {0, 1}) {
      const Shape a = ta != 0 ? Shape{4, 3} : Shape{3, 4}, b = tb != 0 ? Shape{5, 4} : Shape{4, 5};
      const Attrs plain{{"transA", ta}, {"transB", tb}};
      Attrs scaled = plain;
      scaled["alpha"] = 0.5;
      scaled["beta"] = -2.0;
      check_op({random_tensor(a, 1), random_tensor(b, 2)}, op("Gemm", plain));
      check_op({random_tensor(a, 1), random_tensor(b, 2), random_tensor({5}, 3)}, op("Gemm", scaled));
    }
  }
}

TEST(Gemm, GradientsWithEveryShapeOfC) {
  for (const Shape& c : std::vector<Shape>{{3, 5}, {5}, {1, 5}, {3, 1}, {1}, {}})
    check_op({random_tensor({3, 4}, 1), random_tensor({4, 5}, 2), random_tensor(c, 3)}, op("Gemm"));
}

TEST(Gemm, ManyColumns) {
  const MakeOp small_step = op("Gemm", {{"transB", std::int64_t{1}}});
  check_op({random_tensor({2, 2}, 1), random_tensor({131, 2}, 2), random_tensor({131}, 3)}, small_step);
}

TEST(Gemm, Refusals) {
  EXPECT_EQ(refusal({random_tensor({2, 3}, 1), random_tensor({2, 3}, 1)}, op("Gemm")),
            "node 'gemm' (Gemm): the inner sizes of 2x3 and 2x3 are 3 and 2; they must be equal");
  EXPECT_EQ(refusal({random_tensor({2, 3}, 1), random_tensor({3, 2}, 1), random_tensor({3}, 1)}, op("Gemm")),
            "node 'gemm' (Gemm): c is f64[3], which cannot be broadcast to 2x2");
  EXPECT_EQ(refusal({random_tensor({2, 3, 1}, 1), random_tensor({3, 2}, 1)}, op("Gemm")),
            "node 'gemm' (Gemm): the factors are f64[2x3x1] and f64[3x2]; matrices are needed");
}

struct MatMulCase {
  Shape a, b;
  std::int64_t trans_a = 0, trans_b = 0;
};

TEST(MatMul, GradientsOfBatchesVectorsAndTranspositions) {
  const std::vector<MatMulCase> cases = {
      {{3, 4}, {4, 2}},
      {{3, 4}, {2, 4}, 0, 1},
      {{4, 3}, {4, 2}, 1, 0},
      {{4, 3}, {2, 4}, 1, 1},
      {{2, 3, 4}, {2, 4, 2}},
      {{2, 3, 4}, {4, 2}},
      {{2, 3, 4}, {2, 4}, 0, 1},
      {{2, 4, 3}, {4, 2}, 1, 0},
      {{3, 4}, {2, 4, 2}},
      {{4, 3}, {2, 2, 4}, 1, 1},
      {{2, 1, 3, 4}, {3, 4, 2}},
      {{1, 3, 4}, {2, 4, 2}},
      {{2, 2, 3, 2}, {1, 2, 2, 3}},
      {{4}, {4}},
      {{4}, {4, 2}},
      {{3, 4}, {4}},
      {{2, 3, 4}, {4}},
      {{4}, {2, 4, 3}},
  };
  for (const MatMulCase& c : cases) {
    SCOPED_TRACE(graph::to_string(c.a) + " times " + graph::to_string(c.b));
    check_op({random_tensor(c.a, 1), random_tensor(c.b, 2)},
             op("MatMul", {{"trans_a", c.trans_a}, {"trans_b", c.trans_b}}));
  }
}

TEST(MatMul, AStackTimesAMatrixSumsNoBatchOfGradients) {
  Builder b(all());
  const ValueId a = b.input("a", {graph::DType::kF64, {8, 3, 4}}), w = b.input("w", {graph::DType::kF64, {4, 2}});
  const ValueId y = b.add("MatMul", {a, w});
  autodiff::append_backward(b, {y}, {b.input("dy", b.graph().values[y].type)}, {w});
  for (const graph::Node& node : b.graph().nodes) EXPECT_NE(node.op, "SumTo");
}

TEST(MatMul, Refusals) {
  EXPECT_EQ(refusal({random_tensor({2, 3}, 1), random_tensor({2, 3}, 1)}, op("MatMul")),
            "node 'matmul' (MatMul): the inner sizes of 2x3 and 2x3 are 3 and 2; they must be equal");
  EXPECT_EQ(refusal({random_tensor({}, 1), random_tensor({2, 3}, 1)}, op("MatMul")),
            "node 'matmul' (MatMul): a factor is a scalar; use Mul");
  EXPECT_EQ(refusal({random_tensor({2, 3, 4}, 1), random_tensor({3, 4, 5}, 1)}, op("MatMul")),
            "node 'matmul' (MatMul): shapes 2 and 3 cannot be broadcast together");
}

}  // namespace
}  // namespace neaptide::ops
