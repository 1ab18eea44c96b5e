// plan::verify, written from the numbered rules of DESIGN.md section 4 and nothing else. It shares no code with a
// planner.
#pragma once

#include <string>
#include <vector>

#include "neaptide/plan/plan.hpp"

namespace neaptide::plan {

struct Violation {
  int rule = 0;   // 1-8 of DESIGN.md section 4; 0: the plan's own claims (cost, peak, bound, status)
  int step = -1;  // -1: before the first or after the last step
  std::string reason;
};

struct Report {
  std::vector<Violation> violations;  // at most `max_violations`
  Cost cost;                          // of the replay, valid when there is no violation
  IdVector<struct DeviceTag, Bytes> peak;
  bool ok() const { return violations.empty(); }
};

/// Replays the steps under plan.budgets and checks the plan's claims (cost, peak, bound, status) against the replay.
/// An infeasible plan has no steps and is accepted as an answer.
Report verify(const Problem& problem, const Plan& plan, int max_violations = 100);

/// Throws InternalError naming the first violation. Every planner's plan passes through here.
void verify_or_throw(const Problem& problem, const Plan& plan);

}  // namespace neaptide::plan
