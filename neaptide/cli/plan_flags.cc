#include "neaptide/cli/plan_flags.hpp"

#include <cmath>

#include "neaptide/cli/interrupt.hpp"

namespace neaptide::cli {

void declare_plan_flags(CLI::App& app, PlanFlags& f) {
  app.add_option("--budget", f.budgets,
                 "800MiB, 60% of the keep-all peak, or min; DEVICE=BUDGET where there are several")
      ->type_name("[DEVICE=]BUDGET")
      ->allow_extra_args(false);
  app.add_option("--planner", f.planner, "which planner")->capture_default_str();
  app.add_option("--objective", f.objective, "time, overlap or energy")->capture_default_str();
  app.add_option("--time-limit", f.time_limit, "seconds after which the best plan so far is the answer")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--gap", f.gap, "points of gap that are good enough (0.1 = a thousandth)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--effort", f.effort, "ticks of work; 0: the planner's own")->check(CLI::NonNegativeNumber);
  app.add_option("--seed", f.seed, "for random decisions");
  app.add_option("--switch", f.switches, "NAME=VALUE: a heuristic of the planner")->allow_extra_args(false);
  app.add_flag("--pinned", f.pinned, "only the first implementation of every op");
}

namespace {

plan::Objective objective_of(const std::string& word) {
  if (word == "time") return plan::Objective::kTime;
  if (word == "overlap") return plan::Objective::kOverlap;
  if (word == "energy") return plan::Objective::kEnergy;
  const std::vector<std::string> known = {"time", "overlap", "energy"};
  throw UserError("there is no objective '{}'{}; it is time, overlap or energy", word, did_you_mean(word, known));
}

}  // namespace

plan::Options options_of(const PlanFlags& f, Console& console) {
  plan::Options o;
  o.objective = objective_of(f.objective);
  o.time_limit = f.time_limit;
  o.effort = f.effort;
  o.gap = f.gap / 100;
  o.threads = f.threads;
  o.seed = f.seed;
  o.pinned_implementations = f.pinned;
  for (const std::string& word : f.switches) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) throw UserError("switch '{}' is not NAME=VALUE", word);
    o.switches[word.substr(0, equals)] = word.substr(equals + 1);
  }
  o.interrupted = InterruptFlag::raised;
  o.progress = [&console](const plan::Progress& p) {
    const std::string best = std::isfinite(p.incumbent) ? format_seconds(p.incumbent) : "none yet";
    console.progress(
        fmt::format("planning: best {}, bound {}, gap {:.2f} points", best, format_seconds(p.bound), p.gap * 100),
        false);
    return true;
  };
  return o;
}

plan::Plan make_plan(const plan::Problem& problem, const PlanFlags& flags, Console& console) {
  plan::Options options = options_of(flags, console);
  options.budgets = session::resolve_budgets(problem, flags.budgets, flags.planner, options);
  for (const auto& [device, bytes] : options.budgets) {
    console.note(fmt::format("budget of {}: {} bytes ({})", device, bytes, format_bytes(bytes)));
  }
  plan::Plan plan = memory::plan_and_pack(problem, flags.planner, options);
  console.end_progress();
  return plan;
}

}  // namespace neaptide::cli
