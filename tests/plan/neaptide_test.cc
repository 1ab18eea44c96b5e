// The default planner: its parts against naive models, and its answers on small problems of every kind.
#include "neaptide/plan/planners/neaptide.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "neaptide/base/errors.hpp"
#include "neaptide/plan/bounds.hpp"
#include "neaptide/plan/certify.hpp"
#include "neaptide/plan/forced.hpp"
#include "neaptide/plan/planner.hpp"
#include "neaptide/plan/planners/neaptide_search.hpp"
#include "neaptide/plan/simulate.hpp"
#include "neaptide/plan/verify.hpp"
#include "tests/plan/random_problem.hpp"
#include "tests/plan/tight.hpp"

namespace neaptide::plan {
namespace {

using tide::Model;
using tide::Random;
using tide::Schedule;
using tide::Search;
using tide::Timeline;

std::vector<RandomProblem> kinds() {
  return {{.n_ops = 7},
          {.n_ops = 9, .implementations = false, .homes = false},
          {.n_ops = 8, .n_devices = 2},
          {.n_ops = 8, .host = true}};
}

/// Two values on d0, and a last op that reads both and writes what may end anywhere: on d0, where it is beyond the
/// budget, or on d1.
Problem last_op_fits_elsewhere() {
  Problem p;
  p.name = "elsewhere";
  p.devices.push_back({.name = "d0", .budget = 30});
  p.devices.push_back({.name = "d1"});
  p.links.push_back({.from = DeviceId(0), .to = DeviceId(1), .latency = 1, .bytes_per_second = 10});
  const BufferId a = p.buffers.push_back({.name = "a", .bytes = 6}), b = p.buffers.push_back({.name = "b", .bytes = 7}),
                 c = p.buffers.push_back({.name = "c", .bytes = 19, .keep = true});
  const auto op = [&](const char* name, std::vector<BufferId> reads, BufferId write) {
    Impl impl{.name = "on d0", .device = DeviceId(0), .seconds = 1};
    impl.reads = std::move(reads);
    impl.writes = {write};
    p.order.push_back(p.ops.push_back({.name = name, .impls = {impl}}));
  };
  op("a", {}, a);
  op("b", {a}, b);
  op("c", {a, b}, c);
  std::vector<Impl>& impls = p.ops[OpId(2)].impls;
  impls.push_back(impls.front());
  impls.back().name = "on d1";
  impls.back().device = DeviceId(1);
  return p;
}

TEST(Neaptide, AnOpThatFitsOnOneDeviceOnlyRunsThere) {
  const Problem p = last_op_fits_elsewhere();
  const Plan plan = make_plan(p, "neaptide", {});
  ASSERT_FALSE(plan.steps.empty()) << plan.infeasible->advice;
  EXPECT_EQ(plan.peak[DeviceId(0)], 13);
}

TEST(NeaptideTimeline, MatchesAPlainVector) {
  Random random(3);
  Timeline t(1);
  std::vector<std::pair<int, Bytes>> plain;
  for (int i = 0; i < 300; ++i) {
    t.push_back(i);
    plain.emplace_back(i, 0);
  }
  int fresh = 300;
  for (int k = 0; k < 3000; ++k) {
    const int n = static_cast<int>(plain.size());
    const int i = random.below(n), j = i + random.below(n - i);
    switch (random.below(3)) {
      case 0: {
        const Bytes add = random.below(100) - 50;
        t.add(0, plain[i].first, plain[j].first, add);
        for (int x = i; x <= j; ++x) plain[x].second += add;
        break;
      }
      case 1:
        t.insert_before(fresh, plain[i].first, {Bytes{random.below(50)}});
        plain.insert(plain.begin() + i, {fresh, t.load(0, fresh)});
        ++fresh;
        break;
      default:
        if (n < 100) break;
        t.erase(plain[i].first);
        plain.erase(plain.begin() + i);
    }
    const auto top =
        std::max_element(plain.begin(), plain.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    ASSERT_EQ(t.highest(0), top->second);
    ASSERT_EQ(t.highest_node(0), top->first);
  }
  std::vector<int> expected;
  for (const auto& [node, load] : plain) {
    ASSERT_EQ(t.load(0, node), load);
    expected.push_back(node);
  }
  EXPECT_EQ(t.nodes(), expected);
}

/// Peak of a schedule by the rules.
Bytes replayed_peak(const Problem& p, const Model& m, const tide::Sequence& sequence) {
  std::vector<Step> steps;
  for (const int a : sequence.actions) steps.push_back(m.step(a));
  return simulate(p, with_frees(p, steps)).peak[DeviceId(0)];
}

TEST(NeaptideSchedule, LoadMatchesTheReplayAndUndoRestoresIt) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Problem p = random_problem(seed, {.n_ops = 12});
    ASSERT_EQ(check(p), std::vector<std::string>{});
    p.devices[DeviceId(0)].budget = 1000;
    const Model m(p);
    const tide::Sequence start = tide::starting_actions(m);
    Schedule s(m, start);
    Random random(seed);
    const Bytes fixed = 1000 - m.limit[0];
    EXPECT_EQ(s.time().highest(0) + fixed, replayed_peak(p, m, start)) << "seed " << seed;
    for (int k = 0; k < 60; ++k) {
      const auto mark = s.mark();
      const double before = s.seconds();
      const auto nodes = s.time().nodes();
      const int at = nodes[1 + random.below(static_cast<int>(nodes.size()) - 1)];
      const int action = random.below(static_cast<int>(m.actions.size()));
      if (!m.actions[action].once) s.insert(action, at);
      if (!s.sound_since(mark) || !s.sound()) {
        s.undo(mark);
        EXPECT_EQ(s.seconds(), before);
      }
      ASSERT_TRUE(s.sound());
      ASSERT_EQ(s.time().highest(0) + fixed, replayed_peak(p, m, s.sequence())) << "seed " << seed;
    }
    s.undo(0);
    EXPECT_EQ(s.sequence().actions, start.actions);
  }
}

TEST(Neaptide, PlansAreLegalAndBoundsAreCertified) {
  int n_feasible = 0, n_all = 0;
  for (const RandomProblem& kind : kinds()) {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      const Problem p = random_problem(seed, kind);
      ASSERT_EQ(check(p), std::vector<std::string>{});
      for (const double part : {0.0, 0.3, 0.7}) {
        Options o = tight(p, part);
        o.effort = 60'000;
        const Plan plan = make_plan(p, "neaptide", o);  // throws unless plan::verify accepts it
        ++n_all;
        if (plan.infeasible) continue;
        ++n_feasible;
        const Certified c = certify(with_options(p, o), *plan.lower_bound);
        EXPECT_TRUE(c.ok) << c.reason << " seed " << seed;
        EXPECT_LE(plan.lower_bound->seconds, plan.cost.seconds * (1 + 1e-12));
      }
    }
  }
  EXPECT_GT(n_feasible, n_all / 2);
}

