#include "neaptide/plan/planners/last.hpp"

#include "neaptide/base/errors.hpp"
#include "neaptide/plan/answer.hpp"
#include "neaptide/plan/emit.hpp"
#include "neaptide/plan/simulate.hpp"

namespace neaptide::plan {
namespace {

constexpr std::size_t kMostSteps = 4'000'000;

}  // namespace

std::optional<std::vector<Step>> last_steps(const Problem& problem) {
  const Choice choice = first_choice(problem);
  const Uses uses = uses_of(problem, choice);
  Emitter emit(problem, choice);
  for (OpId op : problem.order) {
    if (choice[op] < 0) continue;
    if (!emit.run(op) || emit.steps().size() > kMostSteps) return std::nullopt;
    for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
      const BufferId b(i);
      if (uses.droppable[b] && uses.writer[b] != op) emit.drop(b);
    }
  }
  if (!emit.finish()) return std::nullopt;
  return with_frees(problem, emit.take());
}

Plan run_last(const Problem& problem, const Options& options) {
  check_switches(options, "last", {});
  std::optional<std::vector<Step>> steps = last_steps(problem);
  if (!steps) return nothing_fits(problem);
  return answer(problem, std::move(*steps));
}

}  // namespace neaptide::plan
