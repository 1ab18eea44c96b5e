// plan::verify against cases made by hand (cases.json): legal sequences with their cost and peak, broken ones with the
// rule that they break, unsound problems, and claims that do not hold.
#include "neaptide/plan/verify.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/files.hpp"
#include "neaptide/base/json.hpp"
#include "neaptide/plan/simulate.hpp"

namespace neaptide::plan {
namespace {

using ::testing::HasSubstr;

const Json& cases() {
  static const Json all = parse_json(read_file(NEAPTIDE_SOURCE_DIR "/tests/plan/cases.json"), "cases.json");
  return all;
}

Plan plan_of(const Problem& problem, const Json& steps, Json more = Json::object()) {
  more["format"] = "neaptide.plan";
  more["version"] = 1;
  more["steps"] = steps;
  return plan_from_json(problem, more.dump(), "case");
}

TEST(Verify, LegalSequencesHaveTheirCostAndPeak) {
  int n = 0;
  for (const Json& c : cases()["replays"]) {
    if (!c.contains("cost")) continue;
    SCOPED_TRACE(c["name"].get<std::string>());
    const Problem problem = problem_from_json(c["problem"].dump(), "case");
    const Plan plan = plan_of(problem, c["steps"]);
    const Report report = verify(problem, plan);
    EXPECT_TRUE(report.ok()) << report.violations.front().reason;
    EXPECT_DOUBLE_EQ(report.cost.seconds, c["cost"].get<double>());
    const Simulation sim = simulate(problem, plan.steps);
    EXPECT_EQ(sim.peak, report.peak);
    EXPECT_EQ(sim.cost, report.cost);
    for (std::size_t d = 0; d < problem.devices.size(); ++d) {
      const std::string& name = problem.devices[DeviceId(d)].name;
      if (c["peak"].contains(name)) {
        EXPECT_EQ(report.peak[DeviceId(d)], c["peak"][name].get<Bytes>()) << name;
      }
    }
    ++n;
  }
  EXPECT_EQ(n, 14);
}

TEST(Verify, BrokenSequencesNameTheRule) {
  int n = 0;
  for (const Json& c : cases()["replays"]) {
    if (!c.contains("rule")) continue;
    SCOPED_TRACE(c["name"].get<std::string>());
    const Problem problem = problem_from_json(c["problem"].dump(), "case");
    const Report report = verify(problem, plan_of(problem, c["steps"]));
    ASSERT_FALSE(report.ok());
    EXPECT_EQ(report.violations.front().rule, c["rule"].get<int>());
    EXPECT_THAT(report.violations.front().reason, HasSubstr(c["says"].get<std::string>()));
    ++n;
  }
  EXPECT_EQ(n, 19);
}

TEST(Verify, StepsThatNameNothingAreRefusedWhenRead) {
  int n = 0;
  for (const Json& c : cases()["replays"]) {
    if (!c.contains("unreadable")) continue;
    const Problem problem = problem_from_json(c["problem"].dump(), "case");
    EXPECT_THROW(plan_of(problem, c["steps"]), UserError) << c["name"];
    ++n;
  }
  EXPECT_EQ(n, 3);
}

TEST(Verify, UnsoundProblemsAreRefused) {
  for (const Json& c : cases()["broken"]) {
    SCOPED_TRACE(c["name"].get<std::string>());
    try {
      problem_from_json(c["problem"].dump(), "case");
      ADD_FAILURE() << "accepted";
    } catch (const UserError& e) {
      EXPECT_THAT(e.what(), HasSubstr(c["says"].get<std::string>()));
    }
  }
}

const Json& case_named(const std::string& name) {
  for (const Json& c : cases()["replays"]) {
    if (c["name"] == name) return c;
  }
  throw InternalError("no case '{}'", name);
}

TEST(Verify, ClaimsMustHold) {
  const Json& base = case_named("chain, a recomputed");
  const Problem problem = problem_from_json(base["problem"].dump(), "case");
  for (const Json& c : cases()["claims"]) {
    SCOPED_TRACE(c["name"].get<std::string>());
    const Report report = verify(problem, plan_of(problem, base["steps"], c["claims"]));
    EXPECT_EQ(report.ok(), c["says"].is_null());
    if (c["says"].is_null()) continue;
    ASSERT_FALSE(report.violations.empty());
    EXPECT_EQ(report.violations.front().rule, 0);
    EXPECT_THAT(report.violations.front().reason, HasSubstr(c["says"].get<std::string>()));
  }
}

TEST(Verify, AnInfeasibleAnswerHasNoSteps) {
  const Json& base = case_named("chain, a recomputed");
  const Problem problem = problem_from_json(base["problem"].dump(), "case");
  Plan plan;
  plan.status = Status::kInfeasible;
  EXPECT_TRUE(verify(problem, plan).ok());
  plan.steps = {Compute{OpId(0), 0}};
  EXPECT_FALSE(verify(problem, plan).ok());
}

TEST(Verify, ThrowsWithTheFirstViolation) {
  const Json& base = case_named("once op left out");
  const Problem problem = problem_from_json(base["problem"].dump(), "case");
  EXPECT_THROW(verify_or_throw(problem, plan_of(problem, base["steps"])), InternalError);
}

TEST(Verify, StopsCountingAtTheLimit) {
  const Json& base = case_named("once op left out");
  const Problem problem = problem_from_json(base["problem"].dump(), "case");
  Plan plan;
  plan.steps.assign(50, Free{BufferId(1), DeviceId(0)});
  EXPECT_EQ(verify(problem, plan, 7).violations.size(), 7u);
}

TEST(Overlap, CopiesRunBesideComputationAndWaitForFreedBytes) {
  // a (2 s on d) then b (2 s on d); copying a to e takes 3 s. With room on e it runs beside b; e's room for a second
  // copy only appears when the first is freed.
  const char* text = R"({"format": "neaptide.problem", "version": 1, "name": "overlap",
    "devices": [{"name": "d"}, {"name": "e", "budget": 10}],
    "links": [{"from": "d", "to": "e", "latency": 1, "bytes_per_second": 5}],
    "buffers": [{"name": "a", "bytes": 10}, {"name": "b", "bytes": 10}, {"name": "s", "bytes": 0}],
    "ops": [{"name": "a", "impls": [{"name": "i", "device": "d", "seconds": 2, "reads": [], "writes": ["a"]}]},
            {"name": "b", "impls": [{"name": "i", "device": "d", "seconds": 2, "reads": [], "writes": ["b"]}]},
            {"name": "s", "once": true,
             "impls": [{"name": "i", "device": "e", "seconds": 4, "reads": ["a"], "writes": ["s"]}]}]})";
  const Problem problem = problem_from_json(text, "overlap");
  const OpId a(0), b(1), s(2);
  const DeviceId d(0), e(1);
  const std::vector<Step> steps = {Compute{a, 0}, Copy{BufferId(0), d, e}, Compute{b, 0},
                                   Compute{s, 0}, Free{BufferId(0), e},    Copy{BufferId(1), d, e}};
  const Simulation sim = simulate(problem, steps);
  EXPECT_DOUBLE_EQ(sim.cost.seconds, 2 + 3 + 2 + 4 + 3);
  EXPECT_DOUBLE_EQ(sim.cost.overlapped, 2 + 3 + 4 + 3);  // a, copy, s (b beside them), then the second copy
  EXPECT_EQ(sim.peak[e], 10);
  Problem roomy = problem;
  roomy.devices[e].budget = 20;
  EXPECT_DOUBLE_EQ(simulate(roomy, steps).cost.overlapped, 2 + 3 + 4);  // the second copy runs beside s
  Plan plan;
  plan.steps = steps;
  plan.cost = sim.cost;
  EXPECT_TRUE(verify(problem, plan).ok());
}

}  // namespace
}  // namespace neaptide::plan
