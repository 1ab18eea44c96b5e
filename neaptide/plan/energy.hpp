// Energy as time: every planner and every bound of serial seconds serves joules as well, on the problem whose seconds
// are the joules of the given one.
//
//   const plan::Problem e = plan::in_joules(problem);   // plan it, then simulate the steps on `problem`
#pragma once

#include "neaptide/plan/problem.hpp"

namespace neaptide::plan {

/// Same ops, buffers and devices. A copy whose joules are not given (every copy over a link alone) cannot be made: the
/// joules of a plan with it would not be known. UserError naming the first implementation without joules or with
/// negative ones, or when nothing can be planned without such copies.
Problem in_joules(const Problem& problem);

}  // namespace neaptide::plan
