// Implementations that no plan can use: too large for the budget of their device even alone on it, or reading what none
// of the others can make. Bounds are higher without them.
//
//   const Possible can = possible_implementations(problem);
//   const CutsFrame frame(can.problem, device, scope);  // runs that come of it: can.original(runs)
//
// A problem without them is not one to plan: its first implementations may not find what they read.
#pragma once

#include <vector>

#include "neaptide/plan/plan.hpp"

namespace neaptide::plan {

struct Possible {
  Problem problem;
  std::vector<std::vector<int>> kept;  // by op: indices in the original's implementations

  /// Runs of `problem` as the original has them.
  std::vector<Compute> original(std::vector<Compute> runs) const;
};

/// Nothing goes where an op would have no implementation left, or something that is kept no writer: such a problem is
/// better looked at whole.
Possible possible_implementations(const Problem& problem);

}  // namespace neaptide::plan
