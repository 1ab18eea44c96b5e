#include "check.hpp"

namespace neaptide::ops {
namespace {

using graph::Attrs;
using graph::Builder;
using graph::ValueId;
using Axes = std::vector<std::int64_t>;

MakeOp op(const std::string& name, const Attrs& attrs = {}) {
  return [=](Builder& b, const std::vector<ValueId>& x) { return std::vector{b.add(name, x, attrs)}; };
}

TEST(Reduce, GradientsOverEverySetOfAxes) {
  for (const std::string name : {"ReduceSum", "ReduceMean"}) {
    for (const std::int64_t keep : {0, 1}) {
      for (const Axes& axes : std::vector<Axes>{{}, {0}, {1}, {-1}, {0, 2}, {2, 1}, {0, 1, 2}}) {
        Attrs attrs{{"keepdims", keep}};
        if (!axes.empty()) attrs["axes"] = axes;
        check_op({random_tensor({2, 3, 4}, 1)}, op(name, attrs));
      }
    }
  }
}

TEST(Reduce, AxesAsAConstantInput) {
  const MakeOp make = [](Builder& b, const std::vector<ValueId>& x) {
    return std::vector{
        b.add("ReduceSum", {x[0], b.constant("axes", integers({1}, {1}))}, {{"keepdims", std::int64_t{0}}})};
  };
  check_op({random_tensor({2, 3}, 1)}, make);
  EXPECT_EQ(to_doubles(evaluate({reals({2, 2}, {1, 2, 3, 4})}, make)[0]), (std::vector<double>{3, 7}));
}

TEST(Reduce, NoAxesCanMeanNothing) {
  const auto y = evaluate({reals({2, 2}, {1, 2, 3, 4})}, op("ReduceSum", {{"noop_with_empty_axes", std::int64_t{1}}}));
  EXPECT_EQ(to_doubles(y[0]), (std::vector<double>{1, 2, 3, 4}));
}

TEST(Reduce, SumsOfIntegers) {
  EXPECT_EQ(to_doubles(evaluate({integers({3}, {1, 2, 3})}, op("ReduceSum", {{"keepdims", std::int64_t{0}}}))[0]),
            (std::vector<double>{6}));
}

TEST(Reduce, Refusals) {
  EXPECT_EQ(refusal({random_tensor({2}, 1), integers({1}, {0})}, op("ReduceSum")),
            "node 'reducesum' (ReduceSum): the axes are not a constant");
  EXPECT_EQ(refusal({random_tensor({2}, 1)}, op("ReduceMean", {{"axes", Axes{1}}})),
            "node 'reducemean' (ReduceMean): axis 1 is outside a tensor of 1 dimensions");
}

}  // namespace
}  // namespace neaptide::ops