// The oracle knows every legal sequence: no bound above it, no plan below it, and it finds what we find.
TEST(Neaptide, TheOptimumLiesBetweenBoundAndPlan) {
  int n_optimal = 0, n_feasible = 0;
  for (const RandomProblem& kind : {RandomProblem{.n_ops = 5}, RandomProblem{.n_ops = 5, .n_devices = 2}}) {
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      const Problem p = random_problem(seed, kind);
      Options o = tight(p, 0.5);
      const Plan plan = make_plan(p, "neaptide", o);
      o.effort = 0;
      const Plan best = make_plan(p, "exhaustive", o);
      if (best.infeasible) {
        EXPECT_TRUE(plan.infeasible) << "seed " << seed;
        continue;
      }
      if (plan.infeasible) continue;
      ++n_feasible;
      EXPECT_LE(plan.lower_bound->seconds, best.cost.seconds * (1 + 1e-12)) << "seed " << seed;
      EXPECT_GE(plan.cost.seconds, best.cost.seconds * (1 - 1e-12)) << "seed " << seed;
      if (plan.cost.seconds <= best.cost.seconds * (1 + 1e-12)) ++n_optimal;
    }
  }
  EXPECT_GT(n_optimal, n_feasible / 2);
}

TEST(Neaptide, TheSameInputGivesTheSamePlan) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Problem p = random_problem(seed, {.n_ops = 20});
    Plan a = make_plan(p, "neaptide", tight(p, 0.3));
    Plan b = make_plan(p, "neaptide", tight(p, 0.3));
    a.seconds_spent = b.seconds_spent = 0;
    EXPECT_EQ(to_json(p, a), to_json(p, b));
  }
}

