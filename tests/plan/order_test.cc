// Orders that fit: whatever comes out is a schedule within the budget, and one comes out whenever the oracle finds one.
// NEAPTIDE_PROBLEMS=5000 in the environment asks for more random problems of each kind.
#include "neaptide/plan/planners/neaptide_order.hpp"

#include <gtest/gtest.h>

#include "neaptide/plan/forced.hpp"
#include "neaptide/plan/planner.hpp"
#include "neaptide/plan/planners/neaptide_search.hpp"
#include "neaptide/plan/simulate.hpp"
#include "tests/plan/random_problem.hpp"
#include "tests/plan/tight.hpp"

namespace neaptide::plan {
namespace {

constexpr std::int64_t kPlenty = 1'000'000;

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

/// From the least peak that can be thought of to that of the given order. How often another order needs less.
int compare(const RandomProblem& shape, bool exact) {
  int n_better = 0;
  for (int seed = 0; seed < n_problems(200) && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    const Problem p = all_once(random_problem(static_cast<std::uint64_t>(seed), shape));
    const Bytes given = simulate(p, keep_all_steps(p)).peak[DeviceId(0)];
    for (Bytes budget = smallest_peak(p, DeviceId(0)).bytes; budget <= given; ++budget) {
      const bool fits = found(p, budget);
      n_better += fits && budget < given;
      if (exact) {
        EXPECT_EQ(fits, feasible(p, budget)) << budget;
      }
    }
  }
  return n_better;
}

RandomProblem plain() {
  RandomProblem s;
  s.n_ops = 9;
  s.implementations = s.in_place = s.ways = s.optional_outputs = false;
  return s;
}

TEST(Order, IsFoundWheneverThereIsOne) { EXPECT_GT(compare(plain(), true), 100); }

TEST(Order, TakesOverInPlaceWhereThatHoldsLess) {
  RandomProblem s = plain();
  s.implementations = s.in_place = s.optional_outputs = true;
  EXPECT_GT(compare(s, false), 100);
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
