// Plan: what a planner answers. Steps (compute, copy, free) with proof: cost, bound, gap, peaks. DESIGN.md section 4.
// The JSON form is "neaptide.plan" version 1; apart from seconds_spent the same input gives the same bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "neaptide/plan/problem.hpp"

namespace neaptide::plan {

struct Compute {
  OpId op;
  int impl = 0;  // index into ops[op].impls
  friend bool operator==(const Compute&, const Compute&) = default;
};
struct Copy {
  BufferId buffer;
  DeviceId from, to;
  friend bool operator==(const Copy&, const Copy&) = default;
};
struct Free {
  BufferId buffer;
  DeviceId device;
  friend bool operator==(const Free&, const Free&) = default;
};
using Step = std::variant<Compute, Copy, Free>;

struct Cost {
  // A negative number: a plan read from a file does not state it.
  Seconds seconds = 0;                          // serial: the sum of the steps
  Seconds overlapped = 0;                       // end of the last step, every device and link a lane (rule 8)
  std::optional<double> joules = std::nullopt;  // where every op and copy used gives them
  friend bool operator==(const Cost&, const Cost&) = default;
};

/// What is made small: the serial seconds, the overlapped seconds, or the joules.
enum class Objective { kTime, kOverlap, kEnergy };

enum class BoundScope { kThisOrder, kAnyOrder };

/// No plan (of that scope) is cheaper by the plan's objective. `certificate` is JSON text that plan::certify checks, or
/// "" when `vouched_by` names the solver that alone stands for the bound.
struct LowerBound {
  double seconds = 0;  // joules where the objective is energy
  BoundScope valid_for = BoundScope::kThisOrder;
  std::string certificate;
  std::string vouched_by;
  friend bool operator==(const LowerBound&, const LowerBound&) = default;
};

enum class Status { kOptimal, kFeasible, kInfeasible, kTimeLimit };  // optimal only if lower bound == cost

/// Why nothing fits: the smallest peak any plan can have on `device`, and what forces it.
struct Infeasible {
  DeviceId device;
  Bytes smallest = 0;                // smallest feasible budget found (a plan exists there)
  Bytes proved = 0;                  // no plan has a peak below this
  std::string step;                  // the op during which the peak is forced
  std::vector<std::string> buffers;  // what lies there then, largest first
  std::string advice;                // what would help
  friend bool operator==(const Infeasible&, const Infeasible&) = default;
};

/// Where one block lies. A block is one residence of a buffer (in-place successors included) or one workspace.
struct Placement {
  std::string name;  // buffer, or "op/workspace"
  DeviceId device;
  int begin = 0;    // first step at which it is held
  int end = 0;      // first step at which it is no longer held
  Bytes bytes = 0;  // rounded
  Bytes offset = 0;
  friend bool operator==(const Placement&, const Placement&) = default;
};

struct Layout {
  std::vector<Placement> blocks;           // sorted by begin, then offset
  IdVector<struct DeviceTag, Bytes> top;   // highest end of a block, per device: the arena's size
  IdVector<struct DeviceTag, Bytes> load;  // largest sum of live bytes, per device: no layout is smaller
  friend bool operator==(const Layout&, const Layout&) = default;
};

struct Plan {
  std::string problem_sha256;  // of the uncompressed problem file, "" when it came from memory
  IdVector<struct DeviceTag, std::optional<Bytes>> budgets;
  std::vector<Step> steps;
  Objective objective = Objective::kTime;  // what lower_bound, gap and status speak of
  Cost cost;
  IdVector<struct DeviceTag, Bytes> peak;  // planned peak per device; empty or negative: not stated
  std::optional<LowerBound> lower_bound;   // of make_plan: always there; without steps, what any plan costs at least
  // (cost - bound) / cost of everything once with the fastest implementations; for overlap, / bound. Without steps:
  // none.
  std::optional<double> gap;
  Status status = Status::kFeasible;  // without steps: infeasible, or time_limit where that is not proved
  std::string stopped_by;             // "", "time", "gap", "effort", "interrupt"
  std::optional<Infeasible> infeasible;
  std::string planner;
  std::uint64_t seed = 0;
  std::vector<std::pair<std::string, std::string>> options;  // as given
  Seconds seconds_spent = 0;
  std::optional<Layout> layout;
  friend bool operator==(const Plan&, const Plan&) = default;
};

std::string to_json(const Problem& problem, const Plan& plan);

/// Throws UserError when the text is no plan for this problem (unknown op, buffer, device, implementation).
Plan plan_from_json(const Problem& problem, std::string_view text, std::string_view place);

std::string_view to_string(Status status);
std::string_view to_string(Objective objective);  // "time", "overlap", "energy"

/// The part of a cost that the objective is about; joules that are not known count as negative.
double cost_by(const Cost& cost, Objective objective);

}  // namespace neaptide::plan
