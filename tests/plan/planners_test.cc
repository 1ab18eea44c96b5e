// What holds for every planner, over thousands of random problems.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "neaptide/base/errors.hpp"
#include "neaptide/plan/forced.hpp"
#include "neaptide/plan/planner.hpp"
#include "neaptide/plan/planners/griewank.hpp"
#include "neaptide/plan/simulate.hpp"
#include "neaptide/plan/verify.hpp"
#include "tests/plan/random_problem.hpp"
#include "tests/plan/try_plan.hpp"

namespace neaptide::plan {
namespace {

RandomProblem shape_of(int seed) {
  RandomProblem shape;
  shape.n_ops = 4 + seed % 7;
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
  int n_feasible = 0, n_answers = 0;
  for (int seed = 0; seed < 250; ++seed) {
    SCOPED_TRACE(seed);
    const Problem problem = random_problem(static_cast<std::uint64_t>(seed), shape_of(seed));
    const Options options = budget_of(problem, 0.4 + 0.1 * (seed % 7));
    const std::optional<Plan> found = try_plan(problem, GetParam(), options);  // verified, or throws
    if (!found) continue;
    const Plan& plan = *found;
    ++n_answers;
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
  if (n_answers == 0) GTEST_SKIP() << GetParam() << " is not built here";
  EXPECT_GT(n_feasible, 20);
}

TEST_P(EveryPlanner, SameInputSameBytes) {
  for (int seed = 0; seed < 20; ++seed) {
    const Problem problem = random_problem(static_cast<std::uint64_t>(seed), shape_of(seed));
    const Options options = budget_of(problem, 0.8);
    std::optional<Plan> a = try_plan(problem, GetParam(), options), b = try_plan(problem, GetParam(), options);
    ASSERT_EQ(a.has_value(), b.has_value());
    if (!a) continue;
    a->seconds_spent = b->seconds_spent = 0;
    EXPECT_EQ(to_json(problem, *a), to_json(problem, *b)) << "seed " << seed;
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

TEST(Planners, SwitchesOutOfRangeAreRefused) {
  const auto said = [](const char* planner, const char* name, const char* value) {
    Options options;
    options.switches[name] = value;
    return message(random_problem(1), planner, options);
  };
  EXPECT_EQ(said("griewank", "slots", "-1"), "switch 'slots' is '-1'; it must be 'auto' or a number from 0 to 1000000");
  EXPECT_EQ(said("griewank", "slots", "1.5"), "switch 'slots' is '1.5'; it must be a whole number");
  EXPECT_EQ(said("griewank", "slots", "3"), "no error");
  EXPECT_EQ(said("griewank", "slot", "3"), "planner 'griewank' has no switch 'slot'; did you mean 'slots'?");
  EXPECT_EQ(said("rotor", "levels", "5"), "switch 'levels' is '5'; it must be 'auto' or a number from 10 to 10000");
  EXPECT_EQ(said("rotor", "levels", "many"),
            "switch 'levels' is 'many'; it must be 'auto' or a number from 10 to 10000");
  EXPECT_EQ(said("rotor", "levels", "10000"), "no error");
  EXPECT_EQ(said("checkmate-lp", "threshold", "1.5"),
            "switch 'threshold' is '1.5'; it must be 'auto' or a number from 0 to 1");
  EXPECT_EQ(said("checkmate-lp", "threshold", "nan"),
            "switch 'threshold' is 'nan'; it must be 'auto' or a number from 0 to 1");
  EXPECT_EQ(said("chen-sqrt", "articulation", "yes"),
            "switch 'articulation' is 'yes'; it must be one of auto, off, on");
  EXPECT_EQ(said("dtr", "heuristic", ""), "switch 'heuristic' is ''; it must be one of local, neighbourhood");
}

/// A network as it is trained: layer i writes what the next one reads and a statistic, which a running one takes in
/// (once, in place); its gradients need its input and its output, and its weight is updated (once, in place) as soon as
/// they are there.
Problem trained_layers(int n) {
  Problem p;
  p.name = "trained";
  p.devices.push_back({.name = "d0"});
  const auto buffer = [&](const std::string& name, int i, Bytes bytes, bool home) {
    Buffer b{.name = fmt::format("{}{}", name, i), .bytes = bytes};
    if (home) b.home = DeviceId(0);
    b.keep = home;
    return p.buffers.push_back(b);
  };
  const auto op = [&](const std::string& name, int i, std::vector<BufferId> reads, std::vector<BufferId> writes,
                      bool once) {
    Impl impl{.name = "plain", .device = DeviceId(0), .seconds = 1};
    impl.reads = std::move(reads);
    impl.writes = std::move(writes);
    p.order.push_back(p.ops.push_back({.name = fmt::format("{}{}", name, i), .once = once, .impls = {impl}}));
  };
  std::vector<BufferId> value{buffer("x", 0, 1000, true)}, weight, statistic;
  for (int i = 0; i < n; ++i) {
    weight.push_back(buffer("w", i, 10, true));
    const BufferId running = buffer("running", i, 1, true);
    value.push_back(buffer("v", i, 1000, false));
    statistic.push_back(buffer("s", i, 1, false));
    op("layer", i, {value[value.size() - 2], weight.back()}, {value.back(), statistic.back()}, false);
    op("take_in", i, {running, statistic.back()}, {running}, true);
  }
  BufferId gradient = buffer("loss", 0, 1000, false);
  op("loss", 0, {value.back()}, {gradient}, false);
  for (int i = n - 1; i >= 0; --i) {
    const auto at = static_cast<std::size_t>(i);
    const BufferId mine = buffer("g", i, 1000, false), of_weight = buffer("gw", i, 10, false);
    op("back", i, {gradient, value[at], value[at + 1], weight[at], statistic[at]}, {mine, of_weight}, false);
    op("update", i, {weight[at], of_weight}, {weight[at]}, true);
    gradient = mine;
  }
  return p;
}

TEST(Planners, ClassicOnesRecomputeAcrossUpdatesInPlace) {
  const Problem p = trained_layers(16);
  ASSERT_THAT(check(p), testing::IsEmpty());
  for (const char* planner : {"chen-greedy", "chen-sqrt", "dtr", "griewank", "last", "neaptide", "rotor"}) {
    const Plan plan = make_plan(p, planner, budget_of(p, 0.6));
    ASSERT_FALSE(plan.steps.empty()) << planner;
    EXPECT_GT(plan.cost.seconds, once_each(p)) << planner;
    EXPECT_LT(plan.cost.seconds, (std::string_view(planner) == "last" ? 6 : 1.5) * once_each(p)) << planner;
  }
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

// Against the oracle: bound <= optimum <= cost for every planner, and an answer "infeasible" with its two budgets
// around the smallest feasible one.
TEST(Oracle, BoundsAndCostsLieAroundTheOptimum) {
  int n_compared = 0;
  for (int seed = 0; seed < 160; ++seed) {
    const Problem problem = random_problem(static_cast<std::uint64_t>(seed) + 5000, shape_of(seed));
    Options options = budget_of(problem, 0.5 + 0.1 * (seed % 6));
    const Plan any = make_plan(problem, "exhaustive", options);
    Options fixed_options = options;
    fixed_options.switches["order"] = "fixed";
    const Plan fixed = make_plan(problem, "exhaustive", fixed_options);
    if (fixed.status != Status::kInfeasible) {
      EXPECT_EQ(any.status, Status::kOptimal);
      EXPECT_LE(any.cost.seconds, fixed.cost.seconds);
    }
    for (const Planner& planner : planners()) {
      if (planner.name == "exhaustive") continue;
      SCOPED_TRACE(fmt::format("{} seed {}", planner.name, seed));
      const std::optional<Plan> found = try_plan(problem, planner.name, options);
      if (!found) continue;
      const Plan& plan = *found;
      if (plan.status == Status::kInfeasible) {
        if (any.status == Status::kInfeasible && any.infeasible->device == plan.infeasible->device) {
          EXPECT_LE(plan.infeasible->proved, any.infeasible->proved);
          EXPECT_GE(plan.infeasible->smallest, any.infeasible->smallest);
        }
        continue;
      }
      ASSERT_NE(any.status, Status::kInfeasible);
      EXPECT_GE(plan.cost.seconds, any.cost.seconds - 1e-9);
      const bool any_order = plan.lower_bound->valid_for == BoundScope::kAnyOrder;
      const Plan& optimum = any_order ? any : fixed;
      if (optimum.status == Status::kInfeasible) continue;
      EXPECT_LE(plan.lower_bound->seconds, optimum.cost.seconds + 1e-9);
      ++n_compared;
    }
  }
  EXPECT_GT(n_compared, 200);
}

TEST(Griewank, RevolveNeedsNoMoreStepsThanTheBestSplits) {
  constexpr int kMost = 40, kSlots = 6;
  const auto at = [](int i) { return static_cast<std::size_t>(i); };
  std::vector<std::vector<long long>> best(kMost + 1, std::vector<long long>(kSlots + 1, 0));
  for (int l = 2; l <= kMost; ++l) {
    best[at(l)][0] = static_cast<long long>(l) * (l - 1) / 2;
    for (int s = 1; s <= kSlots; ++s) {
      long long least = best[at(l)][0];
      for (int k = 1; k < l; ++k) least = std::min(least, k + best[at(l - k)][at(s - 1)] + best[at(k)][at(s)]);
      best[at(l)][at(s)] = least;
      EXPECT_EQ(revolve_cost(l, s), least) << l << " steps, " << s << " slots";
    }
  }
}

/// A training chain of n equal layers: forward ops, a loss, and gradients that read the layer's input.
Problem equal_chain(int n) {
  Problem p;
  p.name = "chain";
  p.devices.push_back({.name = "d"});
  std::vector<BufferId> a;
  const auto buffer = [&](const std::string& name) { return p.buffers.push_back({.name = name, .bytes = 10}); };
  const auto op = [&](const std::string& name, bool once, std::vector<BufferId> reads, BufferId out) {
    const Impl impl{.name = "i", .device = DeviceId(0), .seconds = 1, .reads = std::move(reads), .writes = {out}};
    p.order.push_back(p.ops.push_back({.name = name, .once = once, .impls = {impl}}));
  };
  for (int i = 0; i < n; ++i) {
    a.push_back(buffer(fmt::format("a{}", i)));
    op(fmt::format("f{}", i), false, i == 0 ? std::vector<BufferId>{} : std::vector{a[static_cast<std::size_t>(i) - 1]},
       a.back());
  }
  BufferId gradient = a.back();
  for (int i = n - 1; i >= 0; --i) {
    const BufferId g = buffer(fmt::format("g{}", i));
    std::vector<BufferId> reads{gradient};
    if (i > 0) reads.push_back(a[static_cast<std::size_t>(i) - 1]);
    op(fmt::format("b{}", i), i == 0, reads, g);
    gradient = g;
  }
  return p;
}

TEST(Griewank, FitsAChainWhereKeepAllDoesNot) {
  const Problem problem = equal_chain(40);
  Options options;
  options.budgets["d"] = 100;
  EXPECT_EQ(make_plan(problem, "keep-all", options).status, Status::kInfeasible);
  const Plan plan = make_plan(problem, "griewank", options);
  ASSERT_EQ(plan.status, Status::kFeasible);
  EXPECT_LE(plan.cost.seconds, 80 + 100);
}

// On a chain the dynamic programme must be at least as good as the simple ways, and equal to the oracle on small ones.
TEST(Rotor, IsBestOnChains) {
  const Problem problem = equal_chain(30);
  for (Bytes budget : {80, 100, 120, 160, 200, 300}) {
    Options options;
    options.budgets["d"] = budget;
    const Plan rotor = make_plan(problem, "rotor", options);
    ASSERT_NE(rotor.status, Status::kInfeasible) << budget;
    for (const char* other : {"chen-sqrt", "chen-greedy", "griewank", "dtr"}) {
      const Plan plan = make_plan(problem, other, options);
      if (plan.status == Status::kInfeasible) continue;
      EXPECT_LE(rotor.cost.seconds, plan.cost.seconds) << other << " at " << budget;
    }
  }
  const Problem small = equal_chain(6);
  for (Bytes budget = 30; budget <= 80; budget += 10) {
    Options options;
    options.budgets["d"] = budget;
    const Plan oracle = make_plan(small, "exhaustive", options), rotor = make_plan(small, "rotor", options);
    if (oracle.status == Status::kInfeasible || rotor.status == Status::kInfeasible) continue;
    EXPECT_DOUBLE_EQ(rotor.cost.seconds, oracle.cost.seconds) << budget;
  }
}

// Every sequence of chen and last has the shape of checkmate's stages, so its optimum cannot be worse; and with one
// implementation and nothing recomputed up to the turn, monet is checkmate with fewer runs.
TEST(Checkmate, IsAtLeastAsGoodAsWhatItsRulesContain) {
  if (!try_plan(random_problem(1), "checkmate", {})) GTEST_SKIP() << "checkmate is not built here";
  RandomProblem shape;
  shape.implementations = shape.optional_outputs = shape.ways = false;
  int n_compared = 0;
  for (int seed = 0; seed < 60; ++seed) {
    shape.n_ops = 6 + seed % 7;
    shape.chain = seed % 3 == 0;
    const Problem problem = random_problem(static_cast<std::uint64_t>(seed) + 900, shape);
    const Options options = budget_of(problem, 0.6 + 0.1 * (seed % 4));
    const Plan checkmate = make_plan(problem, "checkmate", options);
    for (const char* other : {"chen-greedy", "chen-sqrt", "last", "checkmate-lp", "monet"}) {
      SCOPED_TRACE(fmt::format("{} seed {}", other, seed));
      const Plan plan = make_plan(problem, other, options);
      if (plan.status == Status::kInfeasible) continue;
      ASSERT_NE(checkmate.status, Status::kInfeasible);
      EXPECT_LE(checkmate.cost.seconds, plan.cost.seconds + 1e-6);
      ++n_compared;
    }
  }
  EXPECT_GT(n_compared, 20);
}

TEST(Checkmate, IsOptimalOnSmallChains) {
  const Problem problem = equal_chain(6);
  for (Bytes budget = 30; budget <= 80; budget += 10) {
    Options options;
    options.budgets["d"] = budget;
    const std::optional<Plan> checkmate = try_plan(problem, "checkmate", options);
    if (!checkmate) GTEST_SKIP() << "checkmate is not built here";
    EXPECT_NEAR(checkmate->cost.seconds, make_plan(problem, "exhaustive", options).cost.seconds, 1e-9) << budget;
  }
}

// A value too large to stay is paged to the host and back: cheaper here than computing it again.
TEST(Poet, PagesWhereThatIsCheaper) {
  const char* text = R"({"format": "neaptide.problem", "version": 1, "name": "paging",
    "devices": [{"name": "d", "budget": 20}, {"name": "host"}],
    "links": [{"from": "d", "to": "host", "latency": 1, "bytes_per_second": 10},
              {"from": "host", "to": "d", "latency": 1, "bytes_per_second": 10}],
    "buffers": [{"name": "a", "bytes": 10}, {"name": "b", "bytes": 15}, {"name": "c", "bytes": 5},
                {"name": "s", "bytes": 1}],
    "ops": [{"name": "a", "impls": [{"name": "i", "device": "d", "seconds": 50, "reads": [], "writes": ["a"]}]},
            {"name": "b", "impls": [{"name": "i", "device": "d", "seconds": 1, "reads": [], "writes": ["b"]}]},
            {"name": "c", "impls": [{"name": "i", "device": "d", "seconds": 1, "reads": ["b"], "writes": ["c"]}]},
            {"name": "s", "once": true,
             "impls": [{"name": "i", "device": "d", "seconds": 1, "reads": ["a", "c"], "writes": ["s"]}]}]})";
  const Problem problem = problem_from_json(text, "paging");
  const std::optional<Plan> plan = try_plan(problem, "poet", {});
  if (!plan) GTEST_SKIP() << "poet is not built here";
  EXPECT_DOUBLE_EQ(plan->cost.seconds, 53 + 2 + 2);
  Options fixed;
  fixed.switches["order"] = "fixed";
  EXPECT_DOUBLE_EQ(make_plan(problem, "exhaustive", fixed).cost.seconds, 53 + 2 + 2);
}

TEST(Exhaustive, SaysWhatIsTooLarge) {
  const Problem problem = random_problem(1, {.n_ops = 17});
  EXPECT_THAT(
      message(problem, "exhaustive", {}),
      ::testing::HasSubstr("planner 'exhaustive' takes at most 16 ops and 64 buffers x devices; 'random' has 17"));
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
