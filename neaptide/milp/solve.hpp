// One entry point to a solver: HiGHS through its C interface, where it was found when this was built.
//
//   if (!milp::why_not_built().empty()) ...;            // "HiGHS was not found: ..."
//   milp::Solution s = milp::solve(model, {.time_limit = 10});
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "neaptide/milp/model.hpp"

namespace neaptide::milp {

enum class Outcome { kOptimal, kFeasible, kInfeasible, kUnbounded, kNothing };  // kNothing: stopped without a solution
std::string_view to_string(Outcome outcome);

struct Solution {
  Outcome outcome = Outcome::kNothing;
  double objective = kInfinity;       // of `values`
  double bound = -kInfinity;          // no solution is cheaper, says the solver
  std::vector<double> values;         // integers are exact; empty when there is none
  std::vector<double> row_duals;      // of a linear model, else empty
  std::vector<double> reduced_costs;  // the same
  std::int64_t nodes = 0;
  double seconds = 0;
  std::string stopped_by;  // "", "time", "interrupt"
};

struct SolveProgress {
  double objective = kInfinity, bound = -kInfinity;
  std::int64_t nodes = 0;
};

struct SolveOptions {
  double time_limit = kInfinity;  // seconds
  double gap = 1e-6;              // relative, at which a solution counts as optimal
  int threads = 1;
  int seed = 0;
  bool relax = false;                                       // drop integrality
  std::vector<double> start = {};                           // a solution to start from, or empty
  std::function<bool(const SolveProgress&)> progress = {};  // false stops
};

/// "" when a solver is built in, else the reason why not, as the end of "... because".
std::string why_not_built();
/// "HiGHS 1.15.1", or "" when none is built in.
std::string solver_name();

/// Throws UserError ("... is not built, because ...") without a solver, InternalError when the solver fails or returns
/// values that violate the model by more than 1e-5.
Solution solve(const Model& model, const SolveOptions& options);

}  // namespace neaptide::milp
