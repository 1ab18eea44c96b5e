// Where a search starts that was given a plan: its steps as a sequence of actions.
//
//   search.adopt(tide::sequence_of(model, options.start));
#pragma once

#include <vector>

#include "neaptide/plan/planners/neaptide_schedule.hpp"

namespace neaptide::plan::tide {

/// The computes and copies of `steps`, which may be over budget; the frees follow from them, except that a value which
/// may end anywhere ends where the steps leave it. UserError when the steps are no plan of the model's problem.
Sequence sequence_of(const Model& model, const std::vector<Step>& steps);

/// Whether the first runs of the ops come in the order of the problem.
bool first_runs_in_order(const Model& model, const Sequence& sequence);

}  // namespace neaptide::plan::tide
