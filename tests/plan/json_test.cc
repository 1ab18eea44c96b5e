#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "neaptide/base/errors.hpp"
#include "neaptide/plan/planner.hpp"
#include "neaptide/plan/simulate.hpp"
#include "tests/plan/random_problem.hpp"

namespace neaptide::plan {
namespace {

TEST(ProblemJson, ComesBackEqual) {
  for (int seed = 0; seed < 200; ++seed) {
    const Problem p = random_problem(static_cast<std::uint64_t>(seed), {.n_devices = 1 + seed % 3});
    ASSERT_THAT(check(p), ::testing::IsEmpty()) << "seed " << seed;
    EXPECT_EQ(problem_from_json(to_json(p), "text"), p) << "seed " << seed;
  }
}

TEST(ProblemJson, IgnoresUnknownKeysAndKeepsAnOrder) {
  const std::string text = R"({"format": "neaptide.problem", "version": 1, "reference": {"peak": 3},
    "devices": [{"name": "d", "budget": null}], "buffers": [{"name": "a", "bytes": 1}, {"name": "b", "bytes": 1}],
    "order": ["q", "p"],
    "ops": [{"name": "p", "impls": [{"name": "i", "device": "d", "seconds": 1, "reads": ["b"], "writes": ["a"]}]},
            {"name": "q", "impls": [{"name": "i", "device": "d", "seconds": 1, "writes": ["b"]}]}]})";
  const Problem p = problem_from_json(text, "text");
  EXPECT_EQ(p.order, (std::vector<OpId>{OpId(1), OpId(0)}));
  EXPECT_EQ(problem_from_json(to_json(p), "text"), p);
}

std::string message(const std::string& text) {
  try {
    problem_from_json(text, "p.json");
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

TEST(ProblemJson, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(message("[]"), "p.json: not a problem; it needs \"format\": \"neaptide.problem\", \"version\": 1");
  const std::string head = R"({"format": "neaptide.problem", "version": 1, "devices": [{"name": "cpu:0"}],)";
  EXPECT_EQ(message(head + R"("buffers": [{"name": "a", "bytes": 1, "home": "cpu:1"}], "ops": []})"),
            "p.json.buffers[0].home: unknown device 'cpu:1'; did you mean 'cpu:0'?");
  EXPECT_EQ(message(head + R"("buffers": [{"name": "a", "bytes": -1}], "ops": []})"),
            "p.json.buffers[0].bytes is -1; it must be at least 0");
  EXPECT_EQ(message(head + R"("buffers": [], "ops": [{"name": "f", "impls": []}]})"),
            "p.json: op 'f' has no implementation");
}

TEST(PlanJson, ComesBackEqual) {
  for (int seed = 0; seed < 100; ++seed) {
    const Problem p = random_problem(static_cast<std::uint64_t>(seed), {.n_devices = 1 + seed % 2});
    Plan plan = make_plan(p, "keep-all", {});
    plan.problem_sha256 = "ab";
    plan.lower_bound->certificate = R"({"tau":3})";
    plan.layout = Layout{.blocks = {{"v0", DeviceId(0), 0, 2, 8, 0}}, .top = plan.peak, .load = plan.peak};
    EXPECT_EQ(plan_from_json(p, to_json(p, plan), "text"), plan) << "seed " << seed;
  }
}

TEST(PlanJson, RefusesAStepNumberThatDoesNotFit) {
  const Problem p = random_problem(1, {});
  const IdVector<DeviceTag, Bytes> stated(p.devices.size(), 8);
  Plan plan;
  plan.layout = Layout{.blocks = {{"v0", DeviceId(0), 0, 7, 8, 0}}, .top = stated, .load = stated};
  std::string text = to_json(p, plan);
  text.replace(text.find("\"end\": 7"), 8, "\"end\": 4294967297");
  try {
    plan_from_json(p, text, "p.json");
    FAIL() << "no error";
  } catch (const UserError& e) {
    EXPECT_STREQ(e.what(), "p.json.layout.blocks[0].end is 4294967297; no plan has so many steps");
  }
}

TEST(PlanJson, AnInfeasibleAnswerComesBackEqual) {
  Problem p = random_problem(3);
  Options options;
  options.budgets["d0"] = 1;
  Plan plan = make_plan(p, "keep-all", options);
  ASSERT_EQ(plan.status, Status::kInfeasible);
  Plan back = plan_from_json(p, to_json(p, plan), "text");
  back.cost = plan.cost;  // an answer without steps states no cost
  EXPECT_EQ(back, plan);
}

}  // namespace
}  // namespace neaptide::plan
