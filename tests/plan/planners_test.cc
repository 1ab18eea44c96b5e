// What holds for every planner, over thousands of random problems.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "neaptide/base/errors.hpp"
#include "neaptide/plan/forced.hpp"
#include "neaptide/plan/planner.hpp"
#include "neaptide/plan/simulate.hpp"
#include "neaptide/plan/verify.hpp"
#include "tests/plan/random_problem.hpp"

namespace neaptide::plan {
namespace {

RandomProblem shape_of(int seed) {
  RandomProblem shape;
  shape.n_ops = 4 + seed % 9;
  shape.n_devices = seed % 5 == 4 ? 2 : 1;
  shape.chain = seed % 7 == 3;
  return shape;
}

/// The keep-all peak times `fraction` on the first device.
Options budget_of(const Problem& problem, double fraction) {
  const Simulation sim = simulate(problem, keep_all_steps(problem));
  Options options;
  options.budgets[problem.devices[DeviceId(0)].name] =
      static_cast<Bytes>(std::ceil(fraction * static_cast<double>(sim.peak[DeviceId(0)])));
  return options;
}

class EveryPlanner : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryPlanner, AnswersAreLegalAndWithinTheBudget) {
  int n_feasible = 0;
  for (int seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    const Problem problem = random_problem(static_cast<std::uint64_t>(seed), shape_of(seed));
    const Options options = budget_of(problem, 0.4 + 0.1 * (seed % 7));
    const Plan plan = make_plan(problem, GetParam(), options);  // verifies, or throws
    if (plan.status == Status::kInfeasible) {
      ASSERT_TRUE(plan.infeasible.has_value());
      EXPECT_FALSE(plan.infeasible->advice.empty());
      EXPECT_GE(plan.infeasible->smallest, plan.infeasible->proved);
      continue;
    }
    ++n_feasible;
    EXPECT_TRUE(verify(problem, plan).ok());
    EXPECT_LE(plan.peak[DeviceId(0)], options.budgets.begin()->second);
    EXPECT_GE(plan.peak[DeviceId(0)], smallest_peak(problem, DeviceId(0)).bytes);
    EXPECT_LE(plan.cost.overlapped, plan.cost.seconds * (1 + 1e-12));
  }
  EXPECT_GT(n_feasible, 40);
}

TEST_P(EveryPlanner, SameInputSameBytes) {
  for (int seed = 0; seed < 20; ++seed) {
    const Problem problem = random_problem(static_cast<std::uint64_t>(seed), shape_of(seed));
    const Options options = budget_of(problem, 0.8);
    Plan a = make_plan(problem, GetParam(), options), b = make_plan(problem, GetParam(), options);
    a.seconds_spent = b.seconds_spent = 0;
    EXPECT_EQ(to_json(problem, a), to_json(problem, b)) << "seed " << seed;
  }
}

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const Planner& p : planners()) out.emplace_back(p.name);
  return out;
}

std::string test_name(const ::testing::TestParamInfo<std::string>& planner) {
  std::string name = planner.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, EveryPlanner, ::testing::ValuesIn(names()), test_name);

TEST(Planners, AreSortedByName) {
  const std::vector<std::string> all = names();
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
}

std::string message(const Problem& problem, const std::string& planner, const Options& options) {
  try {
    make_plan(problem, planner, options);
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

TEST(Planners, UnknownNamesGetASuggestion) {
  const Problem problem = random_problem(1);
  EXPECT_EQ(message(problem, "keep-al", {}), "there is no planner 'keep-al'; did you mean 'keep-all'?");
  Options options;
  options.budgets["d1"] = 5;
  EXPECT_EQ(message(problem, "keep-all", options), "there is no device 'd1'; did you mean 'd0'?");
  options = {};
  options.switches["x"] = "on";
  EXPECT_EQ(message(problem, "keep-all", options), "planner 'keep-all' has no switch 'x'");
}

TEST(KeepAll, IsOptimalWithoutABudgetWhenThereIsOneWay) {
  RandomProblem shape;
  shape.implementations = shape.ways = shape.optional_outputs = false;
  for (int seed = 0; seed < 100; ++seed) {
    const Problem problem = random_problem(static_cast<std::uint64_t>(seed), shape);
    const Plan plan = make_plan(problem, "keep-all", {});
    EXPECT_EQ(plan.status, Status::kOptimal) << "seed " << seed;
  }
}

TEST(Infeasible, NamesTheForcingOpAndItsBuffers) {
  const char* text = R"({"format": "neaptide.problem", "version": 1, "name": "tight",
    "devices": [{"name": "d", "budget": 60}],
    "buffers": [{"name": "w", "bytes": 7, "home": "d"}, {"name": "a", "bytes": 30}, {"name": "b", "bytes": 25}],
    "ops": [{"name": "f", "impls": [{"name": "i", "device": "d", "seconds": 1, "reads": ["w"], "writes": ["a"]}]},
            {"name": "g", "once": true,
             "impls": [{"name": "i", "device": "d", "seconds": 1, "reads": ["a"], "writes": ["b"]}]}]})";
  const Problem problem = problem_from_json(text, "tight");
  const Plan plan = make_plan(problem, "keep-all", {});
  ASSERT_EQ(plan.status, Status::kInfeasible);
  EXPECT_EQ(plan.infeasible->proved, 62);
  EXPECT_EQ(plan.infeasible->smallest, 62);
  EXPECT_EQ(plan.infeasible->step, "g");
  EXPECT_EQ(plan.infeasible->buffers, (std::vector<std::string>{"a", "b"}));
  EXPECT_THAT(plan.infeasible->advice, ::testing::HasSubstr("give d at least 62 bytes"));
}

}  // namespace
}  // namespace neaptide::plan
