// Energy and overlapped seconds: what is planned, what is proved, what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/json.hpp"
#include "neaptide/plan/bounds.hpp"
#include "neaptide/plan/certify.hpp"
#include "neaptide/plan/energy.hpp"
#include "neaptide/plan/forced.hpp"
#include "neaptide/plan/overlap_bound.hpp"
#include "neaptide/plan/planner.hpp"
#include "neaptide/plan/simulate.hpp"
#include "neaptide/plan/verify.hpp"
#include "tests/plan/random_problem.hpp"
#include "tests/plan/tight.hpp"

namespace neaptide::plan {
namespace {

using testing::HasSubstr;

/// Joules that have nothing to do with the seconds.
Problem with_joules(Problem p, std::uint64_t seed) {
  std::mt19937_64 rng(seed + 77);
  for (std::size_t o = 0; o < p.ops.size(); ++o) {
    for (Impl& i : p.ops[OpId(o)].impls) i.joules = static_cast<double>(1 + rng() % 9);
  }
  if (p.devices.size() < 2) return p;
  for (std::size_t b = 0; b < p.buffers.size(); ++b) {
    for (std::size_t d = 0; d < 2; ++d) {
      p.copies.push_back({BufferId(b), DeviceId(d), DeviceId(1 - d), 1.0, static_cast<double>(1 + rng() % 3)});
    }
  }
  return p;
}

TEST(Energy, OptimumLiesBetweenBoundAndPlan) {
  int n_feasible = 0, n_equal = 0;
  for (const bool two : {false, true}) {
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      const Problem p = with_joules(random_problem(seed, {.n_ops = 5, .n_devices = two ? 2 : 1}), seed);
      ASSERT_EQ(check(p), std::vector<std::string>{});
      Options o = tight(p, 0.5);
      o.objective = Objective::kEnergy;
      const Plan best = make_plan(p, "exhaustive", o), plan = make_plan(p, "neaptide", o);
      EXPECT_EQ(plan.objective, Objective::kEnergy);
      if (plan.infeasible) continue;
      ASSERT_FALSE(best.infeasible) << "seed " << seed;
      ++n_feasible;
      EXPECT_LE(*best.cost.joules, *plan.cost.joules + 1e-9) << "seed " << seed;
      EXPECT_LE(plan.lower_bound->seconds, *best.cost.joules + 1e-9) << "seed " << seed;
      n_equal += *best.cost.joules >= *plan.cost.joules - 1e-9;
      const Problem budgeted = with_options(p, o);
      const Certified c = certify(budgeted, *plan.lower_bound, Objective::kEnergy);
      EXPECT_TRUE(c.ok) << c.reason;
      LowerBound more = *plan.lower_bound;
      more.seconds = c.seconds * 1.01 + 0.01;
      EXPECT_FALSE(certify(budgeted, more, Objective::kEnergy).ok);
      // Both costs are there, and the file says which of them is bounded.
      const Json j = parse_json(to_json(p, plan), "plan");
      EXPECT_EQ(j.at("objective"), "energy");
      EXPECT_EQ(j.at("lower_bound").at("joules"), plan.lower_bound->seconds);
      EXPECT_EQ(j.at("cost").at("joules"), *plan.cost.joules);
      EXPECT_GT(j.at("cost").at("seconds").get<double>(), 0);
      EXPECT_EQ(plan_from_json(p, j.dump(), "plan"), plan);
    }
  }
  EXPECT_GT(n_feasible, 12);
  EXPECT_GE(n_equal, n_feasible * 3 / 4);
}

TEST(Energy, WithoutJoulesItIsRefused) {
  Problem p = with_joules(random_problem(1, {.n_ops = 4}), 1);
  p.ops[OpId(2)].impls[0].joules.reset();
  p.ops[OpId(2)].name = "here";
  Options o;
  o.objective = Objective::kEnergy;
  for (const char* planner : {"neaptide", "keep-all", "exhaustive"}) {
    try {
      make_plan(p, planner, o);
      FAIL() << planner;
    } catch (const UserError& e) {
      EXPECT_THAT(e.what(), HasSubstr("objective 'energy' needs the joules of every implementation; 'i0' of op "
                                      "'here' has none"));
    }
  }
}

// Energy counts what a copy takes; a plan that needs one of unknown joules has none.
TEST(Energy, ACopyThatCannotBeDoneWithoutNeedsJoules) {
  Problem p;
  p.devices.push_back({.name = "d"});
  p.devices.push_back({.name = "e"});
  p.links.push_back({DeviceId(0), DeviceId(1), 1.0, 8.0});
  const BufferId x = p.buffers.push_back({.name = "x", .bytes = 4, .home = DeviceId(0)});
  const BufferId y = p.buffers.push_back({.name = "y", .bytes = 4, .keep = true});
  const Impl impl{.name = "i", .device = DeviceId(1), .seconds = 1, .joules = 3.0, .reads = {x}, .writes = {y}};
  p.order.push_back(p.ops.push_back({"op", true, {impl}}));
  Options o;
  o.objective = Objective::kEnergy;
  try {
    make_plan(p, "neaptide", o);
    FAIL();
  } catch (const UserError& e) {
    EXPECT_THAT(e.what(), HasSubstr("objective 'energy' needs the joules of copies, as entries of 'copies'"));
  }
  p.copies.push_back({x, DeviceId(0), DeviceId(1), 2.0, 5.0});
  EXPECT_EQ(make_plan(p, "neaptide", o).cost.joules, 8.0);
}

TEST(Energy, TheCheapestJoulesMayBeTheSlowestSeconds) {
  Problem p;
  p.devices.push_back({.name = "d"});
  const BufferId out = p.buffers.push_back({.name = "out", .bytes = 4, .keep = true});
  const Impl fast{.name = "fast", .device = DeviceId(0), .seconds = 1, .joules = 9.0, .writes = {out}};
  const Impl slow{.name = "slow", .device = DeviceId(0), .seconds = 5, .joules = 2.0, .writes = {out}};
  p.order.push_back(p.ops.push_back({"op", true, {fast, slow}}));
  Options o;
  EXPECT_EQ(make_plan(p, "neaptide", o).cost.seconds, 1);
  o.objective = Objective::kEnergy;
  const Plan plan = make_plan(p, "neaptide", o);
  EXPECT_EQ(plan.cost, (Cost{5, 5, 2.0}));
  EXPECT_EQ(plan.status, Status::kOptimal);
}

/// Every order of runs without repetition, with at most `n_copies` copies: the least overlapped seconds.
Seconds by_trying(const Problem& p, int n_copies) {
  Seconds best = std::numeric_limits<double>::infinity();
  std::vector<Step> steps;
  std::vector<char> ran(p.ops.size(), 0), there(p.buffers.size() * p.devices.size(), 0);
  const auto at = [&](DeviceId d, BufferId b) -> char& { return there[b.index() * p.devices.size() + d.index()]; };
  for (std::size_t b = 0; b < p.buffers.size(); ++b) {
    if (p.buffers[BufferId(b)].home) at(*p.buffers[BufferId(b)].home, BufferId(b)) = 1;
  }
  const std::function<void(int)> go = [&](int copies) {
    Plan plan;
    if (simulate(p, steps).cost.overlapped >= best) return;  // it only grows
    for (const Device& d : p.devices) plan.budgets.push_back(d.budget);
    plan.steps = with_frees(p, steps);
    plan.cost = {-1, -1, {}};
    const auto runs = [&](std::size_t o) { return !p.ops[OpId(o)].once || ran[o] != 0; };
    bool whole = true;
    for (std::size_t o = 0; o < p.ops.size(); ++o) whole = whole && runs(o);
    const Report r = whole ? verify(p, plan, 1) : Report{};
    if (whole && r.ok()) best = std::min(best, r.cost.overlapped);
    for (std::size_t o = 0; o < p.ops.size(); ++o) {
      for (std::size_t i = 0; i < p.ops[OpId(o)].impls.size() && ran[o] == 0; ++i) {
        const Impl& impl = p.ops[OpId(o)].impls[i];
        const bool can =
            std::all_of(impl.reads.begin(), impl.reads.end(), [&](BufferId b) { return at(impl.device, b) != 0; });
        if (!can) continue;
        const std::vector<char> before = there;
        for (const InPlace& pair : impl.in_place) at(impl.device, pair.in) = 0;
        for (const BufferId b : impl.writes) {
          for (std::size_t d = 0; d < p.devices.size() && p.ops[OpId(o)].once; ++d) at(DeviceId(d), b) = 0;
          at(impl.device, b) = 1;
        }
        ran[o] = 1;
        steps.emplace_back(Compute{OpId(o), static_cast<int>(i)});
        go(copies);
        steps.pop_back();
        ran[o] = 0;
        there = before;
      }
    }
    for (std::size_t b = 0; b < p.buffers.size() && copies > 0; ++b) {
      for (std::size_t d = 0; d < p.devices.size(); ++d) {
        const DeviceId from(d), to(1 - d);
        if (at(from, BufferId(b)) == 0 || at(to, BufferId(b)) != 0) continue;
        if (!copy_seconds(p, BufferId(b), from, to)) continue;
        at(to, BufferId(b)) = 1;
        steps.emplace_back(Copy{BufferId(b), from, to});
        go(copies - 1);
        steps.pop_back();
        at(to, BufferId(b)) = 0;
      }
    }
  };
  go(n_copies);
  return best;
}

TEST(OverlapBound, IsBelowEveryPlanAndCertified) {
  int n_above_zero = 0, n_met = 0;
  for (const bool host : {false, true}) {
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      const Problem p =
          random_problem(seed, {.n_ops = 4, .n_devices = host ? 1 : 2, .host = host, .versions = seed % 2 == 0});
      const LowerBound bound = overlap_bound(p);
      const Certified c = certify(p, bound, Objective::kOverlap);
      EXPECT_TRUE(c.ok) << "seed " << seed << ": " << c.reason;
      LowerBound more = bound;
      more.seconds = c.seconds * 1.01 + 0.01;
      EXPECT_FALSE(certify(p, more, Objective::kOverlap).ok);
      const Seconds best = by_trying(p, 2);
      EXPECT_LE(bound.seconds, best * (1 + 1e-12)) << "seed " << seed;
      n_above_zero += bound.seconds > 0;
      n_met += bound.seconds >= best * (1 - 1e-12);
    }
  }
  EXPECT_GT(n_above_zero, 8);
  EXPECT_GT(n_met, 1);
}

