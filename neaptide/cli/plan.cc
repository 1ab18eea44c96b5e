// neaptide plan: the schedule of an ONNX model or a problem file under budgets.
#include <chrono>
#include <limits>

#include "neaptide/cli/plan_flags.hpp"
#include "neaptide/cli/plan_text.hpp"

namespace neaptide::cli {

namespace {

struct Flags {
  std::string path, output;
  PlanFlags plan;
};

int plan_problem(const Flags& flags, Console& console) {
  std::string sha256;
  const plan::Problem problem = session::load_problem(flags.path, &sha256);
  plan::Plan plan = make_plan(problem, flags.plan, console);
  plan.problem_sha256 = sha256;
  const std::string text = plan::to_json(problem, plan);
  if (!flags.output.empty()) write_file_atomically(flags.output, text);
  if (console.json) {
    console.data(text);
  } else {
    show_plan(console, problem, plan);
  }
  return exit_of(plan);
}

std::function<int()> declare(CLI::App& app, Console& console) {
  auto flags = std::make_shared<Flags>();
  app.add_option("FILE", flags->path, "an ONNX model or a problem file")->required();
  app.add_option("-o,--output", flags->output, "where the plan goes");
  app.add_option("--threads", flags->plan.threads, "threads of planner and device")->check(CLI::Range(1, 1024));
  declare_plan_flags(app, flags->plan);
  return [flags, &console] { return plan_problem(*flags, console); };
}

}  // namespace

const Verb kPlanVerb = {
    "plan", "Finds the fastest schedule within the budgets, and says how far from optimal it can be.", declare};

}  // namespace neaptide::cli
