// Starting from a given plan, and curves of cost against budget.
#include <gtest/gtest.h>

#include "neaptide/plan/sweep.hpp"

#include "neaptide/base/errors.hpp"
#include "neaptide/base/json.hpp"
#include "neaptide/plan/certify.hpp"
#include "neaptide/plan/forced.hpp"
#include "neaptide/plan/simulate.hpp"
#include "neaptide/plan/verify.hpp"
#include "tests/plan/random_problem.hpp"
#include "tests/plan/tight.hpp"

namespace neaptide::plan {
namespace {

std::vector<RandomProblem> kinds() {
  return {{.n_ops = 9},
          {.n_ops = 12, .implementations = false, .homes = false},
          {.n_ops = 10, .n_devices = 2},
          {.n_ops = 10, .host = true}};
}

TEST(Start, AGivenPlanThatFitsIsNeverMadeWorse) {
  int n = 0;
  for (const RandomProblem& kind : kinds()) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Problem p = random_problem(seed, kind);
      Options o = tight(p, 0.4);
      const Plan given = make_plan(p, "neaptide", o);
      if (given.infeasible) continue;
      ++n;
      o.start = given.steps;
      o.effort = 1;
      o.seed = 77;
      EXPECT_LE(make_plan(p, "neaptide", o).cost.seconds, given.cost.seconds * (1 + 1e-12)) << "seed " << seed;
    }
  }
  EXPECT_GT(n, 40);
}

TEST(Start, AGivenPlanThatIsOverBudgetIsRepaired) {
  int n = 0;
  for (const RandomProblem& kind : kinds()) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Problem p = random_problem(seed, kind);
      Options o = tight(p, 0.5);
      o.start = keep_all_steps(p);
      const Plan warm = make_plan(p, "neaptide", o);
      o.start.clear();
      if (make_plan(p, "neaptide", o).infeasible) continue;
      ++n;
      EXPECT_FALSE(warm.infeasible) << "seed " << seed;
    }
  }
  EXPECT_GT(n, 40);
}

TEST(Start, WhatIsNoPlanIsRefused) {
  const Problem p = random_problem(3, {});
  Options o = tight(p, 1);
  const std::vector<Step> whole = keep_all_steps(p);
  o.start = {whole.begin(), whole.begin() + 1};
  EXPECT_THROW(make_plan(p, "neaptide", o), UserError);
  o.start = {Compute{OpId(1000), 0}};
  EXPECT_THROW(make_plan(p, "neaptide", o), UserError);
  o.start = {Compute{p.order[0], 99}};
  EXPECT_THROW(make_plan(p, "neaptide", o), UserError);
  o.start = {Copy{BufferId(0), DeviceId(0), DeviceId(5)}};
  EXPECT_THROW(make_plan(p, "neaptide", o), UserError);
}

SweepOptions quick(int points) {
  SweepOptions o;
  o.points = points;
  o.plan.effort = 20'000;
  return o;
}

/// f0 .. f(n-1) of ten bytes and a second each, and back through all of them; the last result is kept.
Problem there_and_back(int n) {
  Problem p;
  p.name = "there and back";
  p.devices.push_back({"d", std::nullopt, 1});
  const auto op = [&](const std::string& name, std::vector<int> reads, bool once) {
    const BufferId out = p.buffers.push_back({"v" + name, 10, std::nullopt, once, false});
    Impl i;
    i.name = "plain";
    i.device = DeviceId(0);
    i.seconds = 1;
    for (const int r : reads) i.reads.emplace_back(r);
    i.writes = {out};
    p.order.push_back(p.ops.push_back({name, once, {i}}));
    return out.value;
  };
  std::vector<int> forward;
  for (int i = 0; i < n; ++i) {
    forward.push_back(op("f" + std::to_string(i), i == 0 ? std::vector<int>{} : std::vector<int>{i - 1}, false));
  }
  int gradient = forward.back();
  for (int i = n - 1; i-- > 0;) gradient = op("b" + std::to_string(i), {gradient, forward[i]}, i == 0);
  return p;
}