TEST(Neaptide, EverySwitchMayBeTurnedOff) {
  for (const char* name : {"anneal", "blocks", "bound", "chain-recompute", "contiguous", "implementations", "merge",
                           "multi-cut", "order", "paging", "portfolio", "prune", "shake", "spare"}) {
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      const Problem p = random_problem(seed, {.n_ops = 9, .host = seed % 2 == 0});
      Options o = tight(p, 0.8);
      o.switches[name] = "off";
      const Plan plan = make_plan(p, "neaptide", o);
      if (plan.infeasible) continue;
      EXPECT_TRUE(certify(with_options(p, o), *plan.lower_bound).ok) << name;
    }
  }
  Options o;
  o.switches["prune"] = "maybe";
  EXPECT_THROW(make_plan(random_problem(1, {}), "neaptide", o), UserError);
}

/// `layers` layers of four ops and, in reverse, four ops back for each, which read what the layer made.
Problem layered(int layers) {
  Problem p;
  p.devices.push_back({"d", std::nullopt, 1});
  BufferId last = p.buffers.push_back({"x", 8, DeviceId(0), false, false});
  const auto add = [&](double seconds, std::vector<BufferId> reads, bool back) {
    const std::string name = "o" + std::to_string(p.ops.size());
    const BufferId out = p.buffers.push_back({name, static_cast<Bytes>(seconds), std::nullopt, false, false});
    Impl i;
    i.name = "i";
    i.device = DeviceId(0);
    i.seconds = seconds;
    i.reads = std::move(reads);
    i.writes = {out};
    p.order.push_back(p.ops.push_back({name, back, {std::move(i)}}));
    return out;
  };
  std::vector<BufferId> made;
  for (int l = 0; l < layers; ++l) {
    for (int k = 1; k <= 4; ++k) made.push_back(last = add(k, {last}, false));
  }
  for (auto it = made.rbegin(); it != made.rend(); ++it) {
    last = add(10 + static_cast<double>((made.rend() - it) % 4),
               it == made.rbegin() ? std::vector{last} : std::vector{*it, last}, true);
  }
  p.buffers[last].keep = true;
  return p;
}

// The first device has no budget, and the second too small a one.
TEST(Neaptide, SaysWhichDeviceLacksRoom) {
  Problem p = layered(2);
  p.devices.push_back({"e", 1, 1});
  for (std::size_t o = 0; o < p.ops.size(); ++o) p.ops[OpId(o)].impls[0].device = DeviceId(1);
  p.buffers[BufferId(0)].home = DeviceId(1);
  Options o;
  o.effort = 1000;
  const Plan plan = make_plan(p, "neaptide", o);
  ASSERT_TRUE(plan.infeasible.has_value());
  EXPECT_EQ(plan.infeasible->device, DeviceId(1));
}

TEST(Neaptide, SmallestBudgetCanBeMet) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Problem p = random_problem(seed, {.n_ops = 8});
    Options o = tight(p, 1.0);
    const Bytes least = smallest_budget(p, o);
    EXPECT_GE(least, smallest_peak(p, DeviceId(0)).bytes);
    o.budgets["d0"] = least;
    EXPECT_FALSE(make_plan(p, "neaptide", o).infeasible.has_value()) << "seed " << seed;
  }
}

