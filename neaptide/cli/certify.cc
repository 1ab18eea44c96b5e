// neaptide certify: replays a plan and checks the certificate of its bound.
#include "neaptide/cli/plan_text.hpp"

namespace neaptide::cli {

namespace {

struct Flags {
  std::string problem, plan;
};

/// The problem under the budgets that the plan was made for.
plan::Problem budgeted(plan::Problem problem, const plan::Plan& plan) {
  for (std::size_t i = 0; i < problem.devices.size(); ++i) {
    const plan::DeviceId d(i);
    if (plan.budgets.has(d)) problem.devices[d].budget = plan.budgets[d];
  }
  return problem;
}

int certify(const Flags& flags, Console& console) {
  std::string sha256;
  const plan::Problem problem = session::load_problem(flags.problem, &sha256);
  const plan::Plan plan = session::load_plan(problem, flags.plan);
  std::vector<std::string> wrong;
  if (!plan.problem_sha256.empty() && plan.problem_sha256 != sha256) {
    wrong.push_back(fmt::format("the plan is for the problem {}, not for {}", plan.problem_sha256, sha256));
  }
  for (const plan::Violation& v : plan::verify(problem, plan).violations) {
    wrong.push_back(fmt::format("rule {}, step {}: {}", v.rule, v.step, v.reason));
  }
  std::string bound = "the plan states no bound";
  if (plan.lower_bound) {
    const plan::Certified c = plan::certify(budgeted(problem, plan), *plan.lower_bound, plan.objective);
    if (!c.ok) wrong.push_back(fmt::format("bound: {}", c.reason));
    bound = plan.objective == plan::Objective::kEnergy
                ? fmt::format("no plan takes less than {} joules", c.seconds)
                : fmt::format("no plan is faster than {}", format_seconds(c.seconds));
  }
  if (console.json) {
    console.value({{"ok", wrong.empty()}, {"wrong", wrong}, {"bound", bound}});
  } else if (wrong.empty()) {
    console.data(fmt::format("{}: {} steps keep every rule; {}\n", console.painted("certified", Paint::kGood),
                             plan.steps.size(), bound));
  } else {
    for (const std::string& w : wrong) console.data(w + "\n");
  }
  if (!wrong.empty()) console.error(fmt::format("'{}' is not certified: {}", flags.plan, wrong.front()));
  return wrong.empty() ? kOk : kNotVerified;
}

std::function<int()> declare(CLI::App& app, Console& console) {
  auto flags = std::make_shared<Flags>();
  app.add_option("PROBLEM", flags->problem, "a problem file")->required();
  app.add_option("PLAN", flags->plan, "a plan for it")->required();
  return [flags, &console] { return certify(*flags, console); };
}

}  // namespace

const Verb kCertifyVerb = {
    "certify", "Replays a plan and checks the proof of its bound, sharing no code with the planners.", declare};

}  // namespace neaptide::cli
