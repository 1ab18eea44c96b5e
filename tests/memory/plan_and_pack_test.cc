#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "neaptide/memory/memory.hpp"
#include "neaptide/plan/certify.hpp"
#include "neaptide/plan/planner.hpp"
#include "neaptide/plan/verify.hpp"
#include "tests/plan/random_problem.hpp"
#include "tests/plan/tight.hpp"

namespace neaptide::memory {
namespace {

using plan::DeviceId;
using testing::HasSubstr;
using testing::IsEmpty;

/// a (100 bytes) becomes b (10 bytes) in place, then c (90 bytes) is made from b: 110 bytes are held by the rules, but
/// the block of a lives on as that of b, so that the layout needs 190.
plan::Problem shrinking_in_place(Bytes budget) {
  const std::string text = R"({"format": "neaptide.problem", "version": 1, "name": "shrink",
    "devices": [{"name": "cpu:0", "budget": )" +
                           std::to_string(budget) + R"(}],
    "buffers": [{"name": "a", "bytes": 100}, {"name": "b", "bytes": 10}, {"name": "c", "bytes": 90, "keep": true}],
    "ops": [
      {"name": "make", "once": true, "impls": [{"name": "x", "device": "cpu:0", "seconds": 1, "reads": [], "writes": ["a"]}]},
      {"name": "shrink", "once": true, "impls": [
        {"name": "x", "device": "cpu:0", "seconds": 1, "reads": ["a"], "writes": ["b"], "in_place": [["a", "b"]]}]},
      {"name": "use", "once": true, "impls": [{"name": "x", "device": "cpu:0", "seconds": 1, "reads": ["b"], "writes": ["c"]}]}
    ]})";
  return plan::problem_from_json(text, "shrink");
}

TEST(PlanAndPack, GivesAVerifiedLayoutWithinTheBudget) {
  const plan::Problem p = shrinking_in_place(190);
  const plan::Plan plan = plan_and_pack(p, "keep-all", {});
  ASSERT_TRUE(plan.layout);
  EXPECT_EQ(plan.layout->top[DeviceId(0)], 190);
  EXPECT_EQ(plan.peak[DeviceId(0)], 100);
  EXPECT_THAT(verify(p, plan, *plan.layout), IsEmpty());
  EXPECT_TRUE(plan::verify(p, plan).ok());
}

TEST(PlanAndPack, SaysWhatWouldBeEnoughWhenNoLayoutFits) {
  const plan::Problem p = shrinking_in_place(189);
  const plan::Plan plan = plan_and_pack(p, "keep-all", {});
  EXPECT_EQ(plan.status, plan::Status::kInfeasible);
  EXPECT_TRUE(plan.steps.empty());
  EXPECT_FALSE(plan.layout);
  ASSERT_TRUE(plan.infeasible);
  EXPECT_EQ(plan.infeasible->smallest, 190);
  EXPECT_EQ(plan.infeasible->step, "use");
  EXPECT_THAT(plan.infeasible->advice, HasSubstr("190 bytes are enough"));
  EXPECT_TRUE(plan::verify(p, plan).ok());
}

TEST(PlanAndPack, PassesOnThatNothingFits) {
  const plan::Plan plan = plan_and_pack(shrinking_in_place(50), "keep-all", {});
  EXPECT_EQ(plan.status, plan::Status::kInfeasible);
  EXPECT_FALSE(plan.layout);
}

TEST(PlanAndPack, KeepsTheBudgetsOfTheOptions) {
  const plan::Problem p = shrinking_in_place(50);
  plan::Options options;
  options.budgets["cpu:0"] = 1000;
  const plan::Plan plan = plan_and_pack(p, "keep-all", options);
  ASSERT_TRUE(plan.layout);
  EXPECT_EQ(plan.budgets[DeviceId(0)], 1000);
}

// The first attempt leaves time for others; where its plan packs, that time goes to a better plan.
TEST(PlanAndPack, UsesWhatIsLeftOfATimeLimit) {
  const plan::Problem p = plan::random_problem(0, {.n_ops = 80, .once = false, .ways = false, .chain = true});
  plan::Options options = plan::tight(p, 0.3);
  options.effort = 0;
  options.time_limit = 3;
  options.switches["bound"] = "off";  // so that nothing is proved before the time ends
  int n_attempts = 0;
  std::int64_t last = std::numeric_limits<std::int64_t>::max();
  options.progress = [&](const plan::Progress& now) {  // every attempt counts from the beginning
    n_attempts += now.ticks < last ? 1 : 0;
    last = now.ticks;
    return true;
  };
  const plan::Plan plan = plan_and_pack(p, "neaptide", options);
  ASSERT_TRUE(plan.layout);
  EXPECT_TRUE(plan.stopped_by == "time" || plan.stopped_by == "effort") << plan.stopped_by;
  EXPECT_GT(n_attempts, 1);
  const plan::Problem bounded = plan::with_options(p, options);
  EXPECT_THAT(verify(bounded, plan, *plan.layout), IsEmpty());
  EXPECT_TRUE(plan::verify(bounded, plan).ok());
  EXPECT_TRUE(plan::certify(bounded, *plan.lower_bound).ok);
  EXPECT_EQ(plan.gap, plan::gap_of(bounded, plan));
}

}  // namespace
}  // namespace neaptide::memory
