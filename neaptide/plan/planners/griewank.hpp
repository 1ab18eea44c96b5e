// A. Griewank, A. Walther: Algorithm 799: Revolve, ACM TOMS 26(1), 2000.
#pragma once

#include "neaptide/plan/planner.hpp"

namespace neaptide::plan {

/// Binomial checkpointing: with s slots and r repetitions a chain of binomial(s + r, s) steps can be reversed, every
/// step running at most r times (theorem 6.1). The forward half is taken as a chain of the ops whose values wait for
/// the backward half, all steps and sizes as equal; the number of slots is searched (or is the switch "slots"), and the
/// fastest plan within the
/// budget wins. Off a chain the plan is still legal: what a step misses is computed on demand.
Plan run_griewank(const Problem& problem, const Options& options);

/// Where Revolve puts the next checkpoint: the advance (1 <= advance < steps) from a stored state when `steps` >= 2
/// steps are to be reversed and `slots` >= 1 further states can be stored.
int revolve_advance(int steps, int slots);

/// Fewest forward steps that reversing `steps` takes with `slots` states stored beside the first (for tests).
long long revolve_cost(int steps, int slots);

}  // namespace neaptide::plan
