// Cost against the budget of one device: what a byte is worth, from the smallest budget in which a plan is known up to
// the one that costs no extra time.
//
//   plan::SweepOptions o;
//   o.device = plan::DeviceId(0);
//   const plan::Sweep s = plan::sweep(problem, o);
//   for (Bytes budget : s.budgets) {
//     const plan::Plan* p = plan::best_within(s.curves[0], budget);       // null: none known
//     const plan::LowerBound* b = plan::bound_at(s, budget);              // null: nothing proved
//   }
//
// Monotone by construction. A plan that needs E bytes is a plan for every budget of at least E, so a curve is the set
// of plans that no other one beats in both bytes and seconds; a bound proved at budget B holds for every budget of at
// most B, so the bounds are the set that no other one beats. Each budget's planner starts from its neighbour's plan.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "neaptide/plan/planner.hpp"

namespace neaptide::plan {

/// Where plans come from: make_plan, or something that packs them as well (memory::plan_and_pack).
using MakePlan = std::function<Plan(const Problem& problem, std::string_view planner, const Options& options)>;

struct SweepOptions {
  DeviceId device = DeviceId(0);                  // the one whose budget changes
  std::vector<std::string> planners{"neaptide"};  // one curve each
  Options plan;               // budgets of the other devices; time_limit and interrupt end the whole sweep
  std::optional<Bytes> from;  // default: the smallest budget in which `neaptide` finds a plan
  std::optional<Bytes> to;    // default: the keep-all peak, or the no-extra-time budget where that is larger
  int points = 20;            // budgets tried, evenly spaced in bytes; at least 1
  bool warm = true;           // start each planner from its neighbour's plan
  bool free_budget = true;    // look for the no-extra-time budget between the points
  MakePlan make = make_plan;
  std::function<void(int done, int total, Bytes budget)> progress;
};

/// The least budget at which a plan costs no more than the cheapest run without a budget.
struct FreeBudget {
  double cost = 0;               // of the cheapest run found without a budget on the device
  bool proved_cheapest = false;  // no run costs less, whatever the budget
  Bytes found = 0;               // a plan of that cost needs this many bytes
  Bytes proved = 0;              // every plan in less than this costs more, or there is none; 0: nothing is proved
  std::optional<Plan> plan;      // none: not even without a budget there is a plan
};

/// Plans of one planner, none beaten by another: bytes rise, costs fall.
struct Curve {
  std::string planner;
  std::vector<Plan> plans;
};

/// No plan within `budget` (or less) costs less than bound.seconds.
struct BoundAt {
  Bytes budget = 0;
  LowerBound bound;
};

struct Sweep {
  std::string problem, device;
  DeviceId device_id;
  Objective objective = Objective::kTime;  // what costs are: seconds, overlapped seconds or joules
  Bytes keep_all = 0;                      // peak and cost of the keep-all reference; a negative cost: not known
  double keep_all_cost = 0;
  double once_each = 0;  // what gaps are relative to; 0: to the bound (overlap)
  Bytes smallest = 0;    // the least bytes of a plan known; 0: none is known
  Bytes proved = 0;      // no plan exists within less
  FreeBudget free;
  std::vector<Bytes> budgets;   // ascending
  std::vector<Curve> curves;    // one per planner
  std::vector<BoundAt> bounds;  // budgets rise, costs fall; only bounds that carry a certificate
  std::string stopped_by;       // "", "time", "interrupt"
};

/// Bytes that a plan needs on a device: the top of its layout, where it has one, else its peak.
Bytes extent(const Plan& plan, DeviceId device);

/// The cheapest plan known within a budget; null: none. It states the budget and the overlapped seconds of where it was
/// found.
const Plan* best_within(const Curve& curve, Bytes budget, DeviceId device);

/// The best bound known for a budget; null: none, or no plan fits it at all (sweep.proved).
const LowerBound* bound_at(const Sweep& sweep, Bytes budget);

/// How much more a cost is than the cheapest run without a budget, 0.1 = 10 %; 0 where that run costs nothing.
double overhead(const Sweep& sweep, double cost);

/// The cost of a plan by the sweep's objective.
double cost_of(const Sweep& sweep, const Plan& plan);

/// (cost - bound) / reference as in Plan::gap; none where either is not known.
std::optional<double> gap_at(const Sweep& sweep, const Curve& curve, Bytes budget);

/// UserError for an unknown planner, an unsound problem, or from > to.
Sweep sweep(const Problem& problem, const SweepOptions& options);

/// The least budget of options.device at which a plan of the first planner costs no more than its cheapest run without
/// one: found by bisection over plans, proved by bounds (bounds.hpp) below.
FreeBudget smallest_free_budget(const Problem& problem, const SweepOptions& options);

/// "neaptide.curve" version 1.
std::string to_json(const Sweep& sweep);

/// One line per planner and budget: planner, budget_bytes, budget_percent (of keep-all), cost (by the objective),
/// overhead_percent, bound, gap_points, peak_bytes, recomputed (runs beyond an op's first). Empty fields: none known.
std::string to_csv(const Sweep& sweep);

}  // namespace neaptide::plan
