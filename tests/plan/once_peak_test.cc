// The least peak of what runs once: never above what the oracle reaches, exact on branches whose order matters.
// NEAPTIDE_PROBLEMS=5000 in the environment asks for more random problems of each kind.
#include "neaptide/plan/once_peak.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "neaptide/base/errors.hpp"
#include "neaptide/plan/forced.hpp"
#include "neaptide/plan/planner.hpp"
#include "neaptide/plan/simulate.hpp"
#include "tests/plan/random_problem.hpp"
#include "tests/plan/tight.hpp"

namespace neaptide::plan {
namespace {

/// Whether what was changed is still a problem, and one whose order can run: without a link it may not.
bool sound(const Problem& p) {
  if (!check(p).empty()) return false;
  try {
    keep_all_steps(p);
    return true;
  } catch (const UserError&) {
    return false;
  }
}

struct Tally {
  int all = 0, above_working_sets = 0, exact = 0;
};

Tally compare(const RandomProblem& shape, int n, const std::function<Problem(Problem)>& change) {
  Tally t;
  for (int seed = 0; seed < n && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    const Problem p = change(random_problem(static_cast<std::uint64_t>(seed), shape));
    if (!sound(p)) continue;
    const OncePeak peak = once_peak(p, DeviceId(0), 0);
    const Bytes least = smallest_peak(p, DeviceId(0)).bytes;
    EXPECT_LE(peak.bytes, least);
    if (least == 0) continue;
    EXPECT_FALSE(feasible(p, least - 1)) << "claimed: " << least;
    ++t.all;
    t.above_working_sets += peak.op.valid() && peak.bytes > largest_working_set(p);
    t.exact += feasible(p, least);
  }
  return t;
}

RandomProblem plain() {
  RandomProblem s;
  s.n_ops = 8;
  s.implementations = s.in_place = s.homes = s.versions = s.ways = s.optional_outputs = false;
  return s;
}

TEST(OncePeak, IsNeverAboveWhatTheOracleReaches) {
  const Tally t = compare(plain(), n_problems(400), all_once);
  EXPECT_GT(t.above_working_sets, t.all / 4);
  EXPECT_GT(t.exact, t.all * 9 / 10);
}

TEST(OncePeak, KnowsWhatIsWrittenInPlace) {
  RandomProblem s = plain();
  s.implementations = s.in_place = s.optional_outputs = true;
  s.n_ops = 7;
  const Tally t = compare(s, n_problems(400), all_once);
  EXPECT_GT(t.above_working_sets, t.all / 8);
  EXPECT_GT(t.exact, t.all / 2);
}

TEST(OncePeak, CountsOnlyWhatCannotBeMadeAgain) {
  RandomProblem s = plain();
  s.n_ops = 7;
  s.homes = s.versions = s.implementations = s.ways = true;
  const Tally t = compare(s, n_problems(300), [](Problem p) {
    for (std::size_t i = 0; i < p.ops.size(); i += 2) p.ops[OpId(i)].once = true;
    return p;
  });
  EXPECT_GT(t.above_working_sets, 0);
}

TEST(OncePeak, CountsOnlyWhatCannotBeElsewhere) {
  RandomProblem s = plain();
  s.n_ops = 5;
  s.host = s.homes = s.implementations = s.copies = true;
  compare(s, n_problems(200), all_once);
  s.host = false;
  s.n_devices = 2;
  compare(s, n_problems(200), all_once);
  const auto cut_off = [](Problem p) {  // links lead away from the first device only
    p = all_once(std::move(p));
    p.copies.clear();
    std::erase_if(p.links, [](const Link& l) { return l.to == DeviceId(0); });
    return p;
  };
  s.copies = false;
  s.n_ops = 6;
  compare(s, n_problems(200), cut_off);
}

/// Branches from one value that meet again at the end. Each holds a large value for a while and leaves a small one.
Problem branches(const std::vector<std::pair<Bytes, Bytes>>& large_and_small, bool in_place) {
  Problem p;
  p.devices.push_back({"d0", std::nullopt, 1});
  const auto buffer = [&](Bytes bytes) { return p.buffers.push_back({fmt::format("v{}", p.buffers.size()), bytes}); };
  const auto op = [&](std::vector<BufferId> reads, BufferId write, bool over) {
    Impl i{.name = "i", .device = DeviceId(0), .seconds = 1, .reads = reads, .writes = {write}};
    Op o{fmt::format("op{}", p.ops.size()), true, {i}};
    if (over) {
      o.impls.push_back(i);
      o.impls.back().in_place = {{reads[0], write}};
      o.impls.back().name = "over";
    }
    p.order.push_back(p.ops.push_back(o));
    return write;
  };
  const BufferId start = op({}, buffer(1), false);
  std::vector<BufferId> left;
  for (const auto& [large, small] : large_and_small) {
    left.push_back(op({op({start}, buffer(large), false)}, buffer(small), in_place));
  }
  op(left, buffer(1), false);
  return p;
}

TEST(OncePeak, TakesTheBestOrderOfBranches) {
  // The second branch makes 6 beside 8 while there is 1: the start's, or what the first branch has left.
  const Problem p = branches({{10, 1}, {8, 6}}, false);
  EXPECT_EQ(once_peak(p, DeviceId(0), 0).bytes, 15);
  EXPECT_TRUE(feasible(p, 15));
  EXPECT_FALSE(feasible(p, 14));
  EXPECT_FALSE(once_peak(p, DeviceId(0), 15).op.valid());
}

TEST(OncePeak, KnowsThatOneOfTwoBranchesComesSecond) {
  // The second one holds what the first has left: 3 + 8 + 4, or 4 + 10 + 3. Alone, each may be first: 14 at most.
  const Problem p = branches({{10, 3}, {8, 4}}, false);
  EXPECT_EQ(once_peak(p, DeviceId(0), 0).bytes, 15);
  EXPECT_TRUE(feasible(p, 15));
}

TEST(OncePeak, WritingOverAnInputSavesOnlyWhatNobodyReadsLater) {
  const Problem p = branches({{6, 6}, {6, 6}}, true);  // 1 + 6 + 6 where the second branch begins
  EXPECT_EQ(smallest_peak(p, DeviceId(0)).bytes, 13);
  Problem held = p;
  const BufferId first_large = held.ops[OpId(1)].impls[0].writes[0];
  for (Impl& i : held.ops[OpId(5)].impls) i.reads.push_back(first_large);
  EXPECT_EQ(smallest_peak(held, DeviceId(0)).bytes, 19);
  EXPECT_TRUE(feasible(held, 19));
}

TEST(OncePeak, NamesWhatLiesThere) {
  const Problem p = branches({{6, 6}, {6, 6}}, true);
  const OncePeak peak = once_peak(p, DeviceId(0), 0);
  Bytes sum = 0;
  for (const BufferId b : peak.buffers) sum += p.buffers[b].bytes;
  EXPECT_EQ(sum, peak.bytes);
  Options o;
  o.budgets["d0"] = peak.bytes - 1;
  const Plan plan = make_plan(p, "neaptide", o);
  ASSERT_TRUE(plan.infeasible.has_value());
  EXPECT_EQ(plan.infeasible->proved, peak.bytes);
  EXPECT_EQ(plan.infeasible->step, p.ops[peak.op].name);
}

}  // namespace
}  // namespace neaptide::plan
