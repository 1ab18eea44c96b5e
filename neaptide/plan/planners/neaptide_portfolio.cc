#include "neaptide/plan/planners/neaptide_portfolio.hpp"

#include <algorithm>

#include "neaptide/base/errors.hpp"
#include "neaptide/plan/forward.hpp"
#include "neaptide/plan/planners/chen.hpp"
#include "neaptide/plan/planners/dtr.hpp"
#include "neaptide/plan/planners/griewank.hpp"
#include "neaptide/plan/planners/rotor.hpp"

namespace neaptide::plan::tide {
namespace {

/// Above this many ops the planners that try many settings take longer than the search's own first plan.
constexpr std::size_t kLargeProblem = 6000;

}  // namespace

bool is_chain(const Problem& problem) {
  const Forward f = forward_of(problem);
  return std::all_of(f.articulation.begin(), f.articulation.end(), [](bool a) { return a; });
}

std::vector<std::vector<Step>> cheap_plans(const Problem& problem, const std::function<bool()>& stop) {
  Options options;
  options.diagnose = false;
  options.threads = 1;
  options.interrupted = stop;
  std::vector<std::vector<Step>> found;
  const bool large = problem.ops.size() > kLargeProblem && !is_chain(problem);
  for (const auto run : {run_chen_sqrt, run_chen_greedy, run_dtr, run_griewank, run_rotor}) {
    if (stop()) break;
    options.switches.clear();
    if (run == run_rotor) options.switches["levels"] = "100";
    if (large && (run == run_chen_greedy || run == run_griewank)) continue;
    try {
      Plan plan = run(problem, options);
      if (!plan.infeasible) found.push_back(std::move(plan.steps));
    } catch (const UserError&) {
      continue;  // it does not take such problems
    }
  }
  return found;
}

}  // namespace neaptide::plan::tide