TEST(OverlapBound, AForgedTimeIsFoundOut) {
  int n_forged = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Problem p = random_problem(seed, {.n_ops = 6, .n_devices = 2});
    const LowerBound bound = overlap_bound(p);
    Json j = parse_json(bound.certificate, "certificate");
    if (!j.contains("earliest")) continue;
    ++n_forged;
    for (Json& entry : j["earliest"]) entry[3] = entry[3].get<std::int64_t>() * 2;
    LowerBound forged = bound;
    forged.certificate = j.dump();
    EXPECT_FALSE(certify(p, forged, Objective::kOverlap).ok) << "seed " << seed;
    EXPECT_FALSE(certify(p, floor_bound(p), Objective::kOverlap).ok);
  }
  EXPECT_GT(n_forged, 3);
}

/// Two chains of ops that may run on either device: together they take half of the serial time.
Problem two_chains(int length) {
  Problem p;
  p.name = "two chains";
  for (const char* name : {"a", "b"}) p.devices.push_back({.name = name, .budget = 1000});
  for (const int from : {0, 1}) p.links.push_back({DeviceId(from), DeviceId(1 - from), 0.5, 100.0});
  const BufferId x = p.buffers.push_back({.name = "x", .bytes = 10, .home = DeviceId(0)});
  for (const char* chain : {"p", "q"}) {
    BufferId last = x;
    for (int i = 0; i < length; ++i) {
      const std::string name = chain + std::to_string(i);
      const BufferId out = p.buffers.push_back({.name = name, .bytes = 10, .keep = i + 1 == length});
      Op op{name, false, {}};
      for (const int d : {0, 1})
        op.impls.push_back(
            {.name = "on" + std::to_string(d), .device = DeviceId(d), .seconds = 1, .reads = {last}, .writes = {out}});
      p.order.push_back(p.ops.push_back(std::move(op)));
      last = out;
    }
  }
  return p;
}

