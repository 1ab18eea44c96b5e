#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "neaptide/base/errors.hpp"
#include "neaptide/milp/mps.hpp"
#include "neaptide/milp/solve.hpp"

namespace neaptide::milp {
namespace {

#define NEAPTIDE_NEEDS_SOLVER() \
  if (!why_not_built().empty()) GTEST_SKIP() << why_not_built()

/// A knapsack with n things: minimise minus the value.
Model knapsack(int n, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Model m;
  m.name = "knapsack";
  std::vector<Term> weights;
  double total = 0;
  for (int i = 0; i < n; ++i) {
    const Var x = m.add_binary(fmt::format("take[{}]", i), -static_cast<double>(1 + random() % 20));
    weights.push_back({x, static_cast<double>(1 + random() % 20)});
    total += weights.back().factor;
  }
  m.add_row("capacity", -kInfinity, std::floor(total / 2), weights);
  return m;
}

double best_by_trying(const Model& m) {
  double best = kInfinity;
  for (std::uint32_t bits = 0; bits < (1u << m.columns.size()); ++bits) {
    std::vector<double> x;
    for (std::size_t j = 0; j < m.columns.size(); ++j) x.push_back((bits >> j) & 1u);
    if (violation(m, x) == 0) best = std::min(best, objective(m, x));
  }
  return best;
}

TEST(Solve, FindsTheOptimumThatTryingAllFinds) {
  NEAPTIDE_NEEDS_SOLVER();
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Model m = knapsack(10, seed);
    const Solution s = solve(m, {});
    EXPECT_EQ(s.outcome, Outcome::kOptimal);
    EXPECT_DOUBLE_EQ(s.objective, best_by_trying(m));
    EXPECT_EQ(violation(m, s.values), 0);
    EXPECT_NEAR(s.bound, s.objective, 1e-6 * std::abs(s.objective));
  }
}

TEST(Solve, TheRelaxationBoundsFromBelowAndHasDuals) {
  NEAPTIDE_NEEDS_SOLVER();
  const Model m = knapsack(10, 3);
  const Solution s = solve(m, {.relax = true});
  EXPECT_LE(s.objective, best_by_trying(m) + 1e-9);
  ASSERT_EQ(s.row_duals.size(), 1u);
  EXPECT_LT(s.row_duals[0], 0);
}

TEST(Solve, SaysInfeasible) {
  NEAPTIDE_NEEDS_SOLVER();
  Model m = knapsack(4, 1);
  m.rows[0].lower = 1e6;
  m.rows[0].upper = kInfinity;
  EXPECT_EQ(solve(m, {}).outcome, Outcome::kInfeasible);
}

TEST(Solve, StartsFromASolutionAndCanBeStopped) {
  NEAPTIDE_NEEDS_SOLVER();
  const Model m = knapsack(10, 5);
  SolveOptions options;
  options.start = std::vector<double>(10, 0.0);
  options.progress = [](const SolveProgress&) { return true; };
  EXPECT_EQ(solve(m, options).outcome, Outcome::kOptimal);
}

TEST(Model, RowsAddUpTermsAndRefuseTheImpossible) {
  Model m;
  const Var x = m.add_binary("x", 1);
  m.add_row("twice", 0, 3, {{x, 1}, {x, 2}});
  EXPECT_EQ(m.rows[0].terms, (std::vector<Term>{{x, 3}}));
  m.add_row("nothing", 0, 1, {});
  EXPECT_EQ(m.rows.size(), 1u);
  EXPECT_THROW(m.add_row("never", 1, 2, {}), InternalError);
}

TEST(Mps, ComesBackEqual) {
  Model m = knapsack(5, 2);
  m.offset = 1.0 / 3;
  const Var free = m.add("free", -kInfinity, kInfinity, 0.1, false);
  const Var fixed = m.add("fixed", 2.5, 2.5, 0, false);
  const Var below = m.add("below", -kInfinity, 7, 0, true);
  const Var above = m.add("above", 0, kInfinity, 0, true);
  m.add_row("between", -1, 4.25, {{free, 1}, {fixed, 1e-17}});
  m.add_row("at_least", 0.5, kInfinity, {{below, 1}, {above, -3}});
  m.add_row("equal", 2, 2, {{free, 1}, {above, 1}});
  EXPECT_EQ(from_mps(to_mps(m), "text"), m);
}

std::string message(const std::string& text) {
  try {
    from_mps(text, "m.mps");
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

TEST(Mps, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(message("NAME a\nROWS\n N cost\nCOLUMNS\n x r 1\nENDATA\n"), "m.mps, line 5: unknown row 'r'");
  EXPECT_EQ(message("NAME a\nROWS\n N cost\n"), "m.mps, line 3: ENDATA is missing");
  EXPECT_EQ(message("SETS\n"), "m.mps, line 1: unknown section 'SETS'");
  EXPECT_EQ(message("ROWS\n N cost\nCOLUMNS\n x cost 1x\nENDATA\n"), "m.mps, line 4: '1x' is not a number");
}

TEST(Absent, IsNamedHonestly) {
  if (why_not_built().empty()) {
    EXPECT_THAT(solver_name(), ::testing::StartsWith("HiGHS "));
  } else {
    EXPECT_THROW(solve(knapsack(3, 1), {}), UserError);
  }
}

}  // namespace
}  // namespace neaptide::milp
