// P. Jain et al.: Checkmate: Breaking the Memory Wall with Optimal Tensor Rematerialization, MLSys 2020.
#pragma once

#include "neaptide/plan/planner.hpp"

namespace neaptide::plan {

/// The exact programme of section 4 (equations 1 and 9; live ranges instead of Free and U, see staged.hpp): stage t
/// computes op t for the first time, and any earlier op at most once more, in order. One device, one implementation per
/// op. Optimal for these schedules; needs the solver.
Plan run_checkmate(const Problem& problem, const Options& options);

/// Section 5.3: solves the linear relaxation, keeps between stages what it holds at more than a threshold (two-phase
/// rounding: S first, then the fewest runs that S needs), for several thresholds and, as in the paper, a budget lowered
/// to leave room for what rounding adds. The fastest plan that fits wins. Switch "threshold": one value
/// from 0 to 1 instead.
Plan run_checkmate_lp(const Problem& problem, const Options& options);

}  // namespace neaptide::plan
