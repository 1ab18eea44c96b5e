// M. Kirisame et al.: Dynamic Tensor Rematerialization, ICLR 2021.
#pragma once

#include "neaptide/plan/planner.hpp"

namespace neaptide::plan {

/// The online heuristic, simulated: ops run in the given order; when a result does not fit, the resident value with the
/// least h = (its own cost + the cost of its evicted neighbourhood) / (bytes x staleness) is evicted (their h_DTR,
/// section 4.1); what is missing is computed again, recursively. A value is released when its last reader in the order
/// has run. Switch "heuristic": "neighbourhood", or "local" (own cost only). One device only.
Plan run_dtr(const Problem& problem, const Options& options);

}  // namespace neaptide::plan