TEST(Neaptide, OrderOffKeepsTheFirstRunsInOrder) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const Problem p = random_problem(seed, {.n_ops = 14, .implementations = false});
    Options o = tight(p, 0.5);
    o.switches["order"] = "off";
    const Plan plan = make_plan(p, "neaptide", o);
    std::vector<int> position(p.ops.size());
    for (std::size_t i = 0; i < p.order.size(); ++i) position[p.order[i].index()] = static_cast<int>(i);
    std::vector<char> ran(p.ops.size());
    int last = -1;
    for (const Step& step : plan.steps) {
      const auto* c = std::get_if<Compute>(&step);
      if (c == nullptr || ran[c->op.index()]) continue;
      ran[c->op.index()] = 1;
      EXPECT_LT(last, position[c->op.index()]);
      last = position[c->op.index()];
    }
  }
}

/// x -> a -> b -> c and back: the optimum at 30 bytes recomputes a and b for the last two steps.
Problem chain() {
  Problem p;
  p.devices.push_back({"d", 40, 1});
  for (const char* name : {"a", "b", "c", "gc", "gb", "ga"})
    p.buffers.push_back({name, 10, std::nullopt, false, false});
  const auto op = [&](const char* name, std::vector<int> reads, int write, bool once) {
    Impl i{.name = "i",
           .device = DeviceId(0),
           .seconds = 1,
           .joules = {},
           .workspace = 0,
           .reads = {},
           .writes = {BufferId(write)},
           .in_place = {}};
    for (const int r : reads) i.reads.emplace_back(r);
    p.order.push_back(p.ops.push_back({name, once, {i}}));
  };
  op("a", {}, 0, false);
  op("b", {0}, 1, false);
  op("c", {1}, 2, false);
  op("gc", {2, 1}, 3, false);
  op("gb", {3, 0}, 4, false);
  op("ga", {4}, 5, true);
  return p;
}

TEST(Neaptide, FindsAndProvesTheOptimumOfAChain) {
  Options o;
  o.budgets["d"] = 30;
  const Plan plan = make_plan(chain(), "neaptide", o);
  EXPECT_EQ(plan.cost.seconds, 7);
  EXPECT_EQ(plan.status, Status::kOptimal);
  EXPECT_EQ(plan.peak[DeviceId(0)], 30);
}

TEST(NeaptideBlocks, AreFoundAndWalkedBothWays) {
  const Problem p = layered(12);
  const Model m(p);
  const tide::Blocks blocks(m);
  ASSERT_GE(blocks.count(), 10);
  const int op = blocks.ops(1)[2];
  EXPECT_EQ(blocks.shifted(op, 0), op);
  EXPECT_EQ(blocks.shifted(op, 2), op + 8);
  EXPECT_EQ(blocks.shifted(op, 20), -1);
  // Op i is undone by op 95 - i: two layers further on is two layers back in the second half.
  const int back = 95 - op;
  EXPECT_EQ(blocks.shifted(back, 2), back - 8);
  EXPECT_EQ(tide::Blocks(Model(layered(2))).count(), 0);
}

// The portfolio: whatever a cheap published method finds is found here too, however little effort is left for
// searching.
TEST(Neaptide, IsNeverWorseThanACheapPlanner) {
  int n_compared = 0;
  for (const RandomProblem& kind :
       {RandomProblem{.n_ops = 20}, RandomProblem{.n_ops = 24, .implementations = false, .chain = true},
        RandomProblem{.n_ops = 16, .in_place = false, .zeros = true}}) {
    for (std::uint64_t seed = 0; seed < 15; ++seed) {
      const Problem p = random_problem(seed, kind);
      for (const double part : {0.5, 0.95}) {
        Options o = tight(p, part);
        o.effort = 1000;
        const Plan ours = make_plan(p, "neaptide", o);
        o.effort = 0;
        for (const char* name : {"keep-all", "chen-sqrt", "chen-greedy", "dtr", "griewank", "rotor"}) {
          const Plan other = make_plan(p, name, o);
          if (other.infeasible) continue;
          ++n_compared;
          ASSERT_FALSE(ours.infeasible) << name << " finds a plan for seed " << seed;
          EXPECT_LE(ours.cost.seconds, other.cost.seconds * (1 + 1e-12)) << name << ", seed " << seed;
        }
      }
    }
  }
  EXPECT_GT(n_compared, 100);
}

