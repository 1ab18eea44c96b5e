#include "neaptide/plan/planners/keep_all.hpp"

#include "neaptide/plan/answer.hpp"
#include "neaptide/plan/simulate.hpp"

namespace neaptide::plan {

Plan run_keep_all(const Problem& problem, const Options& options) {
  check_switches(options, "keep-all", {});
  return answer(problem, keep_all_steps(problem));
}

}  // namespace neaptide::plan
