#pragma once

#include "neaptide/plan/planner.hpp"

namespace neaptide::plan {

/// Every op once in the given order, everything freed after its last use: the reference that "60%" of a budget means.
Plan run_keep_all(const Problem& problem, const Options& options);

}  // namespace neaptide::plan
