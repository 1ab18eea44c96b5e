// Budgets that make a planner work.
#pragma once

#include <algorithm>

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

}  // namespace neaptide::plan
