#include <algorithm>
#include <chrono>
#include <cmath>

#include "neaptide/base/errors.hpp"
#include "neaptide/milp/solve.hpp"
#include "neaptide/plan/answer.hpp"
#include "neaptide/plan/forced.hpp"
#include "neaptide/plan/forward.hpp"
#include "neaptide/plan/simulate.hpp"
#include "neaptide/plan/staged.hpp"

namespace neaptide::plan {
namespace {

milp::SolveOptions solver_options(const Options& options, Seconds spent) {
  milp::SolveOptions out;
  out.time_limit = options.time_limit - spent;
  out.gap = std::max(options.gap, 1e-9);
  out.seed = static_cast<int>(options.seed % 1'000'000'000);
  if (options.progress) {
    out.progress = [&options](const milp::SolveProgress& p) {
      Progress progress;
      progress.incumbent = p.objective;
      progress.bound = p.bound;
      progress.ticks = p.nodes;
      progress.gap = p.bound > 0 && std::isfinite(p.objective) ? p.objective / p.bound - 1 : 0;
      return options.progress(progress);
    };
  }
  return out;
}

}  // namespace

Plan solve_staged(const Problem& problem, const Options& options, std::string_view planner, const StagedRules& rules) {
  require_solver(planner);
  if (options.objective == Objective::kOverlap)
    throw UserError("planner '{}' minimises serial time or energy, not overlapped time", planner);
  if (prove_infeasible(problem)) return nothing_fits(problem);
  const int turn = rules.backward_once ? forward_of(problem).turn : 0;
  const auto begin = std::chrono::steady_clock::now();
  Problem tightened = problem;  // the solver's tolerance may let a plan out by some bytes: then ask again for less
  constexpr int kTries = 4;
  for (int i = 0; i < kTries; ++i) {
    const Seconds spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const Staged staged(tightened, rules, turn);
    const milp::Solution s = milp::solve(staged.model(), solver_options(options, spent));
    if (s.outcome == milp::Outcome::kInfeasible) return nothing_fits(problem);
    Plan plan;
    if (s.values.empty()) {
      plan.status = Status::kTimeLimit;
      plan.stopped_by = s.stopped_by;
      return plan;
    }
    std::vector<Step> steps = staged.steps(s.values);
    const Simulation sim = simulate(problem, steps);
    if (overflow(problem, sim.peak) > 0) {
      for (std::size_t d = 0; d < problem.devices.size(); ++d) {
        auto& budget = tightened.devices[DeviceId(d)].budget;
        if (budget) *budget -= std::max<Bytes>(0, sim.peak[DeviceId(d)] - *problem.devices[DeviceId(d)].budget);
      }
      continue;
    }
    plan = answer(problem, std::move(steps));
    plan.stopped_by = s.stopped_by;
    plan.options.emplace_back("bound by these rules", fmt::format("{}", s.bound));
    plan.options.emplace_back("solver", milp::solver_name());
    return plan;
  }
  return nothing_fits(problem);
}

}  // namespace neaptide::plan
