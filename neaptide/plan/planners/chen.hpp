// T. Chen, B. Xu, C. Zhang, C. Guestrin: Training Deep Nets with Sublinear Memory Cost, 2016.
#pragma once

#include "neaptide/plan/planner.hpp"

namespace neaptide::plan {

/// Section 3.2: about sqrt(n) checkpoints, evenly spaced among the values that wait for the backward half; a segment is
/// computed again as a whole when the backward half reaches it. Switch "articulation" ("on", "off", "auto"):
/// checkpoints only where one value alone connects what is before with what comes after.
Plan run_chen_sqrt(const Problem& problem, const Options& options);

/// Algorithm 3: a checkpoint whenever the bytes since the last one exceed b; b is searched, and the fastest plan within
/// the budget wins. Same switch.
Plan run_chen_greedy(const Problem& problem, const Options& options);

}  // namespace neaptide::plan
