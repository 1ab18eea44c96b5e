#pragma once

#include "neaptide/plan/planner.hpp"

namespace neaptide::plan {

/// The oracle: a shortest path over all states of a tiny problem, with every feature of the rules (implementations,
/// copies, paging, in-place, versions). Serial time, or joules where all are given. Nothing is assumed about stages or
/// the number of runs. Switch "order": "free" (the bound holds for any order) or "fixed" (first executions follow the
/// given order). UserError when the problem has more than 16 ops or 64 buffers x devices, or too many states.
Plan run_exhaustive(const Problem& problem, const Options& options);

}  // namespace neaptide::plan
