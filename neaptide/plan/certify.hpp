// Checks the certificate of a lower bound in exact integers. It shares no code with whatever made the bound: it reads
// the problem, rebuilds the network of the claimed instant, and tests that the stated flow respects it.
//
//   const plan::Certified c = plan::certify(problem, *plan.lower_bound);
//   if (!c.ok) ...c.reason...
//
// Kinds: "floor" (every necessary op once), "cut" (a flow at one instant, see bounds.hpp), "cuts" (several instants: a
// tree whose leaves carry multipliers of the rows of cuts_model.hpp), "placement" (a flow between two sides, see
// placement_bound.hpp) and "overlap" (overlapped seconds, see overlap_bound.hpp).
#pragma once

#include <string>

#include "neaptide/plan/plan.hpp"

namespace neaptide::plan {

struct Certified {
  bool ok = false;
  std::string reason;   // when not ok: what does not hold
  Seconds seconds = 0;  // what the certificate proves
};

/// The problem must carry the budgets that the bound was made for. A bound of energy is in joules. Never throws for a
/// bad certificate.
Certified certify(const Problem& given, const LowerBound& bound, Objective objective = Objective::kTime);

}  // namespace neaptide::plan
