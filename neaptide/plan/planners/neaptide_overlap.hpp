// Plans for the overlapped seconds (rule 8 of the design, docs/decisions/0009): the serial planner's plans, some of
// them made as if copies were cheaper than they are, and a list schedule over all lanes, each improved by a local
// search whose judge is plan::simulate. Never worse than the serial plan.
//
// Moves: a step goes earlier or later past steps that it does not depend on (a copy is hoisted, a recomputation is
// delayed); an op changes its implementation, so perhaps its device, and copies bring what is then missing; a copy is
// left out.
#pragma once

#include "neaptide/plan/planner.hpp"

namespace neaptide::plan {

/// `serial` runs the planner for serial seconds. An infeasible answer is that of the serial planner.
Plan run_overlap(const Problem& problem, const Options& options, Plan (*serial)(const Problem&, const Options&));

}  // namespace neaptide::plan
