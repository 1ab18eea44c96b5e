#include "check.hpp"

namespace neaptide::ops {
namespace {

using graph::Builder;
using graph::ValueId;

MakeOp along(const std::string& name, std::int64_t axis) {
  return [=](Builder& b, const std::vector<ValueId>& x) { return std::vector{b.add(name, x, {{"axis", axis}})}; };
}

TEST(Softmax, GradientsAlongEveryAxis) {
  for (const std::string name : {"Softmax", "LogSoftmax"}) {
    for (const std::int64_t axis : {-1, 0, 1, 2}) check_op({random_tensor({2, 3, 4}, 1, -2, 2)}, along(name, axis));
    check_op({random_tensor({5}, 2)}, along(name, 0));
    check_op({random_tensor({2, 1}, 2)}, along(name, 1));
  }
}

TEST(Softmax, LargeScoresDoNotOverflow) {
  const auto y = to_doubles(evaluate({reals({1, 3}, {1000, 1000, -1000})}, along("Softmax", -1))[0]);
  EXPECT_EQ(y, (std::vector<double>{0.5, 0.5, 0}));
}

TEST(Softmax, RefusesAnAxisOutsideTheTensor) {
  EXPECT_EQ(refusal({random_tensor({2, 3}, 1)}, along("Softmax", 2)),
            "node 'softmax' (Softmax): axis 2 is outside a tensor of 2 dimensions");
}

}  // namespace
}  // namespace neaptide::ops
