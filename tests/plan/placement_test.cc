// Bounds of placements: never above the optimum, exact without budgets, and nothing that was tampered with proves more
// than is true. NEAPTIDE_PROBLEMS=5000 in the environment asks for more random problems of each kind.
#include "neaptide/plan/placement_bound.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "neaptide/base/json.hpp"
#include "neaptide/plan/bounds.hpp"
#include "neaptide/plan/certify.hpp"
#include "neaptide/plan/explain.hpp"
#include "neaptide/plan/planner.hpp"
#include "neaptide/plan/planners/neaptide_placement.hpp"
#include "neaptide/plan/simulate.hpp"
#include "tests/plan/random_problem.hpp"
#include "tests/plan/shared_data.hpp"
#include "tests/plan/tight.hpp"

namespace neaptide::plan {
namespace {

constexpr double kSame = 1e-9;
constexpr std::int64_t kEffort = 1'000'000;
constexpr Seconds kUnknown = 1e300;

RandomProblem devices(int n, int n_ops) {
  RandomProblem s;
  s.n_ops = n_ops;
  s.n_devices = n;
  s.copies = true;
  return s;
}

struct Tally {
  int all = 0, above_floor = 0, met = 0, at_first_run = 0;
};

/// Every necessary op once by its fastest implementation.
Seconds fastest_once(const Problem& p) {
  const auto needed = necessary_ops(p);
  Seconds sum = 0;
  for (const OpId op : p.order) {
    const auto& impls = p.ops[op].impls;
    const auto fastest = std::min_element(impls.begin(), impls.end(),
                                          [](const Impl& a, const Impl& b) { return a.seconds < b.seconds; });
    if (needed[op]) sum += fastest->seconds;
  }
  return sum;
}

/// Bounds of every device on every problem against the oracle.
Tally compare(const RandomProblem& shape, int n, const std::function<Options(const Problem&, int)>& budgets) {
  Tally t;
  for (int seed = 0; seed < n && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    const Problem p = random_problem(static_cast<std::uint64_t>(seed), shape);
    const Options o = budgets(p, seed);
    const Problem bounded = with_options(p, o);
    const Plan best = make_plan(p, "exhaustive", o);
    if (best.infeasible) continue;
    const Seconds optimum = best.cost.seconds, floor = floor_bound(bounded).seconds;
    Seconds most = 0;
    for (std::size_t d = 0; d < p.devices.size(); ++d) {
      const LowerBound b = PlacementBound(bounded, DeviceId(d)).best(kEffort, kUnknown);
      EXPECT_LE(b.seconds, optimum * (1 + kSame));
      EXPECT_EQ(b.valid_for, BoundScope::kAnyOrder);
      const Certified c = certify(bounded, b);
      EXPECT_TRUE(c.ok) << c.reason;
      EXPECT_LE(c.seconds, optimum * (1 + kSame));
      most = std::max(most, b.seconds);
      t.at_first_run += parse_json(b.certificate, "c").contains("op");
    }
    EXPECT_GE(most, fastest_once(bounded) * (1 - kSame));
    ++t.all;
    t.above_floor += most > floor * (1 + kSame);
    t.met += most >= optimum * (1 - kSame);
  }
  return t;
}

Options no_budgets(const Problem&, int) { return {}; }

Options some_budget(const Problem& p, int seed) {
  Options o = tight(p, 0.2 * (seed % 5));
  if (seed % 2 == 1 && p.devices.size() > 1) {
    const Bytes all = simulate(p, keep_all_steps(p)).peak[DeviceId(1)];
    o.budgets[p.devices[DeviceId(1)].name] = std::max(smallest_peak(p, DeviceId(1)).bytes, all * (seed % 7) / 7);
  }
  return o;
}

TEST(Placement, IsExactForTwoDevicesWithoutBudgets) {
  RandomProblem s = devices(2, 6);
  s.in_place = s.versions = s.ways = s.optional_outputs = false;
  const Tally t = compare(s, n_problems(300), no_budgets);
  EXPECT_GT(t.above_floor, t.all / 4);
  EXPECT_GE(t.met, t.all * 95 / 100) << t.all;
}

TEST(Placement, IsNeverAboveTheOptimum) {
  const Tally two = compare(devices(2, 5), n_problems(300), some_budget);
  EXPECT_GT(two.above_floor, two.all / 4);
  EXPECT_GT(two.met, two.all / 3);
  EXPECT_GT(two.at_first_run, 0);
  const Tally three = compare(devices(3, 4), n_problems(150), some_budget);
  EXPECT_GT(three.above_floor, three.all / 8);
  RandomProblem paging{.n_ops = 5, .host = true, .copies = true, .zeros = true};
  compare(paging, n_problems(200), some_budget);
  RandomProblem slow = devices(2, 5);
  slow.slowest_link = 60;
  slow.most_seconds = 2;
  compare(slow, n_problems(200), some_budget);
  RandomProblem huge = devices(2, 5);
  huge.byte_unit = 50'000'000'000'000;
  huge.second_unit = 1e14;
  compare(huge, n_problems(100), some_budget);
}

/// Layers that run ten times faster on "fast", each with a kept parameter that lies wherever it was made.
Problem layers(int n, Bytes parameter, Bytes budget) {
  Problem p;
  p.name = "layers";
  p.devices.push_back({"slow", std::nullopt, 1});
  p.devices.push_back({"fast", budget, 1});
  for (const int from : {0, 1})
    p.links.push_back({.from = DeviceId(from), .to = DeviceId(1 - from), .latency = 0, .bytes_per_second = 10});
  const auto op = [&](const std::string& name, Seconds seconds, std::vector<BufferId> reads, BufferId write) {
    Op o{name, false, {}};
    for (const int d : {0, 1}) {
      o.impls.push_back({.name = d == 0 ? "slow" : "fast",
                         .device = DeviceId(d),
                         .seconds = d == 0 ? seconds : seconds / 10,
                         .reads = reads,
                         .writes = {write}});
    }
    o.once = true;
    p.order.push_back(p.ops.push_back(o));
  };
  BufferId last = p.buffers.push_back({"x", 1, DeviceId(0)});
  for (int i = 0; i < n; ++i) {
    const BufferId w = p.buffers.push_back({fmt::format("w{}", i), parameter, std::nullopt, true});
    op(fmt::format("load{}", i), 0, {}, w);
    const BufferId y = p.buffers.push_back({fmt::format("y{}", i), 1});
    op(fmt::format("layer{}", i), 10, {last, w}, y);
    last = y;
  }
  p.buffers[last].keep = true;
  return p;
}

TEST(Placement, KnowsThatWholeValuesFitOrNot) {
  // Ten of 20 bytes, room for three and a half of them (and two values of one byte): a copy away costs 2 seconds, to
  // run elsewhere 9. What stays is three.
  const Problem p = layers(10, 20, 72);
  const LowerBound b = PlacementBound(p, DeviceId(1)).best(kEffort, kUnknown);
  EXPECT_TRUE(certify(p, b).ok) << certify(p, b).reason;
  const Seconds expected = 10 + 0.1 + 7 * 2;  // all layers, x over there, seven parameters back
  EXPECT_NEAR(b.seconds, expected, 1e-6);
  const Plan plan = make_plan(p, "neaptide", {});
  EXPECT_EQ(plan.status, Status::kOptimal);
  EXPECT_NEAR(plan.cost.seconds, expected, 1e-6);
  EXPECT_FALSE(price_of(b).has_value());
}

TEST(Placement, LeavesOutWhatFitsInNoBudget) {
  Problem p = layers(2, 20, 21);  // a layer needs 22
  const LowerBound b = PlacementBound(p, DeviceId(1)).best(kEffort, kUnknown);
  EXPECT_NEAR(b.seconds, 20, 1e-6);
  p.devices[DeviceId(1)].budget = 22;
  EXPECT_FALSE(certify(p, b).ok);
  EXPECT_LT(PlacementBound(p, DeviceId(1)).best(kEffort, kUnknown).seconds, 19);
}

TEST(Placement, ItsCutsAreSchedules) {
  const Problem p = layers(6, 20, 72);
  PlacementBound place(p, DeviceId(1));
  place.best(kEffort, kUnknown);
  ASSERT_FALSE(place.choices().empty());
  for (const auto& choice : place.choices()) {
    for (const bool free_order : {false, true}) {
      const std::vector<Step> steps = tide::placed_steps(p, DeviceId(1), choice, free_order);
      ASSERT_FALSE(steps.empty());
      EXPECT_GT(simulate(p, with_frees(p, steps)).cost.seconds, 0);
    }
  }
}

TEST(Placement, NothingForgedProvesMoreThanTheOptimum) {
  const Problem p = layers(4, 20, 50);
  const Plan plan = make_plan(p, "neaptide", {});
  ASSERT_EQ(plan.status, Status::kOptimal);
  const LowerBound b = PlacementBound(p, DeviceId(1)).best(kEffort, kUnknown);
  ASSERT_TRUE(certify(p, b).ok) << certify(p, b).reason;
  ASSERT_EQ(parse_json(b.certificate, "c").at("kind"), "placement");
  const Seconds optimum = plan.cost.seconds;
  EXPECT_NEAR(b.seconds, optimum, 1e-6);

  LowerBound more = b;
  more.seconds = optimum * 1.001;
  EXPECT_FALSE(certify(p, more).ok);
  int n_refused = 0;
  for (std::size_t i = 0; i < b.certificate.size(); ++i) {
    if (b.certificate[i] < '0' || b.certificate[i] > '9') continue;
    for (const char digit : {'0', '9', static_cast<char>(b.certificate[i] + 1)}) {
      LowerBound forged = b;
      forged.certificate[i] = digit;
      const Certified c = certify(p, forged);
      n_refused += c.ok ? 0 : 1;
      EXPECT_TRUE(!c.ok || c.seconds <= optimum * (1 + kSame)) << forged.certificate.substr(0, i + 1);
    }
  }
  EXPECT_GT(n_refused, 0);
  const Json fair = parse_json(b.certificate, "c");
  for (const auto& [kind, list] : fair.at("flow").items()) {  // an arc twice, and none of a kind
    if (list.empty()) continue;
    Json forged = fair;
    forged.at("flow").at(kind).push_back(list.at(0));
    more = b;
    more.certificate = forged.dump();
    EXPECT_FALSE(certify(p, more).ok) << kind;
    forged = fair;
    forged.at("flow").at(kind).clear();
    more.certificate = forged.dump();
    EXPECT_FALSE(certify(p, more).ok) << kind;
  }
  Json elsewhere = fair;
  elsewhere["device"] = "slow";
  more.certificate = elsewhere.dump();
  EXPECT_FALSE(certify(p, more).ok);
}

/// Every digit of the certificate one higher: refused, or still no more than the optimum.
void forge(const Problem& p, const LowerBound& bound, Seconds optimum) {
  for (std::size_t i = 0; i < bound.certificate.size(); ++i) {
    if (bound.certificate[i] < '0' || bound.certificate[i] > '8') continue;
    LowerBound forged = bound;
    ++forged.certificate[i];
    const Certified c = certify(p, forged);
    EXPECT_TRUE(!c.ok || c.seconds <= optimum * (1 + kSame)) << forged.certificate;
  }
}

TEST(Placement, NothingForgedOnRandomProblemsEither) {
  int n_first_runs = 0;
  for (int seed = 0; seed < n_problems(300); ++seed) {
    SCOPED_TRACE(seed);
    const Problem free = random_problem(static_cast<std::uint64_t>(seed), devices(2, 5));
    const Options o = some_budget(free, seed);
    const Plan best = make_plan(free, "exhaustive", o);
    if (best.infeasible) continue;
    const Problem p = with_options(free, o);
    for (const int d : {0, 1}) {
      const LowerBound b = PlacementBound(p, DeviceId(d)).best(kEffort, kUnknown);
      const bool at_first_run = parse_json(b.certificate, "c").contains("op");
      n_first_runs += at_first_run;
      if (at_first_run || seed < 30) forge(p, b, best.cost.seconds);
    }
  }
  EXPECT_GT(n_first_runs, 0);
}

TEST(Placement, ThePublicOnesAreClosed) {
  for (const auto& [name, seconds] : {std::pair{"placement_bert24_layers_inference", 0.43502261},
                                      std::pair{"placement_bert_l-3_ops_inference", 0.48108604}}) {
    const std::string file = std::string("instances/") + name + ".json";
    NEAPTIDE_NEEDS_SHARED(file);
    const Problem p = read_problem(shared_path(file));
    Options o;
    o.budgets["cuda:0"] = 629145600;
    const Plan plan = make_plan(p, "neaptide", o);
    EXPECT_EQ(plan.status, Status::kOptimal);
    EXPECT_NEAR(plan.cost.seconds, seconds, 1e-8);
    EXPECT_TRUE(certify(with_options(p, o), *plan.lower_bound).ok);
  }
}

}  // namespace
}  // namespace neaptide::plan
