// The integer programmes: what a plan says in their variables, and their names.
#include "neaptide/plan/staged.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "neaptide/base/errors.hpp"
#include "neaptide/milp/mps.hpp"
#include "neaptide/milp/solve.hpp"
#include "neaptide/plan/forward.hpp"
#include "neaptide/plan/simulate.hpp"
#include "tests/plan/random_problem.hpp"
#include "tests/plan/tight.hpp"
#include "tests/plan/try_plan.hpp"

namespace neaptide::plan {
namespace {

struct Case {
  const char* name;
  StagedRules rules;
  int n_devices = 1;
};

std::vector<Case> cases() {
  return {{"checkmate", {}},
          {"monet", {.implementations = true, .backward_once = true}},
          {"xengine", {.implementations = true, .copies_for_use = true}, 2},
          {"poet", {.paging = true}, 2}};
}

/// A problem with a budget that something can be kept within.
Problem problem_of(const Case& c, std::uint64_t seed) {
  RandomProblem shape;
  shape.n_ops = 6 + static_cast<int>(seed % 5);
  shape.n_devices = c.rules.copies_for_use ? 2 : 1;
  shape.host = c.rules.paging;
  shape.ways = false;
  shape.chain = seed % 4 == 0;
  Problem p = random_problem(seed, shape);
  const auto peak = simulate(p, keep_all_steps(p)).peak;
  for (std::size_t d = 0; d < p.devices.size(); ++d)
    p.devices[DeviceId(d)].budget = peak[DeviceId(d)] * (80 + static_cast<Bytes>(seed % 3) * 10) / 100;
  return p;
}

std::optional<Staged> staged_of(const Problem& p, const StagedRules& rules) {
  try {
    return std::optional<Staged>(std::in_place, p, rules, rules.backward_once ? forward_of(p).turn : 0);
  } catch (const UserError&) {
    return std::nullopt;  // an op has no implementation that these rules allow
  }
}

// A simple plan, said in variables, satisfies the model, costs what it costs, and can be read back as a plan.
TEST(Staged, SaysTheSimplePlansInItsVariables) {
  for (const Case& c : cases()) {
    int n_said = 0, n_plans = 0;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      SCOPED_TRACE(fmt::format("{} seed {}", c.name, seed));
      const Problem p = problem_of(c, seed);
      const std::optional<Staged> staged = staged_of(p, c.rules);
      if (!staged) continue;
      for (const std::vector<Step>& steps : simple_plans(p, c.rules)) {
        ++n_plans;
        const std::optional<std::vector<double>> values = staged->values(steps);
        if (!values) continue;
        ++n_said;
        EXPECT_LE(milp::violation(staged->model(), *values), 1e-6);
        const Simulation sim = simulate(p, staged->steps(*values));
        EXPECT_NEAR(sim.cost.seconds, milp::objective(staged->model(), *values), 1e-9);
        EXPECT_LE(sim.cost.seconds, simulate(p, steps).cost.seconds + (c.rules.copies_for_use ? 1e9 : 1e-9));
      }
    }
    EXPECT_GT(n_plans, 50) << c.name;
    EXPECT_GT(n_said, n_plans / 3) << c.name;
  }
}

// What a plan cannot say: a run out of the stages' order, or too much memory.
TEST(Staged, RefusesWhatHasNoPlaceInItsStages) {
  Problem p = random_problem(3, {.n_ops = 8, .implementations = false, .ways = false, .optional_outputs = false});
  const std::vector<Step> all = keep_all_steps(p);
  ASSERT_TRUE(Staged(p, {}, 0).values(all).has_value());
  std::vector<Step> backwards(all.rbegin(), all.rend());
  EXPECT_FALSE(Staged(p, {}, 0).values(backwards).has_value());
  EXPECT_FALSE(Staged(p, {}, 0).values({all.begin(), all.begin() + 1}).has_value());
  p.devices[DeviceId(0)].budget = simulate(p, all).peak[DeviceId(0)] - 1;
  EXPECT_FALSE(Staged(p, {}, 0).values(all).has_value());
}

TEST(Staged, TheSolverTakesTheStart) {
  if (!milp::why_not_built().empty()) GTEST_SKIP() << milp::why_not_built();
  int n_started = 0;
  for (const Case& c : cases()) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(fmt::format("{} seed {}", c.name, seed));
      const Problem p = problem_of(c, seed);
      const std::optional<Staged> staged = staged_of(p, c.rules);
      if (!staged) continue;
      for (const std::vector<Step>& steps : simple_plans(p, c.rules)) {
        const std::optional<std::vector<double>> values = staged->values(steps);
        if (!values) continue;
        ++n_started;
        const milp::Solution cold = milp::solve(staged->model(), {});
        milp::SolveOptions options;
        options.start = *values;
        EXPECT_NEAR(milp::solve(staged->model(), options).objective, cold.objective, 1e-6);
        options.time_limit = 0;  // nothing but the start
        const milp::Solution at_once = milp::solve(staged->model(), options);
        ASSERT_FALSE(at_once.values.empty());
        EXPECT_LE(at_once.objective, milp::objective(staged->model(), *values) + 1e-6);
        break;
      }
    }
  }
  EXPECT_GT(n_started, 20);
}

// A pageable home may be taken over in place; without paging nothing could bring it back.
TEST(Staged, NothingIsWrittenOverAHomeThatCannotLeave) {
  int n_plans = 0;
  for (const std::uint64_t seed : {116, 122, 130, 140}) {
    const Problem p = random_problem(seed, {.n_ops = 6, .host = true, .copies = true, .zeros = true});
    for (const char* planner : {"monet", "xengine", "poet"}) {
      const std::optional<Plan> plan = try_plan(p, planner, tight(p, 0.4));  // verified, or throws
      n_plans += plan && !plan->infeasible;
    }
  }
  EXPECT_GT(n_plans, 0);
}

// Every programme can be handed to another solver, under names that a person can read.
TEST(Staged, EveryProgrammeIsWrittenAsMps) {
  for (const Case& c : cases()) {
    const Problem p = problem_of(c, 5);
    const std::optional<Staged> staged = staged_of(p, c.rules);
    ASSERT_TRUE(staged.has_value()) << c.name;
    ASSERT_TRUE(staged_rules(c.name).has_value()) << c.name;
    const milp::Model& m = staged->model();
    std::set<std::string> columns, rows;
    for (const milp::Column& column : m.columns) {
      EXPECT_TRUE(columns.insert(column.name).second) << column.name;
      EXPECT_NE(column.name.find('['), std::string::npos) << column.name;
    }
    for (const milp::Row& row : m.rows) EXPECT_TRUE(rows.insert(row.name).second) << row.name;
    const milp::Model again = milp::from_mps(programme_mps(p, c.name, {}), "again");
    EXPECT_EQ(again.columns.size(), m.columns.size());
    EXPECT_EQ(again.rows.size(), m.rows.size());
  }
}

}  // namespace
}  // namespace neaptide::plan