TEST(Overlap, TwoChainsRunSideBySide) {
  const Problem p = two_chains(8);
  Options o;
  EXPECT_EQ(make_plan(p, "neaptide", o).cost.overlapped, 16);
  o.objective = Objective::kOverlap;
  const Plan plan = make_plan(p, "neaptide", o);
  EXPECT_NEAR(plan.cost.overlapped, 8.6, 1e-9);  // the copy of x, then eight ops
  EXPECT_EQ(plan.lower_bound->seconds, 8);
  EXPECT_NEAR(*plan.gap, 0.075, 1e-9);
  EXPECT_EQ(parse_json(to_json(p, plan), "plan").at("objective"), "overlap");
}

// On one device nothing overlaps, so the proofs of serial seconds serve.
TEST(Overlap, OneDeviceIsSerial) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Problem p = random_problem(seed, {.n_ops = 8});
    Options o = tight(p, 0.4);
    const Plan serial = make_plan(p, "neaptide", o);
    o.objective = Objective::kOverlap;
    const Plan plan = make_plan(p, "neaptide", o);
    EXPECT_EQ(plan.steps, serial.steps);
    if (plan.infeasible) continue;
    EXPECT_EQ(plan.status, serial.status);
    EXPECT_TRUE(certify(with_options(p, o), *plan.lower_bound, Objective::kOverlap).ok);
  }
}

