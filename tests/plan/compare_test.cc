// Two plans side by side.
#include "neaptide/plan/compare.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/json.hpp"
#include "neaptide/plan/planner.hpp"
#include "neaptide/plan/simulate.hpp"
#include "tests/plan/random_problem.hpp"

namespace neaptide::plan {
namespace {

using testing::ElementsAre;

Plan of_steps(const Problem& p, std::vector<Step> steps) {
  Plan plan;
  plan.steps = std::move(steps);
  const Simulation sim = simulate(p, plan.steps);
  plan.cost = sim.cost;
  plan.peak = sim.peak;
  for (const Device& d : p.devices) plan.budgets.push_back(d.budget);
  return plan;
}

/// a (fast or slow) -> b; c and d use b; d is kept.
Problem small() {
  Problem p;
  p.name = "small";
  p.devices.push_back({"d", std::nullopt, 1});
  p.devices.push_back({"host", std::nullopt, 1});
  p.links.push_back({DeviceId(0), DeviceId(1), 1, 10});
  p.links.push_back({DeviceId(1), DeviceId(0), 1, 10});
  for (const char* name : {"a", "b", "c", "e"}) p.buffers.push_back({name, 10, std::nullopt, false, false});
  p.buffers[BufferId(3)].keep = true;
  const auto impl = [](const char* name, Seconds seconds, std::vector<int> reads, int write) {
    Impl i;
    i.name = name;
    i.device = DeviceId(0);
    i.seconds = seconds;
    for (const int r : reads) i.reads.emplace_back(r);
    i.writes = {BufferId(write)};
    return i;
  };
  const auto op = [&](const char* name, std::vector<Impl> impls, bool once = false) {
    p.order.push_back(p.ops.push_back({name, once, std::move(impls)}));
  };
  op("A", {impl("slow", 3, {}, 0), impl("fast", 2, {}, 0)});
  op("B", {impl("plain", 1, {0}, 1)});
  op("C", {impl("plain", 1, {0}, 2)});
  op("E", {impl("plain", 1, {0, 1, 2}, 3)}, true);
  return p;
}

constexpr Compute kA{OpId(0), 0}, kFastA{OpId(0), 1}, kB{OpId(1), 0}, kC{OpId(2), 0}, kE{OpId(3), 0};

TEST(Compare, APlanWithItselfDiffersInNothing) {
  int n = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Problem p = random_problem(seed, {.n_devices = seed % 2 == 0 ? 1 : 2});
    Options o;
    o.effort = 5'000;
    const Plan plan = make_plan(p, "neaptide", o);
    if (plan.steps.empty()) continue;
    ++n;
    const Comparison c = compare(p, plan, plan);
    EXPECT_TRUE(c.same());
    EXPECT_TRUE(c.a_keeps.empty() && c.b_keeps.empty());
    EXPECT_EQ(c.a.seconds, plan.cost.seconds);
    EXPECT_EQ(c.a.peak, plan.peak);
  }
  EXPECT_GT(n, 10);
}

TEST(Compare, NamesEveryDifference) {
  const Problem p = small();
  const Plan keeps = of_steps(p, {kA, kB, kC, kE});
  const Plan again = of_steps(p, {kFastA, kC, Free{BufferId(0), DeviceId(0)}, kFastA, kB, kE});
  const Comparison c = compare(p, keeps, again);
  EXPECT_FALSE(c.same());
  EXPECT_EQ(c.a.seconds, 6);
  EXPECT_EQ(c.b.seconds, 7);
  EXPECT_EQ(c.a.again, 0);
  EXPECT_EQ(c.b.again, 1);
  EXPECT_EQ(c.b.again_seconds, 2);
  ASSERT_EQ(c.ops.size(), 1U);
  EXPECT_EQ(c.ops[0], (OpDifference{OpId(0), {0}, {1, 1}, 3, 4}));
  EXPECT_THAT(c.a_keeps, ElementsAre(BufferId(0)));
  EXPECT_THAT(c.b_keeps, ElementsAre());
  ASSERT_EQ(c.moved.size(), 1U);  // B and C change places: one of them moves
  EXPECT_TRUE(c.moved[0] == OpId(1) || c.moved[0] == OpId(2));
  const Comparison back = compare(p, again, keeps);
  EXPECT_EQ(back.a, c.b);
  EXPECT_THAT(back.b_keeps, ElementsAre(BufferId(0)));
}

TEST(Compare, CountsCopies) {
  const Problem p = small();
  const DeviceId d(0), host(1);
  const BufferId b(1);
  const Plan stays = of_steps(p, {kA, kB, kC, kE});
  const Plan paged = of_steps(p, {kA, kB, Copy{b, d, host}, Free{b, d}, kC, Copy{b, host, d}, Free{b, host}, kE});
  const Comparison c = compare(p, stays, paged);
  EXPECT_EQ(c.b.copies, 2);
  EXPECT_EQ(c.b.copied, 20);
  EXPECT_EQ(c.b.copy_seconds, 4);
  ASSERT_EQ(c.copies.size(), 1U);
  EXPECT_EQ(c.copies[0], (CopyDifference{b, 0, 2}));
  const Json root = parse_json(to_json(p, c), "comparison");
  EXPECT_EQ(root.at("format"), "neaptide.comparison");
  EXPECT_EQ(root.at("b").at("copied_bytes"), 20);
  EXPECT_EQ(root.at("copies").at(0).at("buffer"), "b");
  EXPECT_FALSE(root.at("same").get<bool>());
}

TEST(Compare, SaysWhichPlanIsNone) {
  const Problem p = small();
  const Plan good = of_steps(p, {kA, kB, kC, kE});
  Plan bad = good;
  bad.steps.pop_back();
  const auto message = [&](const Plan& a, const Plan& b) {
    try {
      compare(p, a, b);
    } catch (const UserError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_THAT(message(bad, good), testing::StartsWith("the first plan breaks rule"));
  EXPECT_THAT(message(good, bad), testing::StartsWith("the second plan breaks rule"));
  EXPECT_EQ(message(good, Plan{}), "the second plan has no steps: there is nothing to compare");
}

}  // namespace
}  // namespace neaptide::plan
