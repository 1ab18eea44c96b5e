// Inequalities that tighten the relaxation of several instants: every one is violated by the solution that it was found
// for, and by no 0/1 solution, as the least value of its terms over all of these shows. And what branches imply: no
// solution has it otherwise.
#include "neaptide/plan/cuts_inequalities.hpp"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>
#include <random>

#include "neaptide/milp/relaxation.hpp"
#include "neaptide/milp/solve.hpp"
#include "neaptide/plan/cuts_propagation.hpp"
#include "neaptide/plan/planner.hpp"
#include "tests/plan/random_problem.hpp"
#include "tests/plan/tight.hpp"

namespace neaptide::plan {
namespace {

class Inequalities : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!milp::why_not_built().empty()) GTEST_SKIP() << "no solver: " << milp::why_not_built();
  }
};

/// Models of three or so instants of random problems, with room for little.
void for_models(int n, const std::function<void(const CutsModel&, int seed)>& use) {
  for (int seed = 0; seed < n; ++seed) {
    RandomProblem shape{.n_ops = 12, .once = false, .most_bytes = 9};
    shape.implementations = seed % 2 == 0;
    const Problem random = random_problem(static_cast<std::uint64_t>(seed), shape);
    const Problem p = with_options(random, tight(random, 0.25));
    const CutsFrame frame(p, DeviceId(0), BoundScope::kThisOrder);
    std::vector<OpId> cuts;
    for (std::size_t i = 3; i < p.order.size(); i += 3) {
      if (frame.may_cut(p.order[i])) cuts.push_back(p.order[i]);
    }
    if (!cuts.empty()) use(CutsModel(frame, cuts, {}, {p.order.begin(), p.order.end()}), seed);
  }
}

/// The least that the terms add up to over all 0/1 solutions; none: there are no solutions.
std::optional<std::int64_t> least_value(const CutsModel& model, const CutsInequality& inequality) {
  milp::Model all = model.relaxation();
  for (milp::Column& c : all.columns) {
    c.integer = true;
    c.cost = 0;
  }
  for (const auto& [c, factor] : inequality.terms) {
    all.columns[static_cast<std::size_t>(c)].cost = static_cast<double>(factor) / inequality.scale;
  }
  milp::SolveOptions exactly;
  exactly.gap = 1e-9;
  const milp::Solution s = milp::solve(all, exactly);
  if (s.outcome != milp::Outcome::kOptimal) return std::nullopt;
  std::int64_t sum = 0;
  for (const auto& [c, factor] : inequality.terms) {
    if (s.values[static_cast<std::size_t>(c)] > 0.5) sum += factor;
  }
  return sum;
}

TEST_F(Inequalities, AreViolatedByWhatTheyWereFoundForAndByNoSolution) {
  std::array<int, 3> found{};
  for_models(60, [&](const CutsModel& model, int seed) {
    const auto judge = [&](const std::vector<CutsInequality>& list, const std::vector<double>& x) {
      for (const CutsInequality& i : list) {
        ++found[i.why.index()];
        EXPECT_GT(violation(i, x), 0) << "seed " << seed;
        EXPECT_GE(least_value(model, i).value_or(i.least), i.least) << "kind " << i.why.index() << " seed " << seed;
      }
    };
    milp::Relaxation lp(model.relaxation());
    if (lp.solve(10'000) != milp::Relaxation::Outcome::kOptimal) return;
    const std::vector<double>& x = lp.values();
    judge(find_covers(model, x, 10), x);
    judge(find_paths(model, x), x);
    const std::vector<int> basic = lp.basic();
    for (std::size_t place = 0; place < basic.size(); ++place) {
      const bool whole = basic[place] < 0 || std::abs(x[static_cast<std::size_t>(basic[place])] - 0.5) > 0.49;
      if (whole) continue;
      auto multipliers = lp.tableau_row(static_cast<int>(place));
      for (auto& [row, y] : multipliers) {
        if (model.rows[static_cast<std::size_t>(row)].in_bytes()) y /= model.byte_scale;
      }
      if (const auto one = round_rows(model, {}, multipliers, x)) judge({*one}, x);
    }
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));  // nothing asks for the relaxation's own solution
    std::vector<double> anything(x.size());
    for (double& v : anything) v = static_cast<double>(random() % 4) / 10;
    judge(find_covers(model, anything, 10), anything);
    judge(find_paths(model, anything), anything);
  });
  for (const int n : found) EXPECT_GT(n, 20);
}