/// f1..f(l-1) from a homed input and back; a step back needs a workspace of one value. Values weigh one byte, gradients
/// nothing: s + 2 bytes are s checkpoints, the input among them, and one state that moves.
Problem uniform_chain(int length) {
  Problem p;
  p.devices.push_back({"d", std::nullopt, 1});
  p.buffers.push_back({"x", 1, DeviceId(0), false, false});
  const auto add = [&](const std::string& name, std::vector<BufferId> reads, Bytes bytes, bool back) {
    const BufferId out = p.buffers.push_back({name, bytes, std::nullopt, false, false});
    Impl i;
    i.name = "i";
    i.device = DeviceId(0);
    i.seconds = 1;
    i.workspace = back ? 1 : 0;
    i.reads = std::move(reads);
    i.writes = {out};
    p.order.push_back(p.ops.push_back({name, back, {std::move(i)}}));
    return out;
  };
  for (int i = 1; i < length; ++i) add("f" + std::to_string(i), {BufferId(i - 1)}, 1, false);
  BufferId gradient = add("b" + std::to_string(length), {BufferId(length - 1)}, 0, true);
  for (int i = length - 1; i >= 1; --i) gradient = add("b" + std::to_string(i), {BufferId(i - 1), gradient}, 0, true);
  p.buffers[gradient].keep = true;
  return p;
}

// A. Griewank, A. Walther: Algorithm 799 (Revolve), 2000: r l - C(s + r, s + 1) advances with the least r for which
// C(s + r, s) >= l, and one step each back.
TEST(Neaptide, ReachesTheClosedFormOnUniformChains) {
  const auto choose = [](std::int64_t n, std::int64_t k) {
    std::int64_t c = 1;
    for (std::int64_t i = 1; i <= k; ++i) c = c * (n - k + i) / i;
    return c;
  };
  for (const int length : {16, 50}) {
    const Problem p = uniform_chain(length);
    for (const int slots : {1, 2, 3, 4, 5, 7, 10, 15, 16}) {
      std::int64_t r = 0;
      while (choose(slots + r, slots) < length) ++r;
      Options o;
      o.budgets["d"] = slots + 2;
      o.effort = 20'000;
      const Plan plan = make_plan(p, "neaptide", o);
      ASSERT_FALSE(plan.infeasible) << length << " steps, " << slots << " slots";
      EXPECT_EQ(plan.cost.seconds, static_cast<double>(r * length - choose(slots + r, slots + 1) + length))
          << length << " steps, " << slots << " slots";
    }
  }
}

TEST(Certify, RejectsWhatWasTamperedWith) {
  Problem p = chain();
  p.devices[DeviceId(0)].budget = 30;
  CutBounds cuts(p, DeviceId(0), BoundScope::kThisOrder);
  LowerBound b = cuts.best(1'000'000, 1e300);
  ASSERT_GT(b.seconds, 6.5);
  EXPECT_TRUE(certify(p, b).ok);
  LowerBound more = b;
  more.seconds += 0.5;
  EXPECT_FALSE(certify(p, more).ok);
  LowerBound other_scope = b;
  other_scope.valid_for = BoundScope::kAnyOrder;
  EXPECT_FALSE(certify(p, other_scope).ok);
  Problem richer = p;
  richer.devices[DeviceId(0)].budget = 60;
  EXPECT_FALSE(certify(richer, b).ok);
  for (std::size_t i = 0; i < b.certificate.size(); ++i) {  // every digit matters, or leaves a weaker valid proof
    if (b.certificate[i] < '1' || b.certificate[i] > '8') continue;
    LowerBound forged = b;
    ++forged.certificate[i];
    const Certified c = certify(p, forged);
    EXPECT_TRUE(!c.ok || c.seconds <= 7 + 1e-9);
  }
  LowerBound empty = b;
  empty.certificate = "{}";
  EXPECT_FALSE(certify(p, empty).ok);
}

}  // namespace
}  // namespace neaptide::plan
