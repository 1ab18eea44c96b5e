// The model of several instants says nothing that a plan could contradict: what a plan does, read off step by step, is
// a solution of every row and costs no more than the plan. (That bounds stay below the optimum: properties_test.cc.)
#include "neaptide/plan/cuts_model.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "neaptide/plan/answer.hpp"
#include "neaptide/plan/forced.hpp"
#include "neaptide/plan/planner.hpp"
#include "neaptide/plan/simulate.hpp"
#include "neaptide/plan/verify.hpp"
#include "tests/plan/by_hand.hpp"
#include "tests/plan/random_problem.hpp"

namespace neaptide::plan {
namespace {

/// What a plan does between instants and at them, on the model's device.
class Reading {
 public:
  Reading(const CutsModel& model, const std::vector<Step>& steps) : m_(model), f_(model.frame) {
    resident_.assign(f_.size.size(), 0);
    for (std::size_t v = 0; v < resident_.size(); ++v) {
      const auto& buffer = f_.problem.buffers[f_.facts.values[v].buffer];
      resident_[v] = f_.homed[v] && buffer.home == f_.device ? 1 : 0;
    }
    all_through_ = resident_;
    for (std::size_t b = 0; b < f_.problem.buffers.size(); ++b) at_[static_cast<int>(b)] = f_.facts.value_of[b][0];
    for (const Step& step : steps) take(step);
  }

  bool value_of(const CutsKey& c) const {
    switch (c.kind) {
      case CutsKey::kHeld:
        return held_.count({c.a, c.b}) > 0;
      case CutsKey::kRun:
      case CutsKey::kBy:
      case CutsKey::kFirst:
      case CutsKey::kBack:
      case CutsKey::kAway:
      case CutsKey::kCarried:
      case CutsKey::kAgain:
        return done_.count({c.kind, c.a, c.b, c.c}) > 0;
      default:
        ADD_FAILURE() << "a column of no known kind";
        return false;
    }
  }

 private:
  void take(const Step& step) {
    if (const auto* c = std::get_if<Compute>(&step)) {
      compute(*c);
    } else if (const auto* copy = std::get_if<Copy>(&step)) {
      const int v = at_[copy->buffer.value];
      if (copy->from == f_.device) done_.insert({CutsKey::kAway, v});
      if (copy->to != f_.device) return;
      done_.insert({CutsKey::kBack, v, interval_});
      resident_[v] = 1;
    } else {
      const auto& gone = std::get<Free>(step);
      if (gone.device == f_.device) drop(gone.buffer);
    }
  }

  void drop(BufferId buffer) {
    for (const int v : f_.facts.value_of[buffer.index()]) resident_[v] = all_through_[v] = 0;
  }

  void compute(const Compute& c) {
    const std::size_t o = c.op.index(), i = static_cast<std::size_t>(c.impl);
    const Impl& impl = f_.problem.ops[c.op].impls[i];
    const bool instant = interval_ < static_cast<int>(m_.cuts.size()) && m_.cuts[interval_] == c.op;
    if (instant) {
      done_.insert({CutsKey::kFirst, interval_, c.impl});
      for (std::size_t v = 0; v < resident_.size(); ++v) {
        if (all_through_[v]) done_.insert({CutsKey::kCarried, static_cast<int>(v), interval_});
        if (resident_[v]) held_.insert({static_cast<int>(v), interval_});
      }
    }
    const int by = f_.stands_for[o][i];
    if (!done_.insert({CutsKey::kRun, c.op.value, interval_, by}).second)
      done_.insert({CutsKey::kAgain, c.op.value, interval_});
    done_.insert({CutsKey::kBy, c.op.value, interval_, way_of(c, by)});
    if (impl.device == f_.device) {
      for (const InPlace& pair : impl.in_place) drop(pair.in);
    }
    for (std::size_t w = 0; w < impl.writes.size(); ++w) {
      const int v = f_.facts.value_of[impl.writes[w].index()][f_.facts.versions_.write[o][i][w]];
      if (impl.device == f_.device) drop(impl.writes[w]);
      at_[impl.writes[w].value] = v;
      if (impl.device != f_.device) continue;
      resident_[v] = 1;
      if (instant) held_.insert({v, interval_});
    }
    if (!instant) return;
    ++interval_;
    all_through_ = resident_;
  }

