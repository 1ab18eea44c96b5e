// Starting from a given plan, and curves of cost against budget.
#include <gtest/gtest.h>

#include "neaptide/base/errors.hpp"
#include "neaptide/plan/forced.hpp"
#include "neaptide/plan/planner.hpp"
#include "neaptide/plan/simulate.hpp"
#include "tests/plan/random_problem.hpp"

namespace neaptide::plan {
namespace {

std::vector<RandomProblem> kinds() {
  return {{.n_ops = 9},
          {.n_ops = 12, .implementations = false, .homes = false},
          {.n_ops = 10, .n_devices = 2},
          {.n_ops = 10, .host = true}};
}

Options tight(const Problem& p, double part) {
  const Bytes low = smallest_peak(p, DeviceId(0)).bytes;
  const Bytes high = simulate(p, keep_all_steps(p)).peak[DeviceId(0)];
  Options o;
  o.budgets["d0"] = low + static_cast<Bytes>(part * static_cast<double>(std::max<Bytes>(0, high - low)));
  o.effort = 20'000;
  return o;
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

}  // namespace
}  // namespace neaptide::plan
