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

class Judge {
 public:
  Judge() : folder_(std::filesystem::path(::testing::TempDir()) / "neaptide_judge") {
    std::filesystem::create_directories(folder_);
  }
  ~Judge() { std::filesystem::remove_all(folder_); }

  /// The checker's report on the plan, under the plan's budgets.
  Json ask(const Problem& problem, const Plan& plan) const {
    const std::string p = (folder_ / "problem.json").string(), q = (folder_ / "plan.json").string();
    write_file_atomically(p, to_json(problem));
    write_file_atomically(q, to_json(problem, plan));
    std::string command = "python3 '" + shared_path(kJudge) + "' '" + p + "' '" + q + "'";
    for (std::size_t d = 0; d < plan.budgets.size(); ++d) {
      const auto budget = plan.budgets[DeviceId(d)];
      if (budget) command += fmt::format(" --budget '{}={}'", problem.devices[DeviceId(d)].name, *budget);
    }
    return parse_json(output_of(command), "judge");
  }

 private:
  std::filesystem::path folder_;
};

void expect_agreement(const Judge& judge, const Problem& problem, const Plan& plan) {
  const Report ours = verify(problem, plan);
  const Json theirs = judge.ask(problem, plan);
  EXPECT_EQ(ours.ok(), theirs["ok"].get<bool>())
      << (ours.ok() ? theirs.dump(1) : "we say: " + ours.violations.front().reason);
  if (!ours.ok() || plan.steps.empty()) return;
  EXPECT_NEAR(ours.cost.seconds, theirs["cost"]["seconds"].get<double>(), 1e-9 * ours.cost.seconds);
  for (std::size_t d = 0; d < problem.devices.size(); ++d)
    EXPECT_EQ(ours.peak[DeviceId(d)], theirs["peak"][problem.devices[DeviceId(d)].name].get<Bytes>());
}

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
  const Judge judge;
  std::mt19937_64 random(7);
  for (const Planner& planner : planners()) {
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      SCOPED_TRACE(fmt::format("{} seed {}", planner.name, seed));
      const Problem problem = random_problem(100 + seed, {.n_devices = seed % 3 == 2 ? 2 : 1});
      const Bytes peak = simulate(problem, keep_all_steps(problem)).peak[DeviceId(0)];
      Options options;
      options.budgets["d0"] = seed % 2 == 0 ? peak : peak * 8 / 10;
      const Plan plan = make_plan(problem, planner.name, options);
      expect_agreement(judge, problem, plan);
      if (plan.status != Status::kInfeasible) expect_agreement(judge, problem, damaged(plan, random));
    }
  }
}

TEST(Judge, AgreesOnRandomStepsOfManyKinds) {
  NEAPTIDE_NEEDS_SHARED(kJudge);
  const Judge judge;
  std::mt19937_64 random(11);
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    const Problem problem = random_problem(1000 + seed, {.n_devices = 1 + static_cast<int>(seed % 2)});
    Plan plan = damaged(make_plan(problem, "keep-all", {}), random);
    expect_agreement(judge, problem, plan);
  }
}

}  // namespace
}  // namespace neaptide::plan