  /// The one of the class's ways that the implementation is, or that undercuts it; -1: a run that is none of them.
  int way_of(const Compute& c, int by) const {
    const bool certain = m_.column({CutsKey::kRun, c.op.value, interval_, by}) < 0;
    if (certain && !f_.facts.may_be_first[c.op.index()][static_cast<std::size_t>(c.impl)]) return -1;
    const std::vector<int> ways = f_.ways(c.op, by, certain, true);
    const auto& takes = f_.impl_takes[c.op.index()];
    const auto& impls = f_.problem.ops[c.op].impls;
    for (const int way : ways) {
      if (way == c.impl) return way;
    }
    for (const int way : ways) {
      if (impls[static_cast<std::size_t>(way)].seconds <= impls[static_cast<std::size_t>(c.impl)].seconds &&
          f_.working_set(c.op, way) <= f_.working_set(c.op, c.impl) &&
          std::includes(takes[static_cast<std::size_t>(c.impl)].begin(), takes[static_cast<std::size_t>(c.impl)].end(),
                        takes[static_cast<std::size_t>(way)].begin(), takes[static_cast<std::size_t>(way)].end())) {
        return way;
      }
    }
    ADD_FAILURE() << "no way to run " << f_.problem.ops[c.op].name << " is as good as the one taken";
    return c.impl;
  }

  const CutsModel& m_;
  const CutsFrame& f_;
  std::vector<char> resident_, all_through_;
  std::map<int, int> at_;  // by buffer: the value last written
  std::set<std::pair<int, int>> held_;
  std::set<CutsKey> done_;
  int interval_ = 0;
};

/// A legal schedule that nobody would want: values are dropped and made again for no reason, by any implementation. On
/// one device, without versions.
class Wanderer {
 public:
  Wanderer(const Problem& problem, std::uint64_t seed)
      : p_(problem), random_(seed), resident_(p_.buffers.size()), ran_(p_.ops.size()) {
    for (std::size_t b = 0; b < p_.buffers.size(); ++b) resident_[b] = p_.buffers[BufferId(b)].home.has_value();
  }

  /// Empty where it lost what it cannot make again.
  std::vector<Step> run() {
    for (const OpId op : p_.order) {
      for (int again = below(4); again > 0; --again) {
        const OpId other = p_.order[static_cast<std::size_t>(below(static_cast<int>(p_.order.size())))];
        if (ran_[other.index()] && !p_.ops[other].once && !compute(other, {}, 0)) return {};
      }
      if (!compute(op, {}, 0)) return {};
      const BufferId b(below(static_cast<int>(p_.buffers.size())));
      if (!p_.buffers[b].home && !p_.buffers[b].keep && below(2) == 0) resident_[b.index()] = false;
    }
    Impl end;
    for (std::size_t b = 0; b < p_.buffers.size(); ++b) {
      if (p_.buffers[BufferId(b)].keep) end.reads.emplace_back(b);
    }
    return find_inputs(end, 0) ? with_frees(p_, steps_) : std::vector<Step>{};
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(std::max(1, n))); }

  /// By some implementation that writes the buffer, when one is named.
  bool compute(OpId op, std::optional<BufferId> wanted, int depth) {
    const auto& impls = p_.ops[op].impls;
    const int begin = below(static_cast<int>(impls.size()));
    for (std::size_t k = 0; k < impls.size() && depth < 8; ++k) {
      const std::size_t i = (static_cast<std::size_t>(begin) + k) % impls.size();
      const auto& writes = impls[i].writes;
      if (wanted && std::find(writes.begin(), writes.end(), *wanted) == writes.end()) continue;
      if (!find_inputs(impls[i], depth)) continue;
      steps_.push_back(Compute{op, static_cast<int>(i)});
      ran_[op.index()] = true;
      for (const InPlace& pair : impls[i].in_place) resident_[pair.in.index()] = false;
      for (const BufferId b : writes) resident_[b.index()] = true;
      return true;
    }
    return false;
  }

  bool find_inputs(const Impl& impl, int depth) {
    const auto lacking = [&] {
      return std::find_if(impl.reads.begin(), impl.reads.end(), [&](BufferId b) { return !resident_[b.index()]; });
    };
    for (int tries = 0; tries < 6; ++tries) {  // to make one may take over another
      const auto it = lacking();
      if (it == impl.reads.end()) return true;
      if (!make(*it, depth)) return false;
    }
    return lacking() == impl.reads.end();
  }

