// The networks of the largest-batch benchmark against the published figures.
#include "bench/planner/keras_networks.hpp"

#include <gtest/gtest.h>

#include "neaptide/plan/forced.hpp"
#include "neaptide/plan/simulate.hpp"

namespace neaptide::bench {
namespace {

struct Published {
  Network network;
  std::size_t ops, edges;
  Bytes fixed;
  double forward, total, cap;  // thousand million multiply-adds, four digits
  std::int64_t keep_all;       // largest batch
  double ceiling;              // memory over the largest working set of one image
};

std::vector<Published> published() {
  return {{vgg16(), 45, 87, 1106860352, 15.470, 46.411, 61.881, 194, 289.86},
          {vgg19(), 51, 99, 1149337920, 19.632, 58.896, 78.528, 181, 289.03},
          {mobilenet(), 185, 367, 34030912, 0.5940, 1.7819, 2.3758, 216, 1231.9},
          {resnet50(), 353, 751, 205093696, 3.9204, 11.761, 15.682, 100, 1093}};
}

TEST(KerasNetworks, HaveThePublishedSizesAndCosts) {
  for (const Published& want : published()) {
    SCOPED_TRACE(want.network.name);
    const plan::Problem p = training_problem(want.network, 1);
    EXPECT_EQ(plan::check(p), std::vector<std::string>{});
    EXPECT_EQ(p.ops.size(), want.ops);
    std::size_t edges = 0;
    for (std::size_t o = 0; o < p.ops.size(); ++o) edges += p.ops[plan::OpId(o)].impls[0].reads.size();
    EXPECT_EQ(edges, want.edges);
    EXPECT_EQ(want.network.fixed_bytes(), want.fixed);
    EXPECT_NEAR(static_cast<double>(want.network.forward()) / 1e9, want.forward, 1e-4 * want.forward);
    EXPECT_NEAR(static_cast<double>(want.network.total()) / 1e9, want.total, 1e-4 * want.total);
    EXPECT_NEAR(static_cast<double>(cost_cap(want.network)) / 1e9, want.cap, 1e-4 * want.cap);
    EXPECT_DOUBLE_EQ(simulate(p, keep_all_steps(p)).cost.seconds, static_cast<double>(want.network.total()));
  }
}

TEST(KerasNetworks, GrowWithTheBatchAsPublished) {
  for (const Published& want : published()) {
    SCOPED_TRACE(want.network.name);
    const plan::DeviceId gpu(0);
    const auto keeps_all = [&](std::int64_t batch) {
      const plan::Problem p = held_problem(want.network, batch);
      return simulate(p, keep_all_steps(p)).peak[gpu] <= *p.devices[gpu].budget;
    };
    EXPECT_TRUE(keeps_all(want.keep_all));
    EXPECT_FALSE(keeps_all(want.keep_all + 1));
    const plan::Problem one = training_problem(want.network, 1);
    const double ceiling =
        static_cast<double>(*one.devices[gpu].budget) / static_cast<double>(plan::smallest_peak(one, gpu).bytes);
    EXPECT_NEAR(ceiling, want.ceiling, 0.06);
    plan::Problem seven = training_problem(want.network, 7);
    for (std::size_t b = 0; b < one.buffers.size(); ++b)
      EXPECT_EQ(seven.buffers[plan::BufferId(b)].bytes, 7 * one.buffers[plan::BufferId(b)].bytes);
  }
}

}  // namespace
}  // namespace neaptide::bench
