// Orders that fit: whatever comes out is a schedule within the budget, and one comes out whenever the oracle finds one.
// NEAPTIDE_PROBLEMS=5000 in the environment asks for more random problems of each kind.
#include "neaptide/plan/planners/neaptide_order.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>

#include "neaptide/plan/forced.hpp"
#include "neaptide/plan/planner.hpp"
#include "neaptide/plan/planners/neaptide_search.hpp"
#include "neaptide/plan/simulate.hpp"
#include "tests/plan/random_problem.hpp"

namespace neaptide::plan {
namespace {

constexpr std::int64_t kPlenty = 1'000'000;

int n_problems(int otherwise) {
  const char* given = std::getenv("NEAPTIDE_PROBLEMS");
  return given == nullptr ? otherwise : std::max(otherwise, std::atoi(given));
}

/// Whether an order was found; it is checked.
bool found(Problem p, Bytes budget, std::int64_t work = kPlenty) {
  p.devices[DeviceId(0)].budget = budget;
  const tide::Model model(p);
  const tide::Sequence start = tide::starting_actions(model);
  const auto order = tide::order_that_fits(model, start, work, [] { return false; });
  if (!order) return false;
  tide::Schedule s(model, *order);
  EXPECT_TRUE(s.sound());
  EXPECT_LE(s.excess(), 0);
  EXPECT_LE(s.seconds(), tide::Schedule(model, start).seconds());
  EXPECT_EQ(order->actions.size(), start.actions.size());
  return true;
}

/// The oracle's word, which knows nothing of orders.
bool feasible(const Problem& p, Bytes budget) {
  Options o;
  o.budgets["d0"] = budget;
  return !make_plan(p, "exhaustive", o).infeasible;
}

struct Tally {
  int fitting = 0, better_than_given = 0;
};

/// From the least peak that can be thought of to that of the given order.
Tally compare(const RandomProblem& shape, bool exact) {
  Tally t;
  for (int seed = 0; seed < n_problems(200) && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Problem p = random_problem(static_cast<std::uint64_t>(seed), shape);
    for (std::size_t i = 0; i < p.ops.size(); ++i) p.ops[OpId(i)].once = true;
    const Bytes given = simulate(p, keep_all_steps(p)).peak[DeviceId(0)];
    for (Bytes budget = smallest_peak(p, DeviceId(0)).bytes; budget <= given; ++budget) {
      const bool fits = found(p, budget);
      t.fitting += fits;
      t.better_than_given += fits && budget < given;
      if (exact) {
        EXPECT_EQ(fits, feasible(p, budget)) << budget;
      }
    }
  }
  return t;
}

RandomProblem plain() {
  RandomProblem s;
  s.n_ops = 9;
  s.implementations = s.in_place = s.ways = s.optional_outputs = false;
  return s;
}

TEST(Order, IsFoundWheneverThereIsOne) {
  const Tally t = compare(plain(), true);
  EXPECT_GT(t.better_than_given, 100);
}

TEST(Order, TakesOverInPlaceWhereThatHoldsLess) {
  RandomProblem s = plain();
  s.implementations = s.in_place = s.optional_outputs = true;
  const Tally t = compare(s, false);
  EXPECT_GT(t.better_than_given, 100);
}

TEST(Order, GivesUpWhenItsWorkIsSpent) {
  const Problem p = random_problem(3, plain());
  const Bytes plenty = Bytes{1} << 40;
  EXPECT_TRUE(found(p, plenty));
  EXPECT_FALSE(found(p, plenty, -1));
}

TEST(Order, OfSeveralDevicesIsNotLookedFor) {
  RandomProblem s = plain();
  s.n_devices = 2;
  EXPECT_FALSE(found(random_problem(3, s), Bytes{1} << 40));
}

}  // namespace
}  // namespace neaptide::plan
