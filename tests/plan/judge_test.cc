// A second opinion: an independent checker (Python, standard library only) replays plans of every planner, and damaged
// copies of them, and must agree with plan::verify on the verdict, the cost and the peak.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <random>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/files.hpp"
#include "neaptide/base/json.hpp"
#include "neaptide/plan/planner.hpp"
#include "neaptide/plan/simulate.hpp"
#include "neaptide/plan/verify.hpp"
#include "tests/plan/random_problem.hpp"
#include "tests/plan/shared_data.hpp"
#include "tests/plan/try_plan.hpp"

namespace neaptide::plan {
namespace {

constexpr const char* kJudge = "tools/verify_plan.py";

std::string output_of(const std::string& command) {
  std::string out;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) throw DeviceError("cannot start '{}'", command);
  std::array<char, 4096> part{};
  while (std::size_t n = fread(part.data(), 1, part.size(), pipe)) out.append(part.data(), n);
  pclose(pipe);
  return out;
}

/// Collects plans, then asks the checker about all of them in one run.
class Judge {
 public:
  void add(const std::string& name, const Problem& problem, const Plan& plan) {
    Json budgets = Json::object();
    for (std::size_t d = 0; d < plan.budgets.size(); ++d) {
      const auto budget = plan.budgets[DeviceId(d)];
      if (budget) budgets[problem.devices[DeviceId(d)].name] = *budget;
    }
    Json question;
    question["problem"] = parse_json(to_json(problem), "problem");
    question["plan"] = parse_json(to_json(problem, plan), "plan");
    question["budgets"] = budgets;
    questions_.push_back(std::move(question));
    cases_.push_back({name, problem, plan});
  }

  void expect_agreement() const {
    const std::filesystem::path file = std::filesystem::path(::testing::TempDir()) / "neaptide_judge.json";
    write_file_atomically(file.string(), questions_.dump());
    const std::string tools = std::filesystem::path(shared_path(kJudge)).parent_path().string();
    const Json reports =
        parse_json(output_of("python3 -c 'import json, sys; sys.path.insert(0, sys.argv[1]); import verify_plan as v; "
                             "print(json.dumps([v.verify(q[\"problem\"], q[\"plan\"], None, q[\"budgets\"]) "
                             "for q in json.load(open(sys.argv[2]))]))' '" +
                             tools + "' '" + file.string() + "'"),
                   "judge");
    std::filesystem::remove(file);
    ASSERT_EQ(reports.size(), cases_.size());
    for (std::size_t i = 0; i < cases_.size(); ++i) compare(cases_[i], reports[i]);
  }

  std::size_t size() const { return cases_.size(); }

 private:
  struct Case {
    std::string name;
    Problem problem;
    Plan plan;
  };

  static void compare(const Case& c, const Json& theirs) {
    SCOPED_TRACE(c.name);
    const Report ours = verify(c.problem, c.plan);
    EXPECT_EQ(ours.ok(), theirs["ok"].get<bool>())
        << (ours.ok() ? theirs.dump(1) : "we say: " + ours.violations.front().reason);
    if (!ours.ok() || c.plan.steps.empty()) return;
    EXPECT_NEAR(ours.cost.seconds, theirs["cost"]["seconds"].get<double>(), 1e-9 * ours.cost.seconds);
    for (std::size_t d = 0; d < c.problem.devices.size(); ++d)
      EXPECT_EQ(ours.peak[DeviceId(d)], theirs["peak"][c.problem.devices[DeviceId(d)].name].get<Bytes>());
  }

  std::vector<Case> cases_;
  Json questions_ = Json::array();
};

/// A step left out, repeated, or moved; the claims are left out, so that only the rules judge.
Plan damaged(Plan plan, std::mt19937_64& random) {
  plan.cost = {.seconds = -1, .overlapped = -1};
  plan.peak = {};
  plan.lower_bound.reset();
  plan.status = Status::kFeasible;
  if (plan.steps.empty()) return plan;
  const auto at = static_cast<std::ptrdiff_t>(random() % plan.steps.size());
  const Step step = plan.steps[static_cast<std::size_t>(at)];
  switch (random() % 3) {
    case 0:
      plan.steps.erase(plan.steps.begin() + at);
      break;
    case 1:
      plan.steps.insert(plan.steps.begin() + at, step);
      break;
    default:
      plan.steps.erase(plan.steps.begin() + at);
      plan.steps.insert(plan.steps.begin() + static_cast<std::ptrdiff_t>(random() % (plan.steps.size() + 1)), step);
  }
  return plan;
}

TEST(Judge, AgreesOnPlansOfEveryPlannerAndOnDamagedOnes) {
  NEAPTIDE_NEEDS_SHARED(kJudge);
  Judge judge;
  std::mt19937_64 random(7);
  for (const Planner& planner : planners()) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      const Problem problem = random_problem(100 + seed, {.n_devices = seed % 3 == 2 ? 2 : 1});
      const Bytes peak = simulate(problem, keep_all_steps(problem)).peak[DeviceId(0)];
      Options options;
      options.budgets["d0"] = seed % 2 == 0 ? peak : peak * 8 / 10;
      const std::optional<Plan> plan = try_plan(problem, planner.name, options);
      if (!plan) continue;
      const std::string name = fmt::format("{} seed {}", planner.name, seed);
      judge.add(name, problem, *plan);
      for (int i = 0; i < 4 && plan->status != Status::kInfeasible; ++i)
        judge.add(name + ", damaged", problem, damaged(*plan, random));
    }
  }
  EXPECT_GT(judge.size(), 200u);
  judge.expect_agreement();
}

TEST(Judge, AgreesOnDamagedStepsOfManyKinds) {
  NEAPTIDE_NEEDS_SHARED(kJudge);
  Judge judge;
  std::mt19937_64 random(11);
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const Problem problem = random_problem(1000 + seed, {.n_devices = 1 + static_cast<int>(seed % 2)});
    judge.add(fmt::format("seed {}", seed), problem, damaged(make_plan(problem, "keep-all", {}), random));
  }
  judge.expect_agreement();
}

}  // namespace
}  // namespace neaptide::plan
