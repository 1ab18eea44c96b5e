#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/text.hpp"
#include "neaptide/plan/bounds.hpp"
#include "neaptide/plan/emit.hpp"
#include "neaptide/plan/energy.hpp"
#include "neaptide/plan/forced.hpp"
#include "neaptide/plan/overlap_bound.hpp"
#include "neaptide/plan/planner.hpp"
#include "neaptide/plan/planners/checkmate.hpp"
#include "neaptide/plan/planners/chen.hpp"
#include "neaptide/plan/planners/dtr.hpp"
#include "neaptide/plan/planners/exhaustive.hpp"
#include "neaptide/plan/planners/griewank.hpp"
#include "neaptide/plan/planners/keep_all.hpp"
#include "neaptide/plan/planners/last.hpp"
#include "neaptide/plan/planners/monet.hpp"
#include "neaptide/plan/planners/neaptide.hpp"
#include "neaptide/plan/planners/poet.hpp"
#include "neaptide/plan/planners/rotor.hpp"
#include "neaptide/plan/planners/xengine.hpp"
#include "neaptide/plan/simulate.hpp"
#include "neaptide/plan/verify.hpp"

namespace neaptide::plan {
namespace {

// Sorted by name.
constexpr std::array kPlanners = {
    Planner{"checkmate", "exact integer programme over stages (Jain et al. 2020); needs HiGHS", run_checkmate},
    Planner{"checkmate-lp", "the relaxation of checkmate, rounded (Jain et al. 2020, section 5.3); needs HiGHS",
            run_checkmate_lp},
    Planner{"chen-greedy", "checkpoints by accumulated bytes, segment size searched (Chen et al. 2016, algorithm 3)",
            run_chen_greedy},
    Planner{"chen-sqrt", "about sqrt(n) evenly spaced checkpoints (Chen et al. 2016)", run_chen_sqrt},
    Planner{"dtr", "online eviction by cost / (bytes x staleness), simulated (Kirisame et al. 2021)", run_dtr},
    Planner{"exhaustive", "shortest path over all states; the oracle for tiny problems", run_exhaustive},
    Planner{"griewank", "binomial checkpointing of a chain (Griewank and Walther 2000)", run_griewank},
    Planner{"keep-all", "every op once in the given order; the reference", run_keep_all},
    Planner{"last", "keeps only the results of the op before; the smallest memory of the simple ways", run_last},
    Planner{"monet", "recomputation and implementations together, backward once (Shah et al. 2021); needs HiGHS",
            run_monet},
    Planner{"neaptide", "search over everything at once with a proved bound; the default", run_neaptide},
    Planner{"poet", "recomputation and paging between stages (Patil et al. 2022); needs HiGHS", run_poet},
    Planner{"rotor", "dynamic programme over a chain of blocks (Beaumont et al. 2019)", run_rotor},
    Planner{"xengine", "recomputation and devices, copies for one use (Schuler et al. 2022); needs HiGHS", run_xengine},
};

/// Equal up to the rounding of sums of seconds.
bool same(Seconds a, Seconds b) { return std::abs(a - b) <= 1e-12 * std::max(std::abs(a), std::abs(b)); }

std::vector<std::pair<std::string, std::string>> as_given(const Options& options) {
  std::vector<std::pair<std::string, std::string>> out;
  if (options.objective == Objective::kOverlap) out.emplace_back("objective", "overlap");
  if (options.objective == Objective::kEnergy) out.emplace_back("objective", "energy");
  if (std::isfinite(options.time_limit)) out.emplace_back("time_limit", fmt::format("{}", options.time_limit));
  if (options.effort != 0) out.emplace_back("effort", fmt::format("{}", options.effort));
  if (options.gap != 0) out.emplace_back("gap", fmt::format("{}", options.gap));
  if (options.pinned_implementations) out.emplace_back("pinned_implementations", "true");
  if (!options.start.empty()) out.emplace_back("start", fmt::format("{} steps", options.start.size()));
  out.emplace_back("threads", fmt::format("{}", options.threads));
  for (const auto& [name, value] : options.switches) out.emplace_back(name, value);
  return out;
}

/// Serial bounds bound the overlapped seconds of a problem with one lane.
bool bounds_objective(const Problem& problem, Objective objective) {
  return objective != Objective::kOverlap || problem.devices.size() == 1;
}

/// `asked`: the problem whose seconds are what is made small (joules for energy).
double gap_in(const Problem& asked, const Plan& plan) {
  const double cost = cost_by(plan.cost, plan.objective), bound = plan.lower_bound->seconds;
  if (same(cost, bound)) return 0;
  const double reference = plan.objective == Objective::kOverlap ? bound : once_each(asked);
  return reference <= 0 ? 0 : std::max(0.0, cost - bound) / reference;
}

void fill_proof(const Problem& asked, Plan& plan) {
  const Objective objective = plan.objective;
  if (!bounds_objective(asked, objective)) plan.lower_bound.reset();
  const LowerBound floor = objective == Objective::kOverlap ? overlap_bound(asked) : floor_bound(asked);
  if (!plan.lower_bound || plan.lower_bound->seconds < floor.seconds) plan.lower_bound = floor;
  if (plan.steps.empty()) return;
  const double cost = cost_by(plan.cost, objective);
  plan.lower_bound->seconds = std::min(plan.lower_bound->seconds, cost);
  plan.gap = gap_in(asked, plan);
  if (!same(cost, plan.lower_bound->seconds)) return;
  plan.status = Status::kOptimal;
  if (plan.stopped_by == "effort") plan.stopped_by.clear();  // sums of steps in another sequence may differ
}

/// What the time did not suffice for is not infeasible, unless that is proved.
void mark_late(const Problem& problem, const Options& options, Plan& plan) {
  const bool interrupted = options.interrupted();
  if (!plan.infeasible || (plan.seconds_spent < options.time_limit && !interrupted)) return;
  const Infeasible& why = *plan.infeasible;
  const auto& budget = problem.devices[why.device].budget;
  if (budget && why.proved > *budget) return;
  plan.status = Status::kTimeLimit;
  plan.stopped_by = interrupted ? "interrupt" : "time";
  plan.infeasible.reset();
}

const Planner& find(std::string_view name) {
  for (const Planner& p : kPlanners) {
    if (p.name == name) return p;
  }
  std::vector<std::string> known;
  for (const Planner& p : kPlanners) known.emplace_back(p.name);
  throw UserError("there is no planner '{}'{}", name, did_you_mean(name, known));
}

}  // namespace

std::span<const Planner> planners() { return kPlanners; }

Seconds once_each(const Problem& problem) {
  const Choice choice = first_choice(problem);
  Seconds sum = 0;
  for (OpId op : problem.order) {
    if (choice[op] < 0) continue;
    Seconds least = problem.ops[op].impls.front().seconds;
    for (const Impl& i : problem.ops[op].impls) least = std::min(least, i.seconds);
    sum += least;
  }
  return sum;
}

double gap_of(const Problem& problem, const Plan& plan) {
  return gap_in(plan.objective == Objective::kEnergy ? in_joules(problem) : problem, plan);
}

Problem with_options(const Problem& problem, const Options& options) {
  Problem out = problem;
  std::vector<std::string> known;
  for (const Device& d : problem.devices) known.push_back(d.name);
  for (const auto& [name, budget] : options.budgets) {
    const auto it = std::find(known.begin(), known.end(), name);
    if (it == known.end()) throw UserError("there is no device '{}'{}", name, did_you_mean(name, known));
    if (budget < 0) throw UserError("the budget of device '{}' is negative", name);
    out.devices[DeviceId(static_cast<std::size_t>(it - known.begin()))].budget = budget;
  }
  if (options.pinned_implementations) {
    for (Op& op : out.ops) op.impls.resize(1);
  }
  return out;
}

Plan make_plan(const Problem& problem, std::string_view planner, const Options& options) {
  const Planner& chosen = find(planner);
  const Problem bounded = with_options(problem, options);
  const std::vector<std::string> errors = check(bounded);
  if (!errors.empty()) throw UserError("problem '{}': {}", problem.name, join(errors, "; "));
  const auto begin = std::chrono::steady_clock::now();
  const bool energy = options.objective == Objective::kEnergy;
  const Problem asked = energy ? in_joules(bounded) : bounded;
  Options inner = options;
  if (energy) inner.objective = Objective::kTime;
  Plan plan = chosen.run(asked, inner);
  plan.seconds_spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  plan.planner = planner;
  plan.seed = options.seed;
  auto notes = std::move(plan.options);
  plan.options = as_given(options);
  plan.options.insert(plan.options.end(), notes.begin(), notes.end());
  plan.budgets = {};
  for (const Device& d : bounded.devices) plan.budgets.push_back(d.budget);
  plan.objective = options.objective;
  if (!plan.steps.empty()) {
    Simulation sim = simulate(bounded, plan.steps);
    plan.cost = sim.cost;
    plan.peak = std::move(sim.peak);
  }
  mark_late(bounded, options, plan);
  fill_proof(asked, plan);
  verify_or_throw(problem, plan);
  return plan;
}

}  // namespace neaptide::plan
