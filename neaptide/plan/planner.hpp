// The contract around every planner: a Problem and options in, a verified Plan out. One file per planner in
// plan/planners/, one line per planner in the sorted list of planners.cc.
//
//   plan::Options o; o.budgets = {{"cpu:0", 800 << 20}};
//   plan::Plan p = plan::make_plan(problem, "neaptide", o);   // passes plan::verify, or throws InternalError
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "neaptide/plan/plan.hpp"

namespace neaptide::plan {

struct Progress {
  Seconds incumbent = 0;  // infinity: none yet
  Seconds bound = 0;
  double gap = 0;
  std::int64_t ticks = 0;
};

struct Options {
  std::map<std::string, Bytes> budgets;  // replaces the problem's, by device name
  Objective objective = Objective::kTime;
  Seconds time_limit = std::numeric_limits<double>::infinity();
  std::int64_t effort = 0;  // ticks of work; 0: the planner's default
  double gap = 0;           // stop when the gap is at most this (0.001 = 0.1 point)
  int threads = 2;
  std::uint64_t seed = 1;
  std::map<std::string, std::string> switches;    // named heuristics of a planner: "one-cut" -> "off"
  std::function<bool(const Progress&)> progress;  // called now and then, from the calling thread; false stops
  /// Asked often, from any thread; true stops as well. A plan says stopped_by "interrupt".
  std::function<bool()> interrupted = [] { return false; };
  bool diagnose = true;  // try hard for a tight budget, and say the smallest feasible one when nothing fits
  bool pinned_implementations = false;  // only the first implementation of every op
  /// Steps of a plan to start from, over budget or not; the planner `neaptide` repairs and improves it, the
  /// integer programmes begin with it where it has a place in their stages, the others ignore it. UserError when they
  /// are no plan for the problem.
  std::vector<Step> start;
};

struct Planner {
  std::string_view name;
  std::string_view what;  // one sentence, with its source
  Plan (*run)(const Problem& problem, const Options& options);
};

/// Sorted by name.
std::span<const Planner> planners();

/// Applies options.budgets, runs the planner, verifies. An unknown planner, device or switch: UserError with "did you
/// mean". Infeasible budgets are an answer (status), not an error.
Plan make_plan(const Problem& problem, std::string_view planner, const Options& options);

/// Seconds of every op that runs without recomputation, once, with its fastest implementation: what a gap is relative
/// to.
Seconds once_each(const Problem& problem);

/// The gap of a plan with steps and a bound, by its objective (see Plan::gap).
double gap_of(const Problem& problem, const Plan& plan);

/// The problem with options' budgets set (UserError for an unknown device), and with only the first implementations
/// when pinned.
Problem with_options(const Problem& problem, const Options& options);

}  // namespace neaptide::plan
