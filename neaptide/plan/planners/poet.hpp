// S. Patil et al.: POET: Training Neural Networks on Tiny Devices with Integrated Rematerialization and Paging, ICML
// 2022.
#pragma once

#include "neaptide/plan/planner.hpp"

namespace neaptide::plan {

/// Checkmate with page-in and page-out between stages (section 4): a value may be copied to another memory and back
/// instead of being computed again. Minimises joules with the energy objective, else serial seconds (the paper's
/// transfers are free in time; ours are not). First implementations; needs the solver.
Plan run_poet(const Problem& problem, const Options& options);

}  // namespace neaptide::plan
