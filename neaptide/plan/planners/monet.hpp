// A. Shah et al.: Memory Optimization for Deep Networks, ICLR 2021.
#pragma once

#include "neaptide/plan/planner.hpp"

namespace neaptide::plan {

/// Joint choice of recomputation and implementation (sections 4 and 5): every run picks an implementation with its own
/// time, workspace, inputs and saved outputs; the forward half runs once and is recomputed only during the backward
/// half, whose ops run once. One device; needs the solver. Frees are ours: a value ends right after its last use.
Plan run_monet(const Problem& problem, const Options& options);

}  // namespace neaptide::plan
