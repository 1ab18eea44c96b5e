// The default planner: search for a schedule, a proved bound for how good it can be, both at once, any problem of the
// format. See neaptide_search.hpp for the search and bounds.hpp for the proofs.
//
// Effort is counted in ticks of work, so equal inputs give equal plans; a time limit only ends it early.
// Switches ("on" by default, "off" turns one off): blocks, chain-recompute, contiguous, implementations, multi-cut,
// order, paging, portfolio, prune, shake, bound; neaptide_search.hpp says what each does. With order off, first runs
// keep the problem's order and the bound holds for that order. A time limit that is given is used: the default effort
// then grows with it.
#pragma once

#include "neaptide/plan/planner.hpp"

namespace neaptide::plan {

Plan run_neaptide(const Problem& problem, const Options& options);

/// Ticks that run_neaptide works without a time limit where options name no effort.
std::int64_t default_effort(const Problem& problem);

/// What the budget "min" means: the smallest budget of `device` at which the search finds a plan, the other budgets as
/// they are (options.budgets applied). An upper bound of the smallest feasible one; never below smallest_peak().
Bytes smallest_budget(const Problem& problem, const Options& options, DeviceId device = DeviceId(0));

}  // namespace neaptide::plan
