// Bound <= optimum <= plan, over random problems with every feature of the format. The optimum is the oracle's.
// A few hundred problems; NEAPTIDE_PROBLEMS=5000 in the environment (the long tests) asks for more of each kind.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "neaptide/base/errors.hpp"
#include "neaptide/plan/bounds.hpp"
#include "neaptide/plan/certify.hpp"
#include "neaptide/plan/forced.hpp"
#include "neaptide/plan/multi_cut.hpp"
#include "neaptide/plan/planner.hpp"
#include "neaptide/plan/simulate.hpp"
#include "neaptide/plan/verify.hpp"
#include "tests/plan/random_problem.hpp"
#include "tests/plan/try_plan.hpp"

namespace neaptide::plan {
namespace {

constexpr double kSame = 1e-9;  // relative, of sums of seconds

struct Kind {
  const char* name;
  RandomProblem shape;
};

/// One kind per feature, and everything together.
std::vector<Kind> kinds() {
  RandomProblem plain;
  plain.n_ops = 7;
  plain.implementations = plain.in_place = plain.homes = plain.versions = plain.ways = plain.optional_outputs = false;
  std::vector<Kind> out{{"plain", plain}};
  const auto add = [&](const char* name, const std::function<void(RandomProblem&)>& change) {
    Kind kind{name, plain};
    change(kind.shape);
    out.push_back(std::move(kind));
  };
  add("chain", [](RandomProblem& s) { s.n_ops = 10, s.chain = true; });
  add("implementations", [](RandomProblem& s) { s.implementations = s.optional_outputs = true; });
  add("in place", [](RandomProblem& s) { s.implementations = s.in_place = true; });
  add("weights", [](RandomProblem& s) { s.homes = s.versions = true; });
  add("ways", [](RandomProblem& s) { s.ways = true, s.once = false; });
  add("devices", [](RandomProblem& s) { s.n_ops = 5, s.n_devices = 2, s.implementations = s.copies = true; });
  add("paging", [](RandomProblem& s) { s.n_ops = 5, s.host = s.homes = s.copies = true; });
  add("long copies", [](RandomProblem& s) {
    s.n_ops = 6, s.host = s.homes = s.copies = true;
    s.slowest_link = 60, s.most_seconds = 2;
  });
  add("zeros", [](RandomProblem& s) { s.zeros = s.implementations = s.homes = true; });
  add("ties", [](RandomProblem& s) { s.most_bytes = 1, s.most_seconds = 0, s.homes = true; });
  add("huge", [](RandomProblem& s) {
    s.byte_unit = 50'000'000'000'000, s.second_unit = 1e14, s.zeros = s.implementations = s.homes = true;
  });
  add("everything", [](RandomProblem& s) { s = {.n_ops = 6, .host = true, .copies = true, .zeros = true}; });
  return out;
}

/// Between the floor of every plan and the keep-all peak, on the first device.
Options budget_of(const Problem& p, int seed) {
  const Bytes low = smallest_peak(p, DeviceId(0)).bytes;
  const Bytes high = std::max(low, simulate(p, keep_all_steps(p)).peak[DeviceId(0)]);
  Options o;
  o.budgets[p.devices[DeviceId(0)].name] = low + (high - low) / 5 * (seed % 6);
  o.effort = 20'000;
  return o;
}

/// The oracle's answers; seconds are infinite where nothing fits.
struct Optimum {
  Seconds any_order = std::numeric_limits<double>::infinity();
  Seconds this_order = std::numeric_limits<double>::infinity();
  std::optional<Infeasible> infeasible;
  Seconds of(BoundScope scope) const { return scope == BoundScope::kAnyOrder ? any_order : this_order; }
};

Optimum optimum_of(const Problem& p, const Options& given) {
  Options o;
  o.budgets = given.budgets;
  Optimum out;
  const Plan any = make_plan(p, "exhaustive", o);
  out.infeasible = any.infeasible;
  if (!any.infeasible) out.any_order = any.cost.seconds;
  o.switches["order"] = "fixed";
  const Plan fixed = make_plan(p, "exhaustive", o);
  if (!fixed.infeasible) out.this_order = fixed.cost.seconds;
  EXPECT_LE(out.any_order, out.this_order * (1 + kSame));
  return out;
}

/// Runs `test` on n problems of every kind.
void for_all(int n, const std::function<void(const Problem&, const Options&, int seed)>& test) {
  for (const Kind& kind : kinds()) {
    for (int seed = 0; seed < n && !::testing::Test::HasFatalFailure(); ++seed) {
      SCOPED_TRACE(fmt::format("{}, seed {}", kind.name, seed));
      const Problem p = random_problem(static_cast<std::uint64_t>(seed), kind.shape);
      ASSERT_EQ(check(p), std::vector<std::string>{});
      test(p, budget_of(p, seed), seed);
    }
  }
}

void expect_certified(const Problem& bounded, const LowerBound& bound, const Optimum& optimum) {
  const Certified c = certify(bounded, bound);
  EXPECT_TRUE(c.ok) << c.reason;
  EXPECT_GE(c.seconds, bound.seconds * (1 - kSame));
  EXPECT_LE(bound.seconds, optimum.of(bound.valid_for) * (1 + kSame));
}

// Every instant, in both scopes, after each evaluation.
TEST(Properties, EveryBoundIsCertifiedAndBelowTheOptimum) {
  int n_above_floor = 0, n_all = 0;
  for_all(n_problems(12), [&](const Problem& p, const Options& o, int) {
    const Problem bounded = with_options(p, o);
    const Optimum optimum = optimum_of(p, o);
    const LowerBound floor = floor_bound(bounded);
    expect_certified(bounded, floor, optimum);
    for (const BoundScope scope : {BoundScope::kAnyOrder, BoundScope::kThisOrder}) {
      CutBounds cuts(bounded, DeviceId(0), scope);
      for (const OpId op : cuts.promising()) {
        const CutBounds::Cut cut = cuts.evaluate(op);
        expect_certified(bounded, cuts.proved(), optimum);
        EXPECT_LE(cut.infeasible ? floor.seconds : cut.seconds, optimum.of(scope) * (1 + kSame));
        ++n_all;
        n_above_floor += cuts.proved().seconds > floor.seconds * (1 + kSame);
      }
      EXPECT_TRUE(!cuts.infeasible() || std::isinf(optimum.of(scope)));
    }
  });
  EXPECT_GT(n_above_floor, n_all / 20);
}

// Several instants together: at least the floor, certified, never above the optimum, wherever they begin.
TEST(Properties, SeveralInstantsAreCertifiedAndBelowTheOptimum) {
  int n_above_floor = 0, n_met = 0, n_all = 0;
  for_all(n_problems(12), [&](const Problem& p, const Options& o, int seed) {
    const Problem bounded = with_options(p, o);
    const Optimum optimum = optimum_of(p, o);
    for (const BoundScope scope : {BoundScope::kAnyOrder, BoundScope::kThisOrder}) {
      const std::vector<OpId> instants = CutBounds(bounded, DeviceId(0), scope).promising();
      if (instants.empty() || std::isinf(optimum.of(scope))) continue;
      MultiCut cuts(bounded, DeviceId(0), scope);
      MultiCut::Ways ways;
      ways.work = 20'000;
      ways.most_instants = 8;
      ways.improve = [&](const std::vector<Compute>&) { return optimum.of(scope); };
      const OpId first = instants[static_cast<std::size_t>(seed) % instants.size()];
      const LowerBound bound = cuts.prove(first, optimum.of(scope), ways);
      EXPECT_TRUE(bound.valid_for == scope || bound.valid_for == BoundScope::kAnyOrder);
      expect_certified(bounded, bound, optimum);
      const Seconds floor = floor_bound(bounded).seconds;
      EXPECT_GE(bound.seconds, floor * (1 - kSame));
      ++n_all;
      n_above_floor += bound.seconds > floor * (1 + kSame);
      n_met += bound.seconds >= optimum.of(scope) * (1 - kSame);
    }
  });
  EXPECT_GT(n_above_floor, n_all / 20);
  EXPECT_GT(n_met, n_all / 3);
}

// What holds for every order is no more than what holds for the given one.
TEST(Properties, TheBoundOfAnyOrderIsAtMostThatOfThisOrder) {
  int n_below = 0;
  for_all(n_problems(12), [&](const Problem& p, const Options& o, int) {
    const Problem bounded = with_options(p, o);
    CutBounds any(bounded, DeviceId(0), BoundScope::kAnyOrder), fixed(bounded, DeviceId(0), BoundScope::kThisOrder);
    for (const OpId op : fixed.promising()) {
      const CutBounds::Cut a = any.evaluate(op), f = fixed.evaluate(op);
      if (f.infeasible) continue;
      if (a.infeasible) {  // prices may end before an instant at which nothing fits is recognised
        EXPECT_TRUE(std::isinf(optimum_of(p, o).this_order)) << "at " << p.ops[op].name;
        continue;
      }
      EXPECT_LE(a.seconds, f.seconds * (1 + kSame)) << "at " << p.ops[op].name;
      n_below += a.seconds < f.seconds * (1 - kSame);
    }
  });
  EXPECT_GT(n_below, 0);
}

TEST(Properties, EveryPlanLiesAboveTheOptimumAndItsBoundBelow) {
  int n_compared = 0;
  for_all(n_problems(8), [&](const Problem& p, const Options& o, int) {
    const Optimum optimum = optimum_of(p, o);
    for (const Planner& planner : planners()) {
      if (planner.name == "exhaustive") continue;
      SCOPED_TRACE(planner.name);
      const std::optional<Plan> plan = try_plan(p, planner.name, o);  // verified, or throws
      if (!plan) continue;
      if (plan->infeasible) {
        EXPECT_LE(plan->infeasible->proved, plan->infeasible->smallest);
        if (optimum.infeasible && optimum.infeasible->device == plan->infeasible->device) {
          EXPECT_LE(plan->infeasible->proved, optimum.infeasible->smallest);
        }
        continue;
      }
      EXPECT_GE(plan->cost.seconds, optimum.any_order * (1 - kSame));
      ASSERT_TRUE(plan->lower_bound.has_value());
      expect_certified(with_options(p, o), *plan->lower_bound, optimum);
      if (plan->status == Status::kOptimal) {
        EXPECT_NEAR(plan->cost.seconds, optimum.of(plan->lower_bound->valid_for), kSame * plan->cost.seconds);
      }
      ++n_compared;
    }
  });
  EXPECT_GT(n_compared, 500);
}

// What it misses: an order that several ops must take at once, at the smallest budgets.
TEST(Properties, TheDefaultPlannerNearlyAlwaysFindsTheOptimum) {
  int n = 0, n_found = 0, n_optimal = 0;
  for_all(n_problems(12), [&](const Problem& p, const Options& o, int) {
    const Optimum optimum = optimum_of(p, o);
    if (std::isinf(optimum.any_order)) return;
    const Plan plan = make_plan(p, "neaptide", o);
    ++n;
    n_found += !plan.infeasible.has_value();
    n_optimal += !plan.infeasible && plan.cost.seconds <= optimum.any_order * (1 + kSame);
  });
  EXPECT_GE(n_found, n * 97 / 100) << n;
  EXPECT_GE(n_optimal, n * 95 / 100) << n;
}

TEST(Properties, TheSameSeedGivesTheSameBytes) {
  for_all(n_problems(3), [&](const Problem& p, const Options& given, int seed) {
    for (const int threads : {1, 2}) {
      Options o = given;
      o.threads = threads;
      o.seed = static_cast<std::uint64_t>(seed) + 1;
      Plan a = make_plan(p, "neaptide", o), b = make_plan(p, "neaptide", o);
      a.seconds_spent = b.seconds_spent = 0;
      EXPECT_EQ(to_json(p, a), to_json(p, b)) << threads << " threads";
    }
  });
}

TEST(Properties, AGapThatIsGoodEnoughEndsTheSearch) {
  int n_stopped = 0;
  for_all(n_problems(6), [&](const Problem& p, const Options& given, int) {
    Options o = given;
    o.gap = 0.5;
    const Plan plan = make_plan(p, "neaptide", o);
    if (plan.infeasible) return;
    if (plan.stopped_by == "gap") {
      EXPECT_LE(*plan.gap, o.gap * (1 + kSame));
      ++n_stopped;
    }
    EXPECT_TRUE(certify(with_options(p, o), *plan.lower_bound).ok);
  });
  EXPECT_GT(n_stopped, 0);
}

// A plan that is not proved the best says what ended the search for a better one.
TEST(Properties, EitherProvedOrStoppedBySomething) {
  int n_proved = 0, n_spent = 0;
  for_all(n_problems(6), [&](const Problem& p, const Options& o, int seed) {
    const Plan plan = make_plan(p, "neaptide", o);
    if (plan.infeasible) return;
    EXPECT_EQ(plan.stopped_by, plan.status == Status::kOptimal ? "" : "effort") << "seed " << seed;
    n_proved += plan.status == Status::kOptimal ? 1 : 0;
    n_spent += plan.stopped_by == "effort" ? 1 : 0;
  });
  EXPECT_GT(n_proved, 0);
  EXPECT_GT(n_spent, 0);
}

TEST(Properties, TheProgressCallbackEndsTheSearch) {
  int n_interrupted = 0;
  for_all(n_problems(20), [&](const Problem& p, const Options& given, int seed) {
    Options o = given;
    Seconds best = std::numeric_limits<double>::infinity(), bound = 0;
    int calls = 0;
    o.progress = [&](const Progress& now) {
      EXPECT_LE(now.incumbent, best * (1 + kSame)) << "the incumbent got worse";
      EXPECT_GE(now.bound, bound * (1 - kSame)) << "the bound got worse";
      best = now.incumbent;
      bound = now.bound;
      return ++calls < 1 + seed % 3;
    };
    const Plan plan = make_plan(p, "neaptide", o);
    if (plan.infeasible) return;
    n_interrupted += plan.stopped_by == "interrupt";
    EXPECT_LE(plan.cost.seconds, best * (1 + kSame));
    EXPECT_TRUE(certify(with_options(p, o), *plan.lower_bound).ok);
  });
  EXPECT_GT(n_interrupted, 0);
}

}  // namespace
}  // namespace neaptide::plan
