// What every group of the planner benchmark shares: options from the command line, one row per problem and budget, and
// one line per group that says whether what was required was reached.
//
//   Table t("dtr", "first plan within 2 s, gap at most 0.3 points at .50", settings);
//   const Result r = solve(problem, options);
//   t.row(r, {.problem = "dtr_resnet32_b56", .budget = ".50", .unit = Unit::kPercent, .reference = "9.072"}, passed);
//   t.verdict();
#pragma once

#include <limits>
#include <optional>
#include <string>

#include "neaptide/plan/planner.hpp"

namespace neaptide::bench {

struct Settings {
  Seconds time_limit = std::numeric_limits<double>::infinity();  // per row; none: the planner's default effort
  std::int64_t effort = 0;                                       // ticks per row
  int threads = 2;
  std::optional<bool> keep_order;  // of first runs; none: as the references of the group do
  std::string shared;              // folder of the public instances, with a slash at the end

  /// A file of that folder; nothing, and a line that says so, when it is absent.
  std::optional<std::string> file(const std::string& name) const;
  std::optional<plan::Problem> instance(const std::string& name) const;
  plan::Options options() const;
};

/// A plan as the table shows it.
struct Result {
  plan::Plan plan;
  Seconds base = 0;        // keep-all: overheads are relative to it
  bool certified = false;  // the checker accepts the bound
  Seconds first_plan = 0;  // until the first incumbent
  double overhead() const { return 100 * (plan.cost.seconds / base - 1); }
  double bound_overhead() const { return 100 * (plan.lower_bound->seconds / base - 1); }
  double gap() const { return 100 * plan.gap.value_or(0); }  // points
  bool found() const { return !plan.infeasible; }
};

Result solve(const plan::Problem& problem, plan::Options options, const std::string& planner = "neaptide");

enum class Unit { kPercent, kSeconds };

struct Labels {
  std::string problem, budget;
  Unit unit = Unit::kPercent;
  std::string reference;
};

class Table {
 public:
  Table(std::string name, std::string requirement);
  /// `passed`: nothing where nothing is required of the row.
  void row(const Result& result, const Labels& labels, std::optional<bool> passed);
  /// A row of the group's own making.
  void line(const std::string& text, std::optional<bool> passed);
  void verdict() const;

 private:
  void count(std::optional<bool> passed);
  std::string name_, requirement_;
  int n_required_ = 0, n_passed_ = 0;
};

}  // namespace neaptide::bench
