// Options of planning, shared by the verbs that plan.
#pragma once

#include <limits>

#include "neaptide/cli/verb.hpp"

namespace neaptide::cli {

struct PlanFlags {
  std::vector<std::string> budgets, switches;
  std::string planner = "neaptide", objective = "time";
  double time_limit = std::numeric_limits<double>::infinity();
  double gap = 0;  // points
  std::int64_t effort = 0;
  int threads = 2;
  std::uint64_t seed = 1;
  bool pinned = false;
};

void declare_plan_flags(CLI::App& app, PlanFlags& flags);

/// Without budgets; progress goes to the console.
plan::Options options_of(const PlanFlags& flags, Console& console);

/// Resolves the budgets (echoed in bytes), plans and packs.
plan::Plan make_plan(const plan::Problem& problem, const PlanFlags& flags, Console& console);

}  // namespace neaptide::cli
