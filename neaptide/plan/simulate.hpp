// Costs, peaks and the residence of every buffer, for any legal sequence of steps.
#pragma once

#include <vector>

#include "neaptide/plan/plan.hpp"

namespace neaptide::plan {

struct Simulation {
  Cost cost;
  IdVector<struct DeviceTag, Bytes> peak;
  std::vector<std::vector<Bytes>> held;  // [device][step]: bytes held while the step runs
};

/// Assumes the steps are legal (see verify); throws InternalError when they visibly are not.
Simulation simulate(const Problem& problem, const std::vector<Step>& steps);

/// Inserts a Free right after the last use of everything that may be freed, so that a planner may emit computes and
/// copies only. Frees already present are kept.
std::vector<Step> with_frees(const Problem& problem, const std::vector<Step>& steps);

/// The keep-all reference: default order, first implementations, ops that bring nothing new skipped, everything freed
/// after its last use. "60%" of a budget means 60 % of this peak.
std::vector<Step> keep_all_steps(const Problem& problem);

}  // namespace neaptide::plan
