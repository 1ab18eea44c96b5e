// Implementations that nothing can use go before bounds are made, and the checker leaves out the same ones.
#include "neaptide/plan/possible.hpp"

#include <gtest/gtest.h>

#include "neaptide/plan/bounds.hpp"
#include "neaptide/plan/certify.hpp"
#include "neaptide/plan/planner.hpp"
#include "tests/plan/by_hand.hpp"

namespace neaptide::plan {
namespace {

/// a makes y, quickly with much room or slowly with none, or y and s; end reads y, or s.
class Choices : public ::testing::Test {
 protected:
  Choices() {
    p = problem_by_hand(std::nullopt, {{"y", 4}, {"s", 1}});
    add_by_hand(
        p, "a",
        {by_hand("slow", 5, 0, {}, {0}), by_hand("fast", 1, 10, {}, {0}), by_hand("saving", 2, 20, {}, {0, 1})});
    add_by_hand(p, "end", {by_hand("from y", 3, 0, {0}, {}), by_hand("from s", 1, 0, {1}, {})}, true);
  }

  Problem with(Bytes budget) {
    p.devices[DeviceId(0)].budget = budget;
    return p;
  }

  Problem p;
};

using Kept = std::vector<std::vector<int>>;

TEST_F(Choices, GoWhereTheyExceedTheBudgetAlone) {
  EXPECT_EQ(possible_implementations(with(25)).kept, (Kept{{0, 1, 2}, {0, 1}}));
  EXPECT_EQ(possible_implementations(with(24)).kept, (Kept{{0, 1}, {0}}));  // and who reads what only they write
  EXPECT_EQ(possible_implementations(with(14)).kept, (Kept{{0, 1}, {0}}));
  EXPECT_EQ(possible_implementations(with(13)).kept, (Kept{{0}, {0}}));
}

TEST_F(Choices, AllStayWhereAnOpWouldHaveNone) {
  EXPECT_EQ(possible_implementations(with(3)).kept, (Kept{{0, 1, 2}, {0, 1}}));
  p.buffers[BufferId(1)].keep = true;  // and where what must be kept would not be made
  EXPECT_EQ(possible_implementations(with(14)).kept, (Kept{{0, 1, 2}, {0, 1}}));
}

TEST_F(Choices, RaiseTheFloorAsTheCheckerFindsToo) {
  for (const auto& [budget, floor] : {std::pair{25, 1}, {24, 4}, {14, 4}, {13, 8}}) {
    const Problem bounded = with(budget);
    const LowerBound b = floor_bound(bounded);
    EXPECT_EQ(b.seconds, floor) << "budget " << budget;
    EXPECT_TRUE(certify(bounded, b).ok);
    EXPECT_FALSE(certify(with(25), b).ok && floor > 1) << "more than a larger budget needs";
    EXPECT_LE(b.seconds, make_plan(bounded, "exhaustive", {}).cost.seconds);
  }
}

TEST_F(Choices, RunsKeepTheNamesOfTheOriginal) {
  const Possible can = possible_implementations(with(13));
  EXPECT_EQ(can.problem.ops[OpId(0)].impls[0].name, "slow");
  std::swap(p.ops[OpId(0)].impls[0], p.ops[OpId(0)].impls[2]);
  const std::vector<Compute> runs = possible_implementations(with(13)).original({{OpId(0), 0}, {OpId(1), 0}});
  EXPECT_EQ(runs[0].impl, 2);
  EXPECT_EQ(runs[1].impl, 0);
}

}  // namespace
}  // namespace neaptide::plan
