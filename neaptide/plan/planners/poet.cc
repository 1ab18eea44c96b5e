#include "neaptide/plan/planners/poet.hpp"

#include "neaptide/plan/answer.hpp"
#include "neaptide/plan/staged.hpp"

namespace neaptide::plan {

Plan run_poet(const Problem& problem, const Options& options) {
  check_switches(options, "poet", {});
  return solve_staged(problem, options, "poet");
}

}  // namespace neaptide::plan
