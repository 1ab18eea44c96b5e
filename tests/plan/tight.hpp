// Budgets that make a planner work, and what one op takes alone.
#pragma once

#include <algorithm>
#include <optional>

#include "neaptide/plan/forced.hpp"
#include "neaptide/plan/planner.hpp"
#include "neaptide/plan/simulate.hpp"

namespace neaptide::plan {

/// A budget for device d0 between the floor of every plan (0) and the keep-all peak (1), and little effort.
inline Options tight(const Problem& p, double part) {
  const Bytes low = smallest_peak(p, DeviceId(0)).bytes;
  const Bytes high = simulate(p, keep_all_steps(p)).peak[DeviceId(0)];
  Options o;
  o.budgets["d0"] = low + static_cast<Bytes>(part * static_cast<double>(std::max<Bytes>(0, high - low)));
  o.effort = 20'000;
  return o;
}

/// Whether the oracle, which knows nothing of bounds, orders or searches, finds a plan with that budget on device d0.
inline bool feasible(const Problem& p, Bytes budget) {
  Options o;
  o.budgets["d0"] = budget;
  return !make_plan(p, "exhaustive", o).infeasible;
}

/// On the first device: the most that one op needs by itself there.
inline Bytes largest_working_set(const Problem& p) {
  Bytes largest = 0;
  const auto needed = necessary_ops(p);
  for (const OpId op : p.order) {
    std::optional<Bytes> least;
    for (const Impl& i : p.ops[op].impls) {
      const Bytes bytes = i.device == DeviceId(0) ? working_set(p, op, i).bytes : 0;
      least = std::min(least.value_or(bytes), bytes);
    }
    if (needed[op]) largest = std::max(largest, *least);
  }
  return largest;
}

}  // namespace neaptide::plan