TEST(Overlap, IsNeverWorseThanTheSerialPlanAndOftenTheBestThereIs) {
  int n_feasible = 0, n_better = 0, n_best = 0;
  for (const bool host : {false, true}) {
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      Problem p =
          random_problem(seed, {.n_ops = 4, .n_devices = host ? 1 : 2, .host = host, .versions = seed % 2 == 0});
      Options o = tight(p, 0.5);
      const Plan serial = make_plan(p, "neaptide", o);
      o.objective = Objective::kOverlap;
      const Plan plan = make_plan(p, "neaptide", o);
      ASSERT_EQ(plan.steps.empty(), serial.steps.empty()) << "seed " << seed;
      if (plan.steps.empty()) continue;
      ++n_feasible;
      EXPECT_LE(plan.cost.overlapped, serial.cost.overlapped * (1 + 1e-12)) << "seed " << seed;
      EXPECT_LE(plan.lower_bound->seconds, plan.cost.overlapped * (1 + 1e-12));
      const Problem budgeted = with_options(p, o);
      EXPECT_TRUE(certify(budgeted, *plan.lower_bound, Objective::kOverlap).ok);
      n_better += plan.cost.overlapped < serial.cost.overlapped * (1 - 1e-9);
      const Seconds tried = by_trying(budgeted, 3);
      EXPECT_LE(plan.lower_bound->seconds, tried * (1 + 1e-12));
      n_best += plan.cost.overlapped <= tried * (1 + 1e-9);
    }
  }
  EXPECT_GT(n_feasible, 12);
  EXPECT_GT(n_better, 0);
  EXPECT_GE(n_best, n_feasible * 3 / 4);
}

TEST(Overlap, SameInputSameBytes) {
  const Problem p = random_problem(5, {.n_ops = 20, .n_devices = 2});
  Options o = tight(p, 0.6);
  o.objective = Objective::kOverlap;
  EXPECT_EQ(make_plan(p, "neaptide", o).steps, make_plan(p, "neaptide", o).steps);
}

TEST(Proof, IsInTheFileWhateverTheAnswer) {
  const Problem p = random_problem(3, {.n_ops = 6});
  Options o;
  o.budgets["d0"] = 1;
  const Plan none = make_plan(p, "neaptide", o);
  EXPECT_EQ(none.status, Status::kInfeasible);
  const Json j = parse_json(to_json(p, none), "plan");
  EXPECT_EQ(j.at("status"), "infeasible");
  EXPECT_TRUE(j.at("gap").is_null());
  EXPECT_GT(j.at("lower_bound").at("seconds").get<double>(), 0);  // what any plan costs, whatever the budget
  EXPECT_TRUE(certify(with_options(p, o), *none.lower_bound).ok);
  const Plan read = plan_from_json(p, j.dump(), "plan");
  EXPECT_EQ(read.lower_bound, none.lower_bound);
  EXPECT_EQ(read.infeasible, none.infeasible);
  EXPECT_FALSE(read.gap);
}

// Where the time ends a run that has proved nothing, the answer is not "infeasible".
TEST(Proof, LateIsNotInfeasible) {
  int n_late = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Problem p = random_problem(seed, {.n_ops = 30, .chain = true});
    Options o = tight(p, 0.0);
    o.time_limit = 0;
    const Plan late = make_plan(p, "neaptide", o);
    EXPECT_TRUE(late.lower_bound);
    o.budgets["d0"] = smallest_peak(p, DeviceId(0)).bytes - 1;
    EXPECT_EQ(make_plan(p, "neaptide", o).status, Status::kInfeasible);  // proved at once
    if (!late.steps.empty()) continue;
    ++n_late;
    EXPECT_EQ(late.status, Status::kTimeLimit);
    EXPECT_EQ(late.stopped_by, "time");
    EXPECT_FALSE(late.infeasible);
  }
  EXPECT_GT(n_late, 0);
}

}  // namespace
}  // namespace neaptide::plan
