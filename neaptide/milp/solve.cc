#include "neaptide/milp/solve.hpp"

namespace neaptide::milp {

std::string_view to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::kOptimal:
      return "optimal";
    case Outcome::kFeasible:
      return "feasible";
    case Outcome::kInfeasible:
      return "infeasible";
    case Outcome::kUnbounded:
      return "unbounded";
    case Outcome::kNothing:
      return "nothing";
  }
  return "unknown";
}

}  // namespace neaptide::milp
