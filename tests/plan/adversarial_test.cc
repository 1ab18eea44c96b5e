// Problems that are hard on purpose. Nothing here asserts a time, but what is quadratic in 20,000 ops, or recurses
// along a chain of them, does not end in the time that the tests are given.
#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>

#include "neaptide/memory/memory.hpp"
#include "neaptide/plan/bounds.hpp"
#include "neaptide/plan/certify.hpp"
#include "neaptide/plan/forced.hpp"
#include "neaptide/plan/planner.hpp"
#include "neaptide/plan/simulate.hpp"
#include "neaptide/plan/verify.hpp"
#include "tests/plan/adversarial_problems.hpp"

namespace neaptide::plan {
namespace {

constexpr Bytes kLargest = 1'000'000'000'000'000;  // 10^15, of a size and of seconds

Shape ties() { return {}; }
Shape zero_costs() {
  return {.bytes = [](int i) { return Bytes{1 + i % 7}; }, .seconds = [](int) { return Seconds{0}; }};
}
Shape zero_sizes() {
  return {.bytes = [](int) { return Bytes{0}; }, .seconds = [](int i) { return Seconds(1 + i % 5); }};
}
/// From nothing to the largest, side by side: sums of thousands of them are near the end of 63 bits.
Shape extremes() {
  return {.bytes = [](int i) { return i % 4 == 0   ? Bytes{0}
                                      : i % 4 == 1 ? Bytes{1}
                                                   : kLargest - i % 1000; },
          .seconds = [](int i) { return i % 3 == 0   ? 0.0
                                        : i % 3 == 1 ? 1e-9
                                                     : static_cast<double>(kLargest); }};
}

Bytes keep_all_peak(const Problem& p) { return simulate(p, keep_all_steps(p)).peak[DeviceId(0)]; }

Options budget_of(const Problem& p, double part) {
  Options o;
  o.budgets["d"] = static_cast<Bytes>(part * static_cast<double>(keep_all_peak(p)));
  return o;
}

/// Everything that reads a plan: it is legal, its bound holds, it packs, and its text reads back.
void expect_sound(const Problem& p, const Options& o, const Plan& plan) {
  if (plan.infeasible) {
    EXPECT_TRUE(plan.steps.empty());
    EXPECT_LE(plan.infeasible->proved, plan.infeasible->smallest);
    EXPECT_FALSE(plan.infeasible->advice.empty());
    return;
  }
  const Problem bounded = with_options(p, o);
  EXPECT_TRUE(verify(p, plan).ok());
  EXPECT_LE(plan.peak[DeviceId(0)], o.budgets.at("d"));
  ASSERT_TRUE(plan.lower_bound.has_value());
  const Certified c = certify(bounded, *plan.lower_bound);
  EXPECT_TRUE(c.ok) << c.reason;
  memory::PackOptions pack;
  pack.effort = 200'000;
  const Layout layout = memory::pack(bounded, plan, pack);
  EXPECT_GE(layout.top[DeviceId(0)], layout.load[DeviceId(0)]);
  EXPECT_EQ(layout.load[DeviceId(0)], plan.peak[DeviceId(0)]);
  Plan again = plan_from_json(p, to_json(p, plan), "again");
  EXPECT_EQ(again.steps, plan.steps);
}

const std::vector<const char*> kCheap = {"chen-greedy", "chen-sqrt", "dtr", "griewank", "keep-all", "last"};

void try_all(const Problem& p, std::initializer_list<const char*> more, std::initializer_list<double> parts) {
  ASSERT_EQ(check(p), std::vector<std::string>{});
  EXPECT_EQ(problem_from_json(to_json(p), "again"), p);
  std::vector<const char*> all = kCheap;
  all.insert(all.end(), more);
  for (const double part : parts) {
    const Options o = budget_of(p, part);
    for (const char* planner : all) {
      SCOPED_TRACE(fmt::format("{} of '{}' at {}", planner, p.name, part));
      expect_sound(p, o, make_plan(p, planner, o));
    }
  }
}

class Shapes : public ::testing::TestWithParam<std::pair<const char*, Shape (*)()>> {};

TEST_P(Shapes, EveryPlannerCopes) {
  const Shape shape = GetParam().second();
  for (const Problem& p :
       {training_chain(40, shape), grid(8, 8, shape), fan(60, shape), fan_and_sum(40, shape), once_only(40, shape)}) {
    try_all(p, {"neaptide", "rotor"}, {1.0, 0.9, 0.5, 0.3});
  }
}

TEST_P(Shapes, BoundsOfEveryInstantAreCertified) {
  const Shape shape = GetParam().second();
  for (Problem p : {training_chain(12, shape), grid(4, 4, shape), fan_and_sum(12, shape)}) {
    p.devices[DeviceId(0)].budget = keep_all_peak(p) / 2;
    for (const BoundScope scope : {BoundScope::kAnyOrder, BoundScope::kThisOrder}) {
      CutBounds cuts(p, DeviceId(0), scope);
      for (const OpId op : cuts.promising()) {
        cuts.evaluate(op);
        const Certified c = certify(p, cuts.proved());
        EXPECT_TRUE(c.ok) << c.reason << " at " << p.ops[op].name << " of " << p.name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Shapes,
                         ::testing::Values(std::pair("ties", &ties), std::pair("zero_costs", &zero_costs),
                                           std::pair("zero_sizes", &zero_sizes), std::pair("extremes", &extremes)),
                         [](const auto& shape) { return std::string(shape.param.first); });

// 3,992 values of up to 10^15 bytes add up to almost 2^62.
TEST(Extremes, SumsNearTheEndOfSixtyThreeBits) {
  const Problem p = fan(3990, {.bytes = [](int) { return kLargest; }, .seconds = [](int) { return 1e15; }});
  ASSERT_EQ(check(p), std::vector<std::string>{});
  EXPECT_EQ(keep_all_peak(p), 3991 * kLargest);
  Options o;
  o.budgets["d"] = std::numeric_limits<Bytes>::max();
  for (const char* planner : {"keep-all", "chen-greedy", "dtr", "neaptide"})
    expect_sound(p, o, make_plan(p, planner, o));
  o.budgets["d"] = 3990 * kLargest;
  const Plan plan = make_plan(p, "neaptide", o);
  ASSERT_TRUE(plan.infeasible.has_value());
  EXPECT_EQ(plan.infeasible->proved, 3991 * kLargest);
  EXPECT_EQ(plan.infeasible->smallest, 3991 * kLargest);
}

TEST(Extremes, MoreThanSixtyThreeBitsIsRefused) {
  const Problem p = fan(5000, {.bytes = [](int) { return kLargest; }});
  EXPECT_EQ(check(p), std::vector<std::string>{"the sizes add up to more than 63 bits hold"});
}

TEST(Wide, OneValueReadByAThousandAndOneOpThatReadsAThousand) {
  try_all(fan(1000), {"neaptide"}, {1.0, 0.9});
  try_all(fan_and_sum(500), {"neaptide"}, {0.5});
  try_all(once_only(500), {"neaptide"}, {0.5});
}

/// Minutes; part of the long tests only.
class Long : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("NEAPTIDE_LONG") == nullptr) GTEST_SKIP() << "one of the long tests: set NEAPTIDE_LONG";
  }
};

TEST_F(Long, OneValueReadByThousandsAndOneOpThatReadsThousands) { try_all(fan(5000), {"neaptide"}, {1.0, 0.9}); }

TEST_F(Long, FanAndSumOfTenThousandOps) { try_all(fan_and_sum(5000), {"neaptide"}, {0.9, 0.5, 0.3}); }

TEST_F(Long, OnceOnlyOfTenThousandOps) { try_all(once_only(5000), {"neaptide"}, {0.9, 0.5, 0.3}); }

TEST_F(Long, ChainOfTwentyThousandOps) { try_all(training_chain(10'000), {"neaptide"}, {0.9, 0.5, 0.3}); }

TEST_F(Long, GridOfTwentyThousandOps) { try_all(grid(141, 141), {"neaptide"}, {0.9, 0.5, 0.3}); }

}  // namespace
}  // namespace neaptide::plan
