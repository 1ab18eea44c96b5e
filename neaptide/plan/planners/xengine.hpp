// M. Schuler, R. Membarth, P. Slusallek: XEngine: Optimal Tensor Rematerialization for Neural Networks in Heterogeneous
// Environments, ACM TACO 2022.
#pragma once

#include "neaptide/plan/planner.hpp"

namespace neaptide::plan {

/// Checkmate with a device per run and the serial sum as the objective. As in the paper a copy serves one use and is
/// not kept; unlike there it occupies its bytes while it does (rule 4), and only the copies that are made are paid for.
/// Needs the solver.
Plan run_xengine(const Problem& problem, const Options& options);

}  // namespace neaptide::plan