  bool make(BufferId b, int depth) {
    for (std::size_t o = 0; o < p_.ops.size(); ++o) {
      if (ran_[o] && !p_.ops[OpId(o)].once && compute(OpId(o), b, depth + 1)) return true;
    }
    return false;
  }

  const Problem& p_;
  std::mt19937_64 random_;
  std::vector<bool> resident_, ran_;
  std::vector<Step> steps_;
};

std::vector<OpId> some_instants(const CutsFrame& frame, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<OpId> cuts;
  for (const OpId op : frame.problem.order) {
    if (!frame.may_cut(op) || random() % 3 == 0) continue;
    if (cuts.empty() || frame.before(cuts.back(), op)) cuts.push_back(op);
  }
  return cuts;
}

std::string shown(const CutsRow& row) {
  return fmt::format("row of kind {} [{} {} {} {}]", static_cast<int>(row.key.kind), row.key.a, row.key.b, row.key.c,
                     row.key.d);
}

/// Counts rows by kind; those of values that outlive what may take them over apart, by whether a reader is meant.
using Kinds = std::map<std::pair<int, bool>, int>;

void expect_solution(const CutsModel& model, const Plan& plan, Kinds* kinds) {
  const Reading reading(model, plan.steps);
  std::vector<char> x;
  for (const CutsKey& key : model.columns) x.push_back(reading.value_of(key) ? 1 : 0);
  for (const CutsRow& row : model.rows) {
    Wide sum = 0;
    for (const auto& [c, factor] : row.terms) sum += x[static_cast<std::size_t>(c)] ? factor : 0;
    EXPECT_GE(static_cast<double>(sum), static_cast<double>(row.least)) << shown(row);
    ++(*kinds)[{row.key.kind, row.key.kind == CutsKey::kOutlive && row.key.e >= 0}];
  }
  Wide units = model.floor_units;
  for (std::size_t c = 0; c < x.size(); ++c) units += x[c] ? model.cost[c] : 0;
  EXPECT_LE(seconds_down(units, model.frame.facts.unit_log2), plan.cost.seconds * (1 + 1e-9));
}

/// Instants, rooms inside all intervals, and rows about all runs in place.
bool check_against(const Problem& p, const Plan& plan, BoundScope scope, std::uint64_t seed, Kinds* kinds) {
  const CutsFrame frame(p, DeviceId(0), scope);
  const std::vector<OpId> cuts = some_instants(frame, seed);
  if (cuts.empty()) return false;
  expect_solution({frame, cuts, {cuts.begin(), cuts.end()}, {p.order.begin(), p.order.end()}}, plan, kinds);
  return true;
}

TEST(CutsModel, WhatAnyScheduleDoesSolvesItToo) {
  RandomProblem shape;
  shape.versions = false;
  shape.n_ops = 7;
  RandomProblem small = shape;
  small.homes = small.ways = false;
  Kinds kinds;
  int n_models = 0, n_again = 0;
  for (const RandomProblem& one : {shape, small}) {
    for (std::uint64_t seed = 0; seed < 1000; ++seed) {
      SCOPED_TRACE(fmt::format("ways {}, seed {}", one.ways, seed));
      Problem p = random_problem(seed, one);
      const std::vector<Step> steps = Wanderer(p, seed).run();
      if (steps.empty()) continue;
      const Simulation sim = simulate(p, steps);
      p.devices[DeviceId(0)].budget = sim.peak[DeviceId(0)];
      Plan plan = answer(p, steps);
      plan.cost = sim.cost;
      plan.peak = sim.peak;
      ASSERT_TRUE(verify(p, plan).ok()) << verify(p, plan).violations[0].reason;
      for (const BoundScope scope : {BoundScope::kThisOrder, BoundScope::kAnyOrder})
        n_models += check_against(p, plan, scope, seed, &kinds) ? 1 : 0;
      n_again += std::count_if(steps.begin(), steps.end(), [](const Step& s) { return s.index() == 0; }) >
                         static_cast<std::ptrdiff_t>(p.ops.size())
                     ? 1
                     : 0;
    }
  }
  EXPECT_GT(n_models, 1000);
  EXPECT_GT(n_again, 500);
  EXPECT_GT((kinds[{CutsKey::kOutlive, true}]), 100);
}

// w first runs from t, r reads v, and only then o takes v over, for w to run once more from u: v was there but once.
TEST(CutsModel, ASecondRunMayComeAfterTheReader) {
  Problem p = problem_by_hand(100, {{"t", 1}, {"v", 1}, {"u", 1}, {"c", 1}, {"w", 1}, {"r", 1}});
  Impl over = by_hand("over", 1, 0, {1}, {2});
  over.in_place.push_back({BufferId(1), BufferId(2)});
  const OpId t = add_by_hand(p, "t", {by_hand("i", 1, 0, {}, {0})});
  const OpId m = add_by_hand(p, "m", {by_hand("i", 1, 0, {}, {1})});
  const OpId o = add_by_hand(p, "o", {over});
  const OpId c = add_by_hand(p, "c", {by_hand("i", 1, 0, {}, {3})});
  const OpId w = add_by_hand(p, "w", {by_hand("from t", 1, 0, {0}, {4}), by_hand("from u", 1, 0, {2}, {4})});
  const OpId r = add_by_hand(p, "r", {by_hand("i", 1, 0, {1}, {5})});
  p.buffers[BufferId(4)].keep = p.buffers[BufferId(5)].keep = true;
  const std::vector<Step> runs{Compute{t, 0}, Compute{m, 0}, Compute{o, 0}, Compute{m, 0}, Compute{c, 0},
                               Compute{w, 0}, Compute{r, 0}, Compute{o, 0}, Compute{w, 1}};
  Plan plan;
  plan.steps = with_frees(p, runs);
  plan.cost.seconds = 9;
  const CutsFrame frame(p, DeviceId(0), BoundScope::kThisOrder);
  Kinds kinds;
  expect_solution({frame, {t, c}, {}, {o}}, plan, &kinds);
  EXPECT_GT((kinds[{CutsKey::kOutlive, true}]), 0);
}

TEST(CutsModel, WhatAPlanDoesSolvesIt) {
  RandomProblem plain;
  plain.versions = plain.homes = plain.ways = plain.optional_outputs = plain.in_place = false;
  RandomProblem in_place = plain, saved = plain, all;
  in_place.in_place = saved.in_place = true;
  saved.optional_outputs = true;
  all.n_ops = 7;
  RandomProblem paging = all, ways = plain;
  paging.n_ops = 5;
  paging.host = paging.copies = true;
  ways.ways = true;
  Kinds kinds;
  int n_models = 0;
  for (const RandomProblem& shape : {plain, in_place, saved, all, paging, ways}) {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      SCOPED_TRACE(fmt::format("kind {}, seed {}", n_models, seed));
      Problem p = random_problem(seed, shape);
      const Bytes low = smallest_peak(p, DeviceId(0)).bytes;
      const Bytes high = std::max(low, simulate(p, keep_all_steps(p)).peak[DeviceId(0)]);
      p.devices[DeviceId(0)].budget = low + (high - low) * static_cast<Bytes>(seed % 4) / 4;
      for (const BoundScope scope : {BoundScope::kThisOrder, BoundScope::kAnyOrder}) {
        Options o;
        if (scope == BoundScope::kThisOrder) o.switches["order"] = "fixed";
        const Plan plan = make_plan(p, "exhaustive", o);
        if (plan.infeasible) continue;
        n_models += check_against(p, plan, scope, seed, &kinds) ? 1 : 0;
      }
    }
  }
  EXPECT_GT(n_models, 200);
  for (const int kind : {CutsKey::kMust, CutsKey::kRead, CutsKey::kUse, CutsKey::kHold, CutsKey::kEnd, CutsKey::kRoom,
                         CutsKey::kOne, CutsKey::kNeeds, CutsKey::kDoes, CutsKey::kOnly, CutsKey::kCarry, CutsKey::kBy,
                         CutsKey::kInside, CutsKey::kAway, CutsKey::kOutlive}) {
    EXPECT_GT((kinds[{kind, false}]), 20) << "of kind " << kind;
  }
  EXPECT_GT((kinds[{CutsKey::kOutlive, true}]), 20);
}

}  // namespace
}  // namespace neaptide::plan
