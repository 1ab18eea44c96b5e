// What people read about a plan.
#pragma once

#include "neaptide/cli/verb.hpp"

namespace neaptide::cli {

/// Status, cost, bound, gap, and peak, budget and arena of every device.
void show_plan(Console& console, const plan::Problem& problem, const plan::Plan& plan);

/// "421 ms", or joules where the objective is energy.
std::string cost_text(double cost, plan::Objective objective);

/// kOk, kNoPlan or kTimeLimit.
int exit_of(const plan::Plan& plan);

/// How many steps compute, how many of them again, how many copy.
struct StepCounts {
  int computes = 0, again = 0, copies = 0, in_place = 0;
};
StepCounts count_steps(const plan::Problem& problem, const plan::Plan& plan);

}  // namespace neaptide::cli
