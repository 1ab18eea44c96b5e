#include "neaptide/plan/planners/monet.hpp"

#include "neaptide/plan/answer.hpp"
#include "neaptide/plan/staged.hpp"

namespace neaptide::plan {

Plan run_monet(const Problem& problem, const Options& options) {
  check_switches(options, "monet", {});
  require_solver("monet");
  only_device(problem, first_choice(problem), "monet");
  return solve_staged(problem, options, "monet");
}

}  // namespace neaptide::plan
