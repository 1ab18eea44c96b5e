// How planners say what they found: a plan within the budgets, or why there is none.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "neaptide/plan/planner.hpp"

namespace neaptide::plan {

/// Largest budget excess over all devices; 0 when the peaks fit.
Bytes overflow(const Problem& problem, const IdVector<DeviceTag, Bytes>& peak);

/// The steps as a plan when they fit the problem's budgets, else `nothing_fits`.
Plan answer(const Problem& problem, std::vector<Step> steps);

/// An infeasible answer. `tried`: steps that are legal but over budget, when the planner has some; their peak is then a
/// feasible budget.
Plan nothing_fits(const Problem& problem, const std::vector<Step>& tried = {});

/// Keeps the fastest of the sequences offered that fits the budgets, else the one that overflows least.
class BestPlan {
 public:
  explicit BestPlan(const Problem& problem) : problem_(problem) {}
  void offer(std::vector<Step> steps);  // an empty sequence counts as none
  bool fits() const { return !steps_.empty() && over_ == 0; }
  Seconds seconds() const { return seconds_; }
  const std::vector<Step>& steps() const { return steps_; }
  Plan plan() &&;

 private:
  const Problem& problem_;
  std::vector<Step> steps_;
  Bytes over_ = 0;
  Seconds seconds_ = 0;
};

/// UserError with "did you mean" unless every key of options.switches is known.
void check_switches(const Options& options, std::string_view planner, std::initializer_list<const char*> known);

/// The value of a switch, or `otherwise`. UserError unless it is one of `values` (when given).
std::string switch_value(const Options& options, const std::string& name, const std::string& otherwise,
                         std::initializer_list<const char*> values = {});

/// A switch that is a number between two others; nothing when it is not given, or "auto". UserError naming the range.
std::optional<double> switch_number(const Options& options, const std::string& name, double least, double most);
/// The same for whole numbers.
std::optional<int> switch_count(const Options& options, const std::string& name, int least, int most);

}  // namespace neaptide::plan
