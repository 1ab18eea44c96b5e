// O. Beaumont, L. Eyraud-Dubois, J. Herrmann, A. Joly, A. Shilova: Optimal checkpointing for heterogeneous chains,
// 2019.
#pragma once

#include "neaptide/plan/planner.hpp"

namespace neaptide::plan {

/// The dynamic programme of that paper (section 4, theorem 1): stages of different times and sizes, and for each the
/// choice to save everything that its backward part needs, only its input, or nothing. The chain is the sequence of
/// blocks between articulation points of the forward half. Memory is cut into levels (switch "levels", 10 to 10000;
/// 400), sizes are rounded up; the internal budget is lowered until the replayed plan fits. Off a chain the plan is
/// still legal: what a step misses is computed on demand.
Plan run_rotor(const Problem& problem, const Options& options);

}  // namespace neaptide::plan