// Any multipliers will do, and what came of rounding may be rounded again.
TEST_F(Inequalities, WhateverIsRoundedHolds) {
  int n = 0;
  for_models(60, [&](const CutsModel& model, int seed) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    std::vector<CutsInequality> list;
    for (int attempt = 0; attempt < 30 && list.size() < 6; ++attempt) {
      std::vector<double> x(model.columns.size());
      for (double& v : x) v = static_cast<double>(random() % 5) / 4;
      std::vector<std::pair<int, double>> multipliers;
      const auto n_rows = model.rows.size() + list.size();
      for (int k = 0; k < 4; ++k) {
        const std::size_t r = random() % n_rows;
        double y = (static_cast<double>(random() % 13) - 6) / 7;
        if (r < model.rows.size() && model.rows[r].in_bytes()) y /= 5;
        const bool again = std::any_of(multipliers.begin(), multipliers.end(),
                                       [&](const auto& m) { return m.first == static_cast<int>(r); });
        if (!again) multipliers.emplace_back(static_cast<int>(r), y);
      }
      auto one = round_rows(model, list, multipliers, x);
      if (one) list.push_back(std::move(*one));
    }
    for (const CutsInequality& i : list) {
      ++n;
      EXPECT_GE(least_value(model, i).value_or(i.least), i.least) << "seed " << seed;
    }
  });
  EXPECT_GT(n, 100);
}

// ---------------------------------------------------------------------------------------------------------------------

using Branches = std::vector<std::pair<int, char>>;

bool has_solution(const CutsModel& model, const Branches& fixed) {
  milp::Model all = model.relaxation();
  for (milp::Column& c : all.columns) {
    c.integer = true;
    c.cost = 0;
  }
  for (const auto& [c, value] : fixed) {
    all.columns[static_cast<std::size_t>(c)].lower = value;
    all.columns[static_cast<std::size_t>(c)].upper = value;
  }
  return milp::solve(all, {}).outcome == milp::Outcome::kOptimal;
}

Branches random_branches(const CutsModel& model, std::mt19937_64* random, int n) {
  std::map<int, char> out;
  for (int i = 0; i < n; ++i) {
    const auto c = static_cast<int>((*random)() % model.columns.size());
    out[c] = static_cast<char>((*random)() % 4 != 0);
  }
  return {out.begin(), out.end()};
}

/// Whether the steps follow from the branches, row by row.
bool follows(const CutsModel& model, const Branches& fixed, const std::vector<CutsImplied>& steps) {
  std::map<int, char> value(fixed.begin(), fixed.end());
  for (const CutsImplied& s : steps) {
    const CutsRow& row = model.rows[static_cast<std::size_t>(s.row)];
    if (s.column >= 0) value[s.column] = static_cast<char>(1 - s.value);
    Wide most = 0;
    for (const auto& [c, factor] : row.terms) {
      const auto at = value.find(c);
      most += at == value.end() ? std::max<std::int64_t>(factor, 0) : factor * at->second;
    }
    if (most >= row.least) return false;
    if (s.column >= 0) value[s.column] = s.value;
  }
  return true;
}

TEST_F(Inequalities, WhatBranchesImplyNoSolutionHasOtherwise) {
  int n_steps = 0, n_impossible = 0, n_trimmed = 0;
  for_models(40, [&](const CutsModel& model, int seed) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    CutsPropagation follow(model);
    const std::vector<CutsImplied> given = follow.from({});
    for (int attempt = 0; attempt < 6; ++attempt) {
      const Branches fixed = random_branches(model, &random, 1 + attempt * 2);
      const std::vector<CutsImplied> steps = follow.from(fixed);
      EXPECT_TRUE(follows(model, fixed, steps)) << "seed " << seed;
      if (steps.empty()) continue;
      const CutsImplied last = steps.back();
      if (last.column < 0) {
        EXPECT_FALSE(has_solution(model, fixed)) << "seed " << seed;
        ++n_impossible;
      } else {
        Branches otherwise = fixed;
        otherwise.emplace_back(last.column, static_cast<char>(1 - last.value));
        EXPECT_FALSE(has_solution(model, otherwise)) << "seed " << seed;
        ++n_steps;
      }
      std::vector<char> wanted(model.columns.size(), 0);
      if (last.column >= 0) wanted[static_cast<std::size_t>(last.column)] = 1;
      const std::vector<CutsImplied> needed = follow.needed(steps, wanted, {});
      EXPECT_TRUE(follows(model, fixed, needed)) << "seed " << seed;
      ASSERT_FALSE(needed.empty());
      EXPECT_EQ(needed.back(), last);
      n_trimmed += needed.size() < steps.size() ? 1 : 0;
    }
    EXPECT_EQ(follow.from({}), given) << "seed " << seed;  // nothing stays decided
  });
  EXPECT_GT(n_steps, 50);
  EXPECT_GT(n_impossible, 20);
  EXPECT_GT(n_trimmed, 20);
}

}  // namespace
}  // namespace neaptide::plan
