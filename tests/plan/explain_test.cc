// What explain says is computed here a second time, from the steps alone.
#include "neaptide/plan/explain.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/json.hpp"
#include "neaptide/plan/bounds.hpp"
#include "neaptide/plan/certify.hpp"
#include "neaptide/plan/forced.hpp"
#include "neaptide/plan/planner.hpp"
#include "neaptide/plan/simulate.hpp"
#include "neaptide/plan/verify.hpp"
#include "tests/plan/by_hand.hpp"
#include "tests/plan/random_problem.hpp"

namespace neaptide::plan {
namespace {

std::vector<RandomProblem> kinds() {
  return {{.n_ops = 12}, {.n_ops = 12, .n_devices = 2}, {.n_ops = 12, .host = true}, {.n_ops = 16, .chain = true}};
}

Plan tight_plan(const Problem& p, double part) {
  Options o;
  o.effort = 10'000;
  const Bytes low = smallest_peak(p, DeviceId(0)).bytes;
  const Bytes high = simulate(p, keep_all_steps(p)).peak[DeviceId(0)];
  o.budgets[p.devices[DeviceId(0)].name] =
      low + static_cast<Bytes>(part * static_cast<double>(std::max<Bytes>(0, high - low)));
  return make_plan(p, "neaptide", o);
}

/// Every plan of a few hundred random problems, under loose and tight budgets.
template <class Check>
int for_plans(Check check) {
  int n = 0;
  for (const RandomProblem& kind : kinds()) {
    for (std::uint64_t seed = 0; seed < 25; ++seed) {
      const Problem p = random_problem(seed, kind);
      const Plan plan = tight_plan(p, seed % 3 == 0 ? 1.0 : 0.3);
      if (plan.steps.empty()) continue;
      check(p, plan);
      ++n;
    }
  }
  return n;
}

TEST(Explain, WhatIsHeldAddsUpToThePeak) {
  const int n = for_plans([](const Problem& p, const Plan& plan) {
    const Explanation e = explain(p, plan);
    ASSERT_EQ(e.peaks.size(), p.devices.size());
    const Report report = verify(p, plan);
    for (const PeakAt& at : e.peaks) {
      EXPECT_EQ(at.bytes, report.peak[at.device]);
      Bytes sum = at.workspace;
      for (const Held& h : at.held) sum += h.bytes;
      EXPECT_EQ(sum, at.bytes) << "at step " << at.step;
      for (const Held& h : at.held) {
        if (h.why != Held::Why::kWaits) continue;
        ASSERT_GT(h.next_use, at.step);
        const Step& s = plan.steps[static_cast<std::size_t>(h.next_use)];
        EXPECT_FALSE(std::holds_alternative<Free>(s));
      }
    }
    EXPECT_EQ(e.totals.seconds, report.cost.seconds);
  });
  EXPECT_GT(n, 50);
}

TEST(Explain, RunsAndSecondsAreThoseOfTheSteps) {
  const int n = for_plans([](const Problem& p, const Plan& plan) {
    Seconds again = 0;
    for (std::size_t o = 0; o < p.ops.size(); ++o) {
      const OpStory story = explain_op(p, plan, OpId(o));
      std::size_t runs = 0;
      Seconds seconds = 0;
      for (const Step& s : plan.steps) {
        const auto* c = std::get_if<Compute>(&s);
        if (c == nullptr || c->op != OpId(o)) continue;
        if (runs++ > 0) seconds += p.ops[c->op].impls[static_cast<std::size_t>(c->impl)].seconds;
      }
      EXPECT_EQ(story.runs.size(), runs);
      EXPECT_NEAR(story.again_seconds, seconds, 1e-9);
      again += seconds;
    }
    EXPECT_NEAR(explain(p, plan).totals.again_seconds, again, 1e-9);
  });
  EXPECT_GT(n, 50);
}

/// The plan that keeps the value instead: the steps that end and bring it back are left out.
std::vector<Step> without(const Plan& plan, BufferId buffer, const Absence& a, int* shift) {
  std::vector<Step> out;
  *shift = 0;
  for (int i = 0; i < static_cast<int>(plan.steps.size()); ++i) {
    const auto* f = std::get_if<Free>(&plan.steps[static_cast<std::size_t>(i)]);
    if (i == a.from && f != nullptr && f->buffer == buffer && f->device == a.device) {
      *shift = -1;
      continue;
    }
    out.push_back(plan.steps[static_cast<std::size_t>(i)]);
  }
  return out;
}

TEST(Explain, HadItStayedIsWhatAReplayOfThatShows) {
  int n_absences = 0;
  for_plans([&](const Problem& p, const Plan& plan) {
    for (std::size_t b = 0; b < p.buffers.size(); ++b) {
      const ValueStory v = explain_value(p, plan, BufferId(b));
      for (const Absence& a : v.absences) {
        int shift = 0;
        const std::vector<Step> kept = without(plan, v.buffer, a, &shift);
        if (shift == 0) continue;  // taken over in place: it could not have stayed
        ++n_absences;
        EXPECT_EQ(a.bytes, p.size_on(v.buffer, a.device));
        const std::vector<Bytes> held = simulate(p, kept).held[a.device.index()];
        Bytes most = 0;
        for (int s = a.from + 1; s < a.to; ++s) {  // a.from is the free itself
          most = std::max(most, held[static_cast<std::size_t>(s + shift)]);
        }
        EXPECT_GE(a.would_hold, most);
        if (a.at == a.from) continue;
        EXPECT_EQ(a.would_hold, held[static_cast<std::size_t>(a.at + shift)]);
      }
    }
  });
  EXPECT_GT(n_absences, 20);
}

/// One op with three implementations over a saved value that may be missing.
TEST(Explain, TheNextFasterImplementationSaysWhatItNeeds) {
  Problem p;
  p.devices.push_back({"d", 100, 1});
  for (const char* name : {"x", "saved", "y"}) p.buffers.push_back({name, 10, std::nullopt, false, false});
  p.buffers[BufferId(2)].keep = true;
  p.order.push_back(
      p.ops.push_back({"X", false, {by_hand("bare", 1, 0, {}, {0}), by_hand("saving", 1, 0, {}, {0, 1})}}));
  p.order.push_back(p.ops.push_back(
      {"Y",
       true,
       {by_hand("slow", 9, 0, {0}, {2}), by_hand("big", 5, 95, {0}, {2}), by_hand("fastest", 2, 0, {0, 1}, {2})}}));
  Plan plan;
  plan.steps = {Compute{OpId(0), 0}, Compute{OpId(1), 0}, Free{BufferId(0), DeviceId(0)}};
  plan.budgets.push_back(100);
  const OpStory y = explain_op(p, plan, OpId(1));
  ASSERT_EQ(y.runs.size(), 1U);
  EXPECT_EQ(y.runs[0].holds, 20);
  ASSERT_TRUE(y.runs[0].faster);
  EXPECT_EQ(y.runs[0].faster->impl, 1);
  EXPECT_EQ(y.runs[0].faster->saves, 4);
  EXPECT_EQ(y.runs[0].faster->would_hold, 115);
  plan.steps[1] = Compute{OpId(1), 1};
  const OpStory big = explain_op(p, plan, OpId(1));
  ASSERT_TRUE(big.runs[0].faster);
  EXPECT_EQ(big.runs[0].faster->would_hold, 20);
  EXPECT_THAT(big.runs[0].faster->missing, testing::ElementsAre(BufferId(1)));
  const ValueStory saved = explain_value(p, plan, BufferId(1));
  EXPECT_TRUE(saved.stays.empty());
  EXPECT_EQ(saved.remake, 1);
}

TEST(Explain, ThePriceOfAProofIsHowItsBoundFalls) {
  int n = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Problem p = random_problem(seed, {.n_ops = 14, .implementations = false, .most_bytes = 1000});
    const Plan plan = tight_plan(p, 0.3);
    if (!plan.lower_bound) continue;
    const std::optional<Price> price = price_of(*plan.lower_bound);
    if (!price || price->device.empty()) continue;
    ++n;
    EXPECT_GE(price->seconds_per_byte, 0);
    for (const Bytes more : {Bytes{1}, Bytes{5}}) {  // the same certificate under a larger budget
      p.devices[DeviceId(0)].budget = *plan.budgets[DeviceId(0)] + more;
      LowerBound less = *plan.lower_bound;
      Json certificate = parse_json(less.certificate, "c");
      if (certificate.contains("budget")) certificate.at("budget") = *p.devices[DeviceId(0)].budget;
      less.certificate = certificate.dump();
      less.seconds -= price->seconds_per_byte * static_cast<double>(more) * (1 + 1e-9) + 1e-9;
      const Certified c = certify(p, less);
      const bool branched = c.reason.find("impossible") != std::string::npos ||
                            c.reason.find("fits") != std::string::npos ||
                            c.reason.find("a rounding") != std::string::npos;
      EXPECT_TRUE(c.ok || branched) << c.reason << " seed " << seed;
    }
  }
  EXPECT_GT(n, 3);
  EXPECT_EQ(price_of(floor_bound(random_problem(1, {})))->seconds_per_byte, 0);
  EXPECT_FALSE(price_of(LowerBound{}).has_value());
}

TEST(Explain, ARefusalAddsUp) {
  int n = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Problem p = random_problem(seed, {.n_ops = 10});
    Options o;
    o.budgets["d0"] = smallest_peak(p, DeviceId(0)).bytes - 1;
    if (o.budgets["d0"] < 0) continue;
    const Plan plan = make_plan(p, "neaptide", o);
    ASSERT_TRUE(plan.infeasible);
    const Refusal r = explain_infeasible(p, plan);
    EXPECT_EQ(r.budget, o.budgets["d0"]);
    if (!r.op.valid()) continue;
    ++n;
    ASSERT_FALSE(r.impls.empty());
    for (const Refusal::Need& need : r.impls) {
      const Impl& impl = p.ops[r.op].impls[static_cast<std::size_t>(need.impl)];
      EXPECT_EQ(need.bytes, working_set(p, r.op, impl).bytes);
    }
    EXPECT_LE(r.impls.front().bytes, r.why.proved);  // what is held for later ops may come on top
    if (r.batch) {
      const double shrunk = static_cast<double>(r.homes) + *r.batch * static_cast<double>(r.why.proved - r.homes);
      EXPECT_NEAR(shrunk, static_cast<double>(*r.budget), 1e-6 * static_cast<double>(*r.budget) + 1e-9);
    }
    EXPECT_EQ(parse_json(to_json(p, r), "refusal").at("kind"), "infeasible");
  }
  EXPECT_GT(n, 5);
}

TEST(Explain, JsonKeepsItsShape) {
  const Problem p = random_problem(2, {.n_ops = 12});
  const Plan plan = tight_plan(p, 1.0);
  ASSERT_FALSE(plan.steps.empty());
  const Json root = parse_json(to_json(p, plan, explain(p, plan)), "explanation");
  EXPECT_EQ(root.at("format"), "neaptide.explanation");
  EXPECT_EQ(root.at("version"), 1);
  for (const char* key : {"seconds", "again", "copies", "bound", "price", "peaks", "kept", "recomputed"}) {
    EXPECT_TRUE(root.contains(key)) << key;
  }
  const Json value = parse_json(to_json(p, explain_value(p, plan, BufferId(0))), "value");
  EXPECT_EQ(value.at("kind"), "value");
  const Json op = parse_json(to_json(p, explain_op(p, plan, OpId(0))), "op");
  EXPECT_EQ(op.at("kind"), "op");
}

}  // namespace
}  // namespace neaptide::plan