TEST(Sweep, IsMonotoneAndBracketsTheOptimum) {
  int n_points = 0;
  for (const RandomProblem& kind : kinds()) {
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      const Problem p = random_problem(seed, kind);
      const Sweep s = sweep(p, quick(5));
      Seconds cost = 1e300, bound = 1e300;
      for (const Bytes budget : s.budgets) {
        Problem bounded = p;
        bounded.devices[s.device_id].budget = budget;
        if (const LowerBound* b = bound_at(s, budget)) {
          EXPECT_LE(b->seconds, bound);
          bound = b->seconds;
          const Certified c = certify(bounded, *b);
          EXPECT_TRUE(c.ok) << c.reason << " seed " << seed;
        }
        const Plan* best = best_within(s.curves[0], budget, s.device_id);
        if (best == nullptr) continue;
        ++n_points;
        EXPECT_LE(best->cost.seconds, cost);
        EXPECT_GE(best->cost.seconds * (1 + 1e-12), bound_at(s, budget) ? bound : 0) << "seed " << seed;
        cost = best->cost.seconds;
        Plan moved = *best;
        moved.budgets[s.device_id] = budget;
        moved.cost.overlapped = -1;  // may change with the budget
        EXPECT_TRUE(verify(p, moved).ok()) << "seed " << seed;
      }
      EXPECT_LE(s.proved, s.smallest);
    }
  }
  EXPECT_GT(n_points, 60);
}

// The oracle at every budget: ours is never below it, and the no-extra-time budget lies where it says.
TEST(Sweep, AgreesWithTheOracleOnAChain) {
  const Problem p = there_and_back(5);
  const Sweep s = sweep(p, quick(10));
  EXPECT_EQ(s.keep_all, 60);
  EXPECT_EQ(s.smallest, 30);
  EXPECT_EQ(s.proved, 30);
  EXPECT_EQ(s.free.cost, 9);
  EXPECT_TRUE(s.free.proved_cheapest);
  EXPECT_EQ(s.free.found, 60);
  EXPECT_EQ(s.free.proved, 60);
  for (Bytes budget = 30; budget <= 60; ++budget) {
    Options o;
    o.budgets["d"] = budget;
    const Seconds optimum = make_plan(p, "exhaustive", o).cost.seconds;
    const Plan* best = best_within(s.curves[0], budget, s.device_id);
    ASSERT_NE(best, nullptr) << budget;
    ASSERT_NE(bound_at(s, budget), nullptr) << budget;
    EXPECT_LE(bound_at(s, budget)->seconds, optimum) << budget;
    EXPECT_GE(best->cost.seconds, optimum) << budget;
    if (std::find(s.budgets.begin(), s.budgets.end(), budget) != s.budgets.end()) {
      EXPECT_EQ(best->cost.seconds, optimum) << budget;
    }
  }
}

TEST(Sweep, TheNoExtraTimeBudgetIsBracketed) {
  int n_exact = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const Problem p = random_problem(seed, {.n_ops = 5});
    const FreeBudget f = smallest_free_budget(p, quick(4));
    ASSERT_TRUE(f.plan.has_value());
    EXPECT_LE(f.proved, f.found);
    if (f.proved == f.found) ++n_exact;
    Options o;
    for (const Bytes budget : {f.proved - 1, f.found}) {
      if (budget < 0) continue;
      o.budgets["d0"] = budget;
      const Plan best = make_plan(p, "exhaustive", o);
      const bool free = !best.infeasible && best.cost.seconds <= f.cost * (1 + 1e-12);
      EXPECT_EQ(free, budget == f.found) << "seed " << seed << " at " << budget;
    }
  }
  EXPECT_GT(n_exact, 4);
}

TEST(Sweep, AWarmStartIsNoWorseThanAColdOne) {
  Seconds warm = 0, cold = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const Problem p = random_problem(seed, {.n_ops = 40, .implementations = false, .homes = false});
    SweepOptions o = quick(6);
    o.free_budget = false;
    o.from = smallest_peak(p, DeviceId(0)).bytes;
    const Sweep a = sweep(p, o);
    o.warm = false;
    const Sweep b = sweep(p, o);
    ASSERT_EQ(a.budgets, b.budgets);
    for (const Bytes budget : a.budgets) {
      const Plan *pa = best_within(a.curves[0], budget, a.device_id),
                 *pb = best_within(b.curves[0], budget, b.device_id);
      ASSERT_FALSE(pa == nullptr && pb != nullptr) << "seed " << seed << " at " << budget;
      if (pb == nullptr) continue;
      warm += pa->cost.seconds;
      cold += pb->cost.seconds;
    }
  }
  EXPECT_GT(cold, 0);
  EXPECT_LE(warm, cold * 1.005);  // two searches, so luck has a little room
}

