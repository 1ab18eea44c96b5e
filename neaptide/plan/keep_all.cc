#include "neaptide/base/errors.hpp"
#include "neaptide/plan/emit.hpp"
#include "neaptide/plan/simulate.hpp"

namespace neaptide::plan {

std::vector<Step> keep_all_steps(const Problem& problem) {
  const Choice choice = first_choice(problem);
  Emitter emit(problem, choice);
  for (OpId op : problem.order) {
    if (choice[op] < 0) continue;
    if (!emit.run(op))
      throw UserError(
          "op '{}' cannot run with its first implementation even with unlimited memory; list one first that "
          "reads what the first implementations of earlier ops leave",
          problem.ops[op].name);
  }
  if (!emit.finish())
    throw UserError("problem '{}': a buffer that must be kept cannot be brought to its home; add a link", problem.name);
  return with_frees(problem, emit.take());
}

}  // namespace neaptide::plan
