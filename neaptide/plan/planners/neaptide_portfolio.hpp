// The published methods as starting points: what each of the cheap planners finds, so that the default planner is never
// worse than any of them.
//
//   for (const auto& steps : tide::cheap_plans(problem, stop)) search.adopt(tide::sequence_of(model, steps));
#pragma once

#include <functional>
#include <vector>

#include "neaptide/plan/planner.hpp"

namespace neaptide::plan::tide {

/// The steps of every plan within the budgets that chen-sqrt, chen-greedy, dtr, griewank and rotor find, in this order.
/// A planner that does not take the problem (several devices, too many blocks) is left out, and so are chen-greedy and
/// griewank on large problems that are no chains; once `stop` says so, the remaining ones are.
std::vector<std::vector<Step>> cheap_plans(const Problem& problem, const std::function<bool()>& stop);

/// Whether the forward half passes everything on through one value at a time: each op's output is an articulation
/// point.
bool is_chain(const Problem& problem);

}  // namespace neaptide::plan::tide
