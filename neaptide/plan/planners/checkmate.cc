#include "neaptide/plan/planners/checkmate.hpp"

#include "neaptide/milp/solve.hpp"
#include "neaptide/plan/answer.hpp"
#include "neaptide/plan/forced.hpp"
#include "neaptide/plan/simulate.hpp"
#include "neaptide/plan/staged.hpp"

namespace neaptide::plan {
namespace {

/// After each stage, drops what the relaxation keeps at no more than the threshold; what is missing is computed again.
std::vector<Step> rounded(const Problem& problem, const std::vector<OpId>& ops,
                          const std::vector<std::vector<double>>& kept, double threshold) {
  const Choice choice = first_choice(problem);
  const Uses uses = uses_of(problem, choice);
  Emitter emit(problem, choice);
  for (std::size_t t = 0; t < ops.size(); ++t) {
    if (!emit.run(ops[t])) return {};
    for (std::size_t b = 0; b < problem.buffers.size(); ++b) {
      if (uses.droppable[BufferId(b)] && kept[t][b] <= threshold) emit.drop(BufferId(b));
    }
  }
  if (!emit.finish()) return {};
  return with_frees(problem, emit.take());
}

}  // namespace

Plan run_checkmate(const Problem& problem, const Options& options) {
  check_switches(options, "checkmate", {});
  require_solver("checkmate");
  only_device(problem, first_choice(problem), "checkmate");
  return solve_staged(problem, options, "checkmate");
}

Plan run_checkmate_lp(const Problem& problem, const Options& options) {
  check_switches(options, "checkmate-lp", {"threshold"});
  std::vector<double> thresholds{0.1, 0.25, 0.5, 0.75, 0.9};
  if (const auto given = switch_number(options, "threshold", 0, 1)) thresholds = {*given};
  require_solver("checkmate-lp");
  only_device(problem, first_choice(problem), "checkmate-lp");
  if (prove_infeasible(problem)) return nothing_fits(problem);
  BestPlan best(problem);
  bool late = false;
  for (const double share : {1.0, 0.9, 0.8, 0.7}) {
    Problem lowered = problem;
    for (Device& d : lowered.devices) {
      if (d.budget) d.budget = static_cast<Bytes>(static_cast<double>(*d.budget) * share);
    }
    const Staged staged(lowered, {}, 0);
    milp::SolveOptions solver;
    solver.relax = true;
    solver.time_limit = solver_time_limit(problem, options) / 4;
    const milp::Solution s = milp::solve(staged.model(), solver);
    late = s.stopped_by == "time";
    if (s.values.empty() || options.interrupted()) break;
    const std::vector<std::vector<double>> kept = staged.kept(s.values);
    for (double threshold : thresholds) best.offer(rounded(problem, staged.ops(), kept, threshold));
    if (best.fits()) break;
  }
  if (!late || best.fits()) return std::move(best).plan();
  Plan plan;
  plan.status = Status::kTimeLimit;
  plan.stopped_by = "time";
  return plan;
}

}  // namespace neaptide::plan
