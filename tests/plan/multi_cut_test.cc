// Bounds from several instants: exact on small training steps, and nothing that was tampered with proves more than is
// true. (Random problems: properties_test.cc.)
#include "neaptide/plan/multi_cut.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "neaptide/base/json.hpp"
#include "neaptide/milp/solve.hpp"
#include "neaptide/plan/bounds.hpp"
#include "neaptide/plan/certify.hpp"
#include "neaptide/plan/planner.hpp"
#include "neaptide/plan/simulate.hpp"
#include "tests/plan/by_hand.hpp"

namespace neaptide::plan {
namespace {

/// Forward and back again, with sizes and seconds that differ; every forward op has a lean and a fast implementation.
Problem training_step(int length) {
  Problem p;
  p.name = "step";
  p.devices.push_back({"d", std::nullopt, 1});
  const auto buffer = [&](const std::string& name, Bytes bytes) {
    return p.buffers.push_back({name, bytes, std::nullopt, false, false});
  };
  const auto add = [&](const std::string& name, bool once, Seconds seconds, Bytes workspace,
                       std::vector<BufferId> reads, BufferId write) {
    Op op{name, once, {}};
    for (const bool fast : {false, true}) {
      Impl i;
      i.name = fast ? "fast" : "lean";
      i.device = DeviceId(0);
      i.seconds = fast ? seconds : seconds * 1.5;
      i.workspace = fast ? workspace : 0;
      i.reads = reads;
      i.writes = {write};
      op.impls.push_back(i);
    }
    p.order.push_back(p.ops.push_back(op));
  };
  std::vector<BufferId> values{buffer("x", 4)};
  p.buffers[values[0]].home = DeviceId(0);
  for (int i = 1; i <= length; ++i) {
    values.push_back(buffer(fmt::format("a{}", i), 5 + (i * 7) % 4));
    add(fmt::format("f{}", i), false, 1 + 0.25 * (i % 3), 3, {values[values.size() - 2]}, values.back());
  }
  BufferId gradient;
  for (int i = length; i >= 1; --i) {
    const BufferId out = buffer(fmt::format("g{}", i), 5 + (i * 7) % 4);
    std::vector<BufferId> reads{values[static_cast<std::size_t>(i)], values[static_cast<std::size_t>(i) - 1]};
    if (gradient.valid()) reads.push_back(gradient);
    add(fmt::format("b{}", i), true, 2, 4, std::move(reads), out);
    gradient = out;
  }
  p.buffers[gradient].keep = true;
  return p;
}

Problem with_budget(Problem p, Bytes budget) {
  p.devices[DeviceId(0)].budget = budget;
  return p;
}

LowerBound prove(const Problem& p, BoundScope scope, Seconds known) {
  const CutBounds single(p, DeviceId(0), scope);
  MultiCut cuts(p, DeviceId(0), scope);
  MultiCut::Ways ways;
  ways.improve = [&](const std::vector<Compute>&) { return known; };
  return cuts.prove(single.promising().at(0), known, ways);
}

class Several : public testing::Test {
  void SetUp() override {
    if (!milp::why_not_built().empty()) GTEST_SKIP() << "no solver of linear programmes: " << milp::why_not_built();
  }
};

TEST_F(Several, MeetTheOptimumOfSmallSteps) {
  const Problem p = training_step(5);
  const Bytes peak = simulate(p, keep_all_steps(p)).peak[DeviceId(0)];
  int met = 0, all = 0;
  for (Bytes budget = peak; budget > 0; --budget) {
    const Problem bounded = with_budget(p, budget);
    Options o;
    o.switches["order"] = "fixed";
    const Plan best = make_plan(bounded, "exhaustive", o);
    if (best.infeasible || CutBounds(bounded, DeviceId(0), BoundScope::kThisOrder).promising().empty()) continue;
    const LowerBound b = prove(bounded, BoundScope::kThisOrder, best.cost.seconds);
    EXPECT_TRUE(certify(bounded, b).ok) << certify(bounded, b).reason;
    EXPECT_LE(b.seconds, best.cost.seconds * (1 + 1e-12)) << "budget " << budget;
    met += b.seconds >= best.cost.seconds * (1 - 1e-12) ? 1 : 0;
    ++all;
  }
  EXPECT_GT(all, 5);
  EXPECT_GE(met, all / 2);
}

TEST_F(Several, NothingForgedProvesMoreThanTheOptimum) {
  const Problem free = training_step(5);
  const Problem p = with_budget(free, simulate(free, keep_all_steps(free)).peak[DeviceId(0)] * 7 / 10);
  Options o;
  o.switches["order"] = "fixed";
  const Seconds optimum = make_plan(p, "exhaustive", o).cost.seconds;
  const LowerBound b = prove(p, BoundScope::kThisOrder, optimum);
  ASSERT_GT(b.seconds, floor_bound(p).seconds);
  ASSERT_TRUE(certify(p, b).ok);
  ASSERT_EQ(parse_json(b.certificate, "c").at("kind"), "cuts");

  LowerBound more = b;
  more.seconds = optimum * 1.01;
  EXPECT_FALSE(certify(p, more).ok);
  more = b;
  more.valid_for = BoundScope::kAnyOrder;
  EXPECT_FALSE(certify(p, more).ok);
  EXPECT_FALSE(certify(with_budget(p, 100), b).ok);

  Json lacking = parse_json(b.certificate, "c");  // a tree without one of its leaves
  if (lacking.at("leaves").size() > 1) {
    lacking.at("leaves").erase(0);
    LowerBound forged = b;
    forged.certificate = lacking.dump();
    EXPECT_FALSE(certify(p, forged).ok);
  }
}

// Trees that have grown a while are shared by two workers, each with inequalities of its own until they meet again.
TEST_F(Several, TwoThreadsProveWhatOneDoes) {
  int n_shared = 0;
  for (const int percent : {32, 46}) {
    const Problem free = training_step(40);
    const Problem p = with_budget(free, simulate(free, keep_all_steps(free)).peak[DeviceId(0)] * percent / 100);
    std::vector<LowerBound> bounds;
    std::vector<int> nodes;
    for (const bool beside : {false, true}) {
      const CutBounds single(p, DeviceId(0), BoundScope::kThisOrder);
      MultiCut cuts(p, DeviceId(0), BoundScope::kThisOrder);
      MultiCut::Ways ways;
      ways.work = 15'000'000;
      ways.beside = [&] {
        ++n_shared;
        return beside;
      };
      bounds.push_back(cuts.prove(single.promising().at(0), 1000, ways));
      nodes.push_back(cuts.nodes());
    }
    EXPECT_EQ(bounds[0].certificate, bounds[1].certificate) << percent;
    EXPECT_EQ(nodes[0], nodes[1]) << percent;
    EXPECT_TRUE(certify(p, bounds[1]).ok) << certify(p, bounds[1]).reason;
    EXPECT_GT(bounds[1].seconds, floor_bound(p).seconds);
  }
  EXPECT_GT(n_shared, 40);
}

// Columns that cost more than a node's multipliers leave to be spent are decided below it, and the certificate says
// why.
TEST_F(Several, WhatIsLeftToSpendIsSpentSoundly) {
  int n_below = 0;
  for (const auto& [length, percent] : {std::pair{24, 70}, {40, 30}, {40, 60}, {40, 65}, {40, 70}, {60, 40}}) {
    const Problem free = training_step(length);
    const Problem p = with_budget(free, simulate(free, keep_all_steps(free)).peak[DeviceId(0)] * percent / 100);
    Options o;
    o.switches = {{"order", "off"}, {"bound", "off"}};
    o.effort = 2'000'000;
    const Seconds known = make_plan(p, "neaptide", o).cost.seconds;
    const CutBounds single(p, DeviceId(0), BoundScope::kThisOrder);
    MultiCut cuts(p, DeviceId(0), BoundScope::kThisOrder);
    MultiCut::Ways ways;
    ways.work = 15'000'000;
    const LowerBound b = cuts.prove(single.promising().at(0), known, ways);
    EXPECT_TRUE(certify(p, b).ok) << percent << ": " << certify(p, b).reason;
    EXPECT_LE(b.seconds, known);
    const Json certificate = parse_json(b.certificate, "c");
    for (const Json& row : certificate.at("rows")) n_below += row.is_object() && row.contains("cheaper") ? 1 : 0;
  }
  EXPECT_GT(n_below, 50);  // one a tree would be the root's
}

// Every digit in turn is another one: branches and what they imply, multipliers, rows, and what inequalities are
// derived from. `known` is what the proof takes for the best plan: the optimum, or more than that.
TEST_F(Several, NoDigitCanBeChangedToProveMore) {
  std::set<std::string> kinds;
  int n_refused = 0, n_implied = 0;
  const auto forge_all = [&](const Problem& p, Seconds optimum, Seconds known) {
    const LowerBound b = prove(p, BoundScope::kThisOrder, known);
    const Json certificate = parse_json(b.certificate, "c");
    if (certificate.at("kind") != "cuts") return;
    for (const Json& row : certificate.at("rows")) {
      for (const char* kind : {"cut", "rounded", "cheaper"}) {
        if (row.is_object() && row.contains(kind)) kinds.insert(kind);
      }
    }
    for (const Json& leaf : certificate.at("leaves")) n_implied += leaf.contains("implied") ? 1 : 0;
    const std::size_t step = b.certificate.size() > 8'000 ? b.certificate.size() / 400 : 1;
    for (std::size_t i = 0; i < b.certificate.size(); i += step) {
      if (b.certificate[i] < '0' || b.certificate[i] > '8') continue;
      LowerBound forged = b;
      ++forged.certificate[i];
      const Certified c = certify(p, forged);
      n_refused += c.ok ? 0 : 1;
      EXPECT_TRUE(!c.ok || c.seconds <= optimum * (1 + 1e-9)) << forged.certificate.substr(0, i + 1);
    }
  };
  for (const int length : {5, 6, 12}) {
    const Problem free = training_step(length);
    const Bytes peak = simulate(free, keep_all_steps(free)).peak[DeviceId(0)];
    for (const int percent : {50, 60, 70, 80}) {
      const Problem p = with_budget(free, peak * percent / 100);
      Options o;
      const bool tiny = length < 10;
      o.switches["order"] = tiny ? "fixed" : "off";
      const Plan best = make_plan(p, tiny ? "exhaustive" : "neaptide", o);
      ASSERT_TRUE(best.infeasible || best.status == Status::kOptimal);
      if (best.infeasible || CutBounds(p, DeviceId(0), BoundScope::kThisOrder).promising().empty()) continue;
      for (const double factor : {1.0, 1.1}) forge_all(p, best.cost.seconds, best.cost.seconds * factor);
    }
  }
  EXPECT_GT(n_refused, 0);
  EXPECT_GT(n_implied, 0);
  EXPECT_EQ(kinds, (std::set<std::string>{"cheaper", "cut", "rounded"}));
}

// An implementation that is no dearer and writes more stands for another one: what only it writes may be there too.
// Here the small s is kept in the place of y, at no cost.
TEST_F(Several, WhatOnlyARepresentativeWritesIsMade) {
  Problem p = problem_by_hand(20, {{"x", 1}, {"y", 10}, {"s", 1}, {"z", 6}, {"w", 2}});
  const OpId first = add_by_hand(p, "begin", {by_hand("i", 1, 0, {}, {0})});
  add_by_hand(p, "a", {by_hand("lean", 1, 0, {0}, {1}), by_hand("saving", 1, 0, {0}, {1, 2})});
  add_by_hand(p, "b", {by_hand("i", 1, 0, {1}, {3})});
  const OpId tight = add_by_hand(p, "c", {by_hand("i", 1, 10, {3}, {4})});
  add_by_hand(p, "end", {by_hand("from y", 1, 0, {1, 4}, {}), by_hand("from s", 1, 0, {2, 4}, {})}, true);
  ASSERT_EQ(check(p), std::vector<std::string>{});
  const Plan best = make_plan(p, "exhaustive", {});
  ASSERT_EQ(best.cost.seconds, 5);
  const CutsFrame frame(p, DeviceId(0), BoundScope::kThisOrder);
  const CutsModel model(frame, {first, tight}, {}, {});
  CutsTree tree(model);
  EXPECT_NE(tree.run(frame.facts.floor_units + frame.facts.units(1), 1'000'000, [] { return false; }),
            CutsTree::End::kReached);
  EXPECT_EQ(tree.bound(), frame.facts.floor_units);
  EXPECT_EQ(make_plan(p, "neaptide", {}).status, Status::kOptimal);
}

/// What is read again later must not be taken over (half a second), and what is large is made twice (two).
Problem taking_over() {
  Problem p = problem_by_hand(33, {{"p", 8}, {"a", 10}, {"b", 10}, {"c", 6}, {"d", 1}, {"t", 1}, {"u", 1}});
  Impl over = by_hand("over", 1, 0, {1}, {2});
  over.in_place.push_back({BufferId(1), BufferId(2)});
  add_by_hand(p, "p", {by_hand("i", 2, 0, {}, {0})});
  add_by_hand(p, "a", {by_hand("i", 5, 0, {}, {1})});
  add_by_hand(p, "b", {by_hand("beside", 1.5, 0, {1}, {2}), over});
  add_by_hand(p, "c", {by_hand("i", 1, 0, {2}, {3})});
  add_by_hand(p, "d", {by_hand("i", 1, 0, {1, 3}, {4})});
  add_by_hand(p, "t", {by_hand("i", 1, 25, {3, 4}, {5})});
  add_by_hand(p, "u", {by_hand("i", 1, 0, {0, 5}, {6})}, true);
  p.buffers[BufferId(6)].keep = true;
  return p;
}

/// What is made again beside something large must be made the slow way.
Problem lean_again() {
  Problem p = problem_by_hand(40, {{"p", 8}, {"k", 20}, {"t", 1}, {"u", 1}, {"w", 1}});
  add_by_hand(p, "p", {by_hand("fast", 2, 20, {}, {0}), by_hand("lean", 3, 0, {}, {0})});
  add_by_hand(p, "k", {by_hand("i", 9, 0, {}, {1})});
  add_by_hand(p, "t", {by_hand("i", 1, 19, {1}, {2})});
  add_by_hand(p, "u", {by_hand("i", 1, 0, {0, 2}, {3})});
  add_by_hand(p, "w", {by_hand("i", 1, 0, {1, 3}, {4})}, true);
  p.buffers[BufferId(4)].keep = true;
  return p;
}

/// The bound meets the optimum with such a row, and with no digit changed proves more.
void expect_exact(const Problem& p, Seconds optimum, const std::string& row) {
  ASSERT_EQ(check(p), std::vector<std::string>{});
  Options o;
  o.switches["order"] = "fixed";
  ASSERT_EQ(make_plan(p, "exhaustive", o).cost.seconds, optimum);
  const LowerBound b = prove(p, BoundScope::kThisOrder, optimum);
  EXPECT_NEAR(b.seconds, optimum, 1e-9);
  EXPECT_TRUE(certify(p, b).ok) << certify(p, b).reason;
  EXPECT_NE(b.certificate.find('"' + row + '"'), std::string::npos) << b.certificate;
  for (std::size_t i = 0; i < b.certificate.size(); ++i) {
    for (const char digit : {'0', '1', '2', '9'}) {
      if (b.certificate[i] < '0' || b.certificate[i] > '9' || b.certificate[i] == digit) continue;
      LowerBound forged = b;
      forged.certificate[i] = digit;
      forged.seconds = optimum * 1.001;
      EXPECT_FALSE(certify(p, forged).ok) << forged.certificate.substr(0, i + 1);
    }
  }
}

TEST_F(Several, WhatIsTakenOverIsGone) { expect_exact(taking_over(), 14.5, "outlive"); }
TEST_F(Several, WhatRunsInsideAnIntervalNeedsRoomForItsWay) { expect_exact(lean_again(), 17, "by"); }

TEST_F(Several, APathIsOnlyBelievedWhereItLeads) {
  const Problem free = training_step(6);
  const Problem p = with_budget(free, simulate(free, keep_all_steps(free)).peak[DeviceId(0)] * 6 / 10);
  const CutsFrame frame(p, DeviceId(0), BoundScope::kThisOrder);
  const std::vector<OpId> instants{p.order[5], p.order[7], p.order[9]};
  const CutsModel model(frame, instants, {}, {});
  const auto paths = find_paths(model, std::vector<double>(model.columns.size(), 0.1));
  ASSERT_FALSE(paths.empty());
  Json certificate{{"kind", "cuts"},
                   {"scope", "this order"},
                   {"device", "d"},
                   {"budget", *p.devices[DeviceId(0)].budget},
                   {"unit_log2", frame.facts.unit_log2},
                   {"price_log2", 0},
                   {"than", std::int64_t{1} << 61},
                   {"columns", Json::array()},
                   {"leaves", Json::array({Json{{"fixed", Json::array()}, {"rows", Json::array()}}})}};
  for (const OpId o : instants) certificate["cuts"].push_back(p.ops[o].name);
  for (std::size_t o = 0; o < p.ops.size(); ++o) {
    for (std::size_t i = 0; i < frame.stands_for[o].size(); ++i) {
      const int by = frame.stands_for[o][i];
      if (by != static_cast<int>(i)) certificate["stands_for"].push_back(Json::array({o, i, by}));
    }
  }
  const auto accepted = [&](const Json& path) {
    LowerBound b = floor_bound(p);
    b.valid_for = BoundScope::kThisOrder;
    certificate["rows"] = Json::array({path});
    b.certificate = certificate.dump();
    return certify(p, b).ok;
  };
  int n_longer = 0;
  for (const CutsInequality& i : paths) {
    const auto& path = std::get<CutsPath>(i.why);
    Json values = Json::array();
    for (const int v : path.values) {
      values.push_back(Json::array({frame.facts.values[static_cast<std::size_t>(v)].buffer.value,
                                    frame.facts.values[static_cast<std::size_t>(v)].version}));
    }
    const Json json{{"path", values}, {"from", path.from}, {"to", path.to}, {"reader", path.reader.value}};
    EXPECT_TRUE(accepted(json)) << json.dump();
    Json bad = json;
    bad["to"] = path.to - 1;
    EXPECT_FALSE(accepted(bad)) << bad.dump();
    bad = json;
    bad["reader"] = p.order[0].value;
    EXPECT_FALSE(accepted(bad)) << bad.dump();
    bad = json;
    bad.erase("reader");
    EXPECT_FALSE(accepted(bad)) << bad.dump();
    bad = json;
    std::reverse(bad["path"].begin(), bad["path"].end());
    EXPECT_TRUE(values.size() == 1 || !accepted(bad)) << bad.dump();
    n_longer += values.size() > 1 ? 1 : 0;
  }
  EXPECT_GT(n_longer, 0);
}

TEST_F(Several, TheDefaultPlannerIsExactOnALongStep) {
  const Problem p = training_step(40);
  const Bytes peak = simulate(p, keep_all_steps(p)).peak[DeviceId(0)];
  Options o;
  o.switches["order"] = "off";
  o.budgets["d"] = peak * 6 / 10;
  const Plan plan = make_plan(p, "neaptide", o);
  EXPECT_EQ(plan.status, Status::kOptimal);
  EXPECT_TRUE(certify(with_options(p, o), *plan.lower_bound).ok);
}

}  // namespace
}  // namespace neaptide::plan
