#include "neaptide/plan/planners/xengine.hpp"

#include "neaptide/plan/answer.hpp"
#include "neaptide/plan/staged.hpp"

namespace neaptide::plan {

Plan run_xengine(const Problem& problem, const Options& options) {
  check_switches(options, "xengine", {});
  return solve_staged(problem, options, "xengine");
}

}  // namespace neaptide::plan
