#include "check.hpp"
#include "neaptide/ops/ops.hpp"

namespace neaptide::ops {
namespace {

using graph::Attrs;
using graph::Builder;
using graph::DType;
using graph::Graph;
using graph::tensor_of;
using graph::ValueId;

struct Step {
  Graph graph;
  ValueId w, m, lr;
};

Step momentum_step(const Attrs& attrs) {
  Builder b(all());
  Step s;
  s.w = b.parameter("w", reals({2}, {1, -2}));
  s.m = b.state("m", reals({2}, {0, 0}));
  s.lr = b.input("lr", {DType::kF32, {}});
  b.add({.op = "MomentumUpdate",
         .inputs = {s.w, b.constant("dw", reals({2}, {0.5, 1})), s.m, s.lr},
         .attrs = attrs,
         .wanted = {true, true}});
  s.graph = b.take({});
  return s;
}

TEST(Update, TheNextVersionsFeedTheNextStep) {
  const Step s = momentum_step({{"momentum", 0.5}});
  Feeds feeds{{s.lr, tensor_of(DType::kF32, {}, std::vector<float>{0.25F})}};
  for (int step = 0; step < 2; ++step)
    for (auto& [id, tensor] : next_versions(s.graph, all(), interpret(s.graph, all(), feeds))) feeds[id] = tensor;
  EXPECT_EQ(to_doubles(feeds.at(s.m)), (std::vector<double>{0.75, 1.5}));
  EXPECT_EQ(to_doubles(feeds.at(s.w)), (std::vector<double>{1 - 0.25 * 0.5 - 0.25 * 0.75, -2 - 0.25 - 0.25 * 1.5}));
}

TEST(Update, NesterovLooksAhead) {
  const Step s = momentum_step({{"momentum", 0.5}, {"nesterov", std::int64_t{1}}});
  const Values v = interpret(s.graph, all(), {{s.lr, tensor_of(DType::kF32, {}, std::vector<float>{0.25F})}});
  EXPECT_EQ(to_doubles(next_versions(s.graph, all(), v).at(s.w)),
            (std::vector<double>{1 - 0.25 * 0.75, -2 - 0.25 * 1.5}));
}

TEST(Update, EveryUpdateIsOnceAndOverwritesItsState) {
  for (const auto& [name, n] :
       std::vector<std::pair<std::string, std::size_t>>{{"SgdUpdate", 1}, {"MomentumUpdate", 2}, {"AdamUpdate", 3}}) {
    const graph::OpDef& op = all().at(name);
    EXPECT_TRUE(op.once);
    EXPECT_EQ(op.overwrites.size(), n);
    EXPECT_EQ(op.gradient, nullptr);
  }
}

TEST(Update, Refusals) {
  const MakeOp sgd = [](Builder& b, const std::vector<ValueId>& x) { return std::vector{b.add("SgdUpdate", x)}; };
  EXPECT_EQ(refusal({random_tensor({2}, 1), random_tensor({2}, 1), random_tensor({}, 1)}, sgd),
            "node 'sgdupdate' (SgdUpdate): the learning rate is f64[]; f32[] is needed");
  EXPECT_EQ(refusal({random_tensor({2}, 1), random_tensor({3}, 1), random_tensor({}, 1)}, sgd),
            "node 'sgdupdate' (SgdUpdate): input 0 is f64[2] and input 1 is f64[3]; they must be alike");
}

TEST(Reorder, CopiesAndLetsTheGradientThrough) {
  check_op({random_tensor({2, 3}, 1)}, [](Builder& b, const std::vector<ValueId>& x) {
    return std::vector{b.add("Reorder", {b.add("Tanh", {x[0]})})};
  });
}

}  // namespace
}  // namespace neaptide::ops
