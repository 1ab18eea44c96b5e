#include <algorithm>
#include <chrono>
#include <cmath>

#include "neaptide/base/errors.hpp"
#include "neaptide/milp/mps.hpp"
#include "neaptide/milp/solve.hpp"
#include "neaptide/plan/answer.hpp"
#include "neaptide/plan/forced.hpp"
#include "neaptide/plan/forward.hpp"
#include "neaptide/plan/planners/chen.hpp"
#include "neaptide/plan/planners/dtr.hpp"
#include "neaptide/plan/planners/griewank.hpp"
#include "neaptide/plan/planners/last.hpp"
#include "neaptide/plan/planners/neaptide.hpp"
#include "neaptide/plan/simulate.hpp"
#include "neaptide/plan/staged.hpp"

namespace neaptide::plan {
namespace {

constexpr std::size_t kMostOpsSolved = 3000;  // the programme grows with their square

milp::SolveOptions solver_options(const Problem& problem, const Options& options, Seconds spent) {
  milp::SolveOptions out;
  out.time_limit = std::max(0.0, solver_time_limit(problem, options) - spent);
  out.gap = std::max(options.gap, 1e-9);
  out.seed = static_cast<int>(options.seed % 1'000'000'000);
  out.progress = [&options](const milp::SolveProgress& p) {
    Progress progress;
    progress.incumbent = p.objective;
    progress.bound = p.bound;
    progress.ticks = p.nodes;
    progress.gap = p.bound > 0 && std::isfinite(p.objective) ? p.objective / p.bound - 1 : 0;
    return !options.interrupted() && (!options.progress || options.progress(progress));
  };
  return out;
}

bool same_effects(const Impl& a, const Impl& b) {
  return a.device == b.device && a.reads == b.reads && a.writes == b.writes && a.in_place == b.in_place;
}

/// Each computation by the fastest implementation with the same effects whose workspace fits where it runs.
void hurry(const Problem& problem, std::vector<Step>& steps) {
  const Simulation sim = simulate(problem, steps);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    auto* c = std::get_if<Compute>(&steps[i]);
    if (c == nullptr) continue;
    const std::vector<Impl>& impls = problem.ops[c->op].impls;
    const Impl& now = impls[static_cast<std::size_t>(c->impl)];
    const auto budget = problem.devices[now.device].budget;
    const Bytes beside = sim.held[now.device.index()][i] - problem.rounded(now.workspace, now.device);
    for (std::size_t k = 0; k < impls.size(); ++k) {
      const bool fits = !budget || beside + problem.rounded(impls[k].workspace, now.device) <= *budget;
      if (!fits || !same_effects(impls[k], now)) continue;
      if (impls[k].seconds < impls[static_cast<std::size_t>(c->impl)].seconds) c->impl = static_cast<int>(k);
    }
  }
}

/// For each implementation, what it takes: less is leaner. In place before not, inputs made late before inputs made
/// early (they wait less), a small workspace before a large one.
std::vector<double> needs_of(const Problem& problem, const std::vector<int>& made_at, const Impl& impl, bool in_place) {
  double late = 0;
  for (BufferId b : impl.reads) late += made_at[b.index()];
  const auto workspace = static_cast<double>(problem.rounded(impl.workspace, impl.device));
  if (!in_place) return {workspace};
  return {impl.in_place.empty() ? 1.0 : 0.0, -late / static_cast<double>(std::max<std::size_t>(1, impl.reads.size())),
          workspace};
}

/// The problem with the implementations of every op leanest first; `given` is what they were, by op.
Problem leanest_first(const Problem& problem, bool in_place, IdVector<OpTag, std::vector<int>>& given) {
  std::vector<int> made_at(problem.buffers.size(), -1);
  for (std::size_t i = 0; i < problem.order.size(); ++i) {
    for (const Impl& impl : problem.ops[problem.order[i]].impls) {
      for (BufferId b : impl.writes) made_at[b.index()] = static_cast<int>(i);
    }
  }
  Problem out = problem;
  given = IdVector<OpTag, std::vector<int>>(problem.ops.size());
  for (std::size_t o = 0; o < problem.ops.size(); ++o) {
    const std::vector<Impl>& impls = problem.ops[OpId(o)].impls;
    std::vector<std::vector<double>> needs;
    for (const Impl& impl : impls) needs.push_back(needs_of(problem, made_at, impl, in_place));
    std::vector<int>& list = given[OpId(o)];
    for (std::size_t k = 0; k < impls.size(); ++k) list.push_back(static_cast<int>(k));
    std::stable_sort(list.begin(), list.end(), [&](int a, int b) {
      return needs[static_cast<std::size_t>(a)] < needs[static_cast<std::size_t>(b)];
    });
    out.ops[OpId(o)].impls.clear();
    for (int k : list) out.ops[OpId(o)].impls.push_back(impls[static_cast<std::size_t>(k)]);
  }
  return out;
}

bool on_one_device(const Problem& problem) {
  const DeviceId one = problem.ops.size() == 0 ? DeviceId(0) : problem.ops[OpId(0)].impls.front().device;
  return std::all_of(problem.buffers.begin(), problem.buffers.end(),
                     [&](const Buffer& b) { return !b.home || *b.home == one; }) &&
         std::all_of(problem.ops.begin(), problem.ops.end(), [&](const Op& op) {
           return std::all_of(op.impls.begin(), op.impls.end(), [&](const Impl& i) { return i.device == one; });
         });
}

/// Whether the order can run by what first_choice() chooses, memory aside.
bool can_run(const Problem& problem) {
  const Choice choice = first_choice(problem);
  Emitter emit(problem, choice);
  return std::all_of(problem.order.begin(), problem.order.end(),
                     [&](OpId op) { return choice[op] < 0 || emit.run(op); }) &&
         emit.finish();
}

void add_simple_plans(const Problem& problem, std::vector<std::vector<Step>>& out) {
  constexpr std::size_t kMostOps = 2000;  // `last` is quadratic
  Options quiet;
  quiet.diagnose = false;
  for (auto* planner : {run_chen_greedy, run_chen_sqrt, run_dtr, run_griewank, run_last}) {
    if (planner == run_last && problem.ops.size() > kMostOps) continue;
    if (planner == run_dtr && !on_one_device(problem)) continue;
    Plan plan = planner(problem, quiet);
    if (!plan.steps.empty()) out.push_back(std::move(plan.steps));
  }
}

/// Where no simple plan fits, the default planner finds one; first runs stay in order, as the stages want it.
std::vector<Step> searched_plan(const Problem& problem, const Options& options) {
  Options search;
  search.seed = options.seed;
  search.threads = options.threads;
  search.time_limit = options.time_limit / 6;
  search.diagnose = false;
  search.interrupted = options.interrupted;
  search.switches["order"] = "off";
  search.switches["bound"] = "off";
  return run_neaptide(problem, search).steps;
}

/// The cheapest of the plans that the programme can say; empty when there is none.
std::vector<double> start_of(const Staged& staged, const std::vector<std::vector<Step>>& plans) {
  std::vector<double> best;
  double least = milp::kInfinity;
  for (const std::vector<Step>& steps : plans) {
    std::optional<std::vector<double>> values = staged.values(steps);
    if (!values) continue;
    const double cost = milp::objective(staged.model(), *values);
    if (cost >= least) continue;
    least = cost;
    best = std::move(*values);
  }
  return best;
}

}  // namespace

std::vector<std::vector<Step>> simple_plans(const Problem& problem, const StagedRules& rules) {
  std::vector<std::vector<Step>> out;
  add_simple_plans(problem, out);
  if (!rules.implementations) return out;
  for (const bool in_place : {false, true}) {
    IdVector<OpTag, std::vector<int>> given;
    std::vector<std::vector<Step>> lean;
    const Problem leaner = leanest_first(problem, in_place, given);
    if (can_run(leaner)) add_simple_plans(leaner, lean);
    for (std::vector<Step>& steps : lean) {
      for (Step& step : steps) {
        if (auto* c = std::get_if<Compute>(&step)) c->impl = given[c->op][static_cast<std::size_t>(c->impl)];
      }
      out.push_back(std::move(steps));
    }
  }
  for (std::vector<Step>& steps : out) hurry(problem, steps);
  return out;
}

std::optional<StagedRules> staged_rules(std::string_view planner) {
  if (planner == "checkmate" || planner == "checkmate-lp") return StagedRules{};
  if (planner == "monet") return StagedRules{.implementations = true, .backward_once = true};
  if (planner == "poet") return StagedRules{.paging = true};
  if (planner == "xengine") return StagedRules{.implementations = true, .copies_for_use = true};
  return std::nullopt;
}

std::string programme_mps(const Problem& problem, std::string_view planner, const Options& options) {
  const std::optional<StagedRules> rules = staged_rules(planner);
  if (!rules)
    throw UserError("planner '{}' solves no integer programme; checkmate, checkmate-lp, monet, poet and xengine do",
                    planner);
  const Problem bounded = with_options(problem, options);
  if (!rules->paging && !rules->copies_for_use) only_device(bounded, first_choice(bounded), planner);
  return milp::to_mps(Staged(bounded, *rules, rules->backward_once ? forward_of(bounded).turn : 0).model());
}

Seconds solver_time_limit(const Problem& problem, const Options& options) {
  constexpr std::size_t kOpsWithoutLimit = 100;
  constexpr Seconds kDefault = 600;
  const bool unlimited = std::isinf(options.time_limit) && problem.ops.size() > kOpsWithoutLimit;
  return unlimited ? kDefault : options.time_limit;
}

Plan solve_staged(const Problem& problem, const Options& options, std::string_view planner) {
  require_solver(planner);
  const StagedRules rules = staged_rules(planner).value();
  if (options.objective == Objective::kOverlap)
    throw UserError("planner '{}' minimises serial time or energy, not overlapped time", planner);
  if (prove_infeasible(problem)) return nothing_fits(problem);
  if (problem.ops.size() > kMostOpsSolved)
    throw UserError("planner '{}' takes at most {} ops, because its programme grows with their square; '{}' has {}",
                    planner, kMostOpsSolved, problem.name, problem.ops.size());
  const int turn = rules.backward_once ? forward_of(problem).turn : 0;
  const auto begin = std::chrono::steady_clock::now();
  Problem tightened = problem;  // the solver's tolerance may let a plan out by some bytes: then ask again for less
  std::vector<std::vector<Step>> plans = simple_plans(problem, rules);
  if (!options.start.empty()) plans.push_back(options.start);
  const char* started_from = "nothing";
  constexpr int kTries = 4;
  for (int i = 0; i < kTries; ++i) {
    const Staged staged(tightened, rules, turn);
    const Seconds spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    milp::SolveOptions solver = solver_options(problem, options, spent);
    solver.start = start_of(staged, plans);
    if (!solver.start.empty()) started_from = "a simple plan";
    if (solver.start.empty() && i == 0) {
      solver.start = start_of(staged, {searched_plan(problem, options)});
      if (!solver.start.empty()) started_from = "a plan of neaptide";
    }
    const milp::Solution s = milp::solve(staged.model(), solver);
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
    plan.options.emplace_back("started from", started_from);
    return plan;
  }
  return nothing_fits(problem);
}

}  // namespace neaptide::plan