TEST(Sweep, FollowsTheObjective) {
  for (const Objective objective : {Objective::kOverlap, Objective::kEnergy}) {
    int n = 0;
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      const Problem p =
          random_problem(seed, {.n_ops = 9, .n_devices = objective == Objective::kOverlap ? 2 : 1, .energy = true});
      SweepOptions o = quick(4);
      o.plan.objective = objective;
      const Sweep s = sweep(p, o);
      double cost = 1e300;
      for (const Bytes budget : s.budgets) {
        const Plan* best = best_within(s.curves[0], budget, s.device_id);
        if (best == nullptr) continue;
        ++n;
        EXPECT_EQ(cost_of(s, *best), cost_by(best->cost, objective));
        EXPECT_LE(cost_of(s, *best), cost);
        cost = cost_of(s, *best);
        const LowerBound* bound = bound_at(s, budget);
        EXPECT_LE(bound == nullptr ? 0 : bound->seconds, cost * (1 + 1e-12)) << "seed " << seed;
      }
      EXPECT_EQ(parse_json(to_json(s), "curve").at("objective"), to_string(objective));
    }
    EXPECT_GT(n, 8);
  }
}

TEST(Sweep, EveryPlannerHasItsCurve) {
  SweepOptions o = quick(4);
  o.planners = {"last", "neaptide", "keep-all"};
  const Sweep s = sweep(there_and_back(5), o);
  ASSERT_EQ(s.curves.size(), 3U);
  EXPECT_EQ(s.curves[0].planner, "last");
  EXPECT_EQ(s.curves[2].plans.size(), 1U);
  EXPECT_EQ(best_within(s.curves[2], 59, s.device_id), nullptr);
  EXPECT_EQ(s.smallest, 30);  // neaptide answers for the problem, wherever it stands
}

TEST(Sweep, EdgesOfTheFormat) {
  Problem one;
  one.name = "one";
  one.devices.push_back({"d", std::nullopt, 1});
  one.buffers.push_back({"a", Bytes{1} << 50, std::nullopt, true, false});
  Impl i;
  i.name = "i";
  i.device = DeviceId(0);
  i.writes = {BufferId(0)};
  one.order.push_back(one.ops.push_back({"op", true, {i}}));
  const Sweep s = sweep(one, quick(20));  // one op, no seconds at all
  EXPECT_EQ(s.budgets, std::vector<Bytes>{Bytes{1} << 50});
  EXPECT_EQ(overhead(s, 0), 0);
  EXPECT_EQ(s.smallest, Bytes{1} << 50);
  EXPECT_EQ(s.free.found, Bytes{1} << 50);
  EXPECT_EQ(s.free.proved, Bytes{1} << 50);

  SweepOptions below = quick(5);
  below.from = 0;
  below.to = Bytes{1} << 60;
  const Sweep wide = sweep(one, below);
  EXPECT_EQ(wide.budgets.front(), 0);
  EXPECT_EQ(wide.budgets.back(), Bytes{1} << 60);
  EXPECT_EQ(best_within(wide.curves[0], 0, wide.device_id), nullptr);
  EXPECT_EQ(wide.proved, Bytes{1} << 50);

  below.from = 100;
  below.to = 99;
  EXPECT_THROW(sweep(one, below), UserError);
  below = quick(1);
  EXPECT_EQ(sweep(there_and_back(4), below).budgets.size(), 1U);
}

TEST(Sweep, JsonAndCsvKeepTheirShape) {
  SweepOptions o = quick(2);
  o.from = 20;
  o.to = 50;
  const Sweep s = sweep(there_and_back(4), o);
  EXPECT_EQ(to_csv(s),
            "planner,budget_bytes,budget_percent,cost,overhead_percent,bound,gap_points,peak_bytes,recomputed\n"
            "neaptide,20,40.0000,,,,,,\n"
            "neaptide,50,100.0000,7,0.000000,7,0.000000,50,0\n");
  const Json root = parse_json(to_json(s), "curve");
  EXPECT_EQ(root.at("format"), "neaptide.curve");
  EXPECT_EQ(root.at("no_extra_time").at("bytes"), 50);
  const Json& points = root.at("curves").at(0).at("points");
  ASSERT_EQ(points.size(), 2U);
  EXPECT_FALSE(points[0].at("feasible").get<bool>());
  EXPECT_TRUE(points[0].at("impossible").get<bool>());
  EXPECT_TRUE(points[0].at("cost").is_null());
  EXPECT_EQ(points[1].at("cost"), 7);
  EXPECT_EQ(points[1].at("peak"), 50);
}

}  // namespace
}  // namespace neaptide::plan
