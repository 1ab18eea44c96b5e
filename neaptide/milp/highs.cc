// HiGHS through its C interface (its C++ interface has another ABI).
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>

#include "interfaces/highs_c_api.h"
#include "neaptide/base/errors.hpp"
#include "neaptide/milp/relaxation.hpp"
#include "neaptide/milp/solve.hpp"

namespace neaptide::milp {
namespace {

constexpr double kMostViolation = 1e-5;

struct Destroy {
  void operator()(void* highs) const { Highs_destroy(highs); }
};
using Handle = std::unique_ptr<void, Destroy>;

void expect(HighsInt status, const char* what) {
  if (status == kHighsStatusError) throw InternalError("HiGHS refused to {}", what);
}

bool has_integers(const Model& model) {
  return std::any_of(model.columns.begin(), model.columns.end(), [](const Column& c) { return c.integer; });
}

/// The model as the arrays that the C interface takes, row by row.
void pass(void* highs, const Model& model, bool relax) {
  const double infinity = Highs_getInfinity(highs);
  const auto bounded = [&](double v) { return std::isinf(v) ? std::copysign(infinity, v) : v; };
  std::vector<double> cost, lower, upper, row_lower, row_upper, value;
  std::vector<HighsInt> start, index, integrality;
  for (const Column& c : model.columns) {
    cost.push_back(c.cost);
    lower.push_back(bounded(c.lower));
    upper.push_back(bounded(c.upper));
    integrality.push_back(c.integer && !relax ? kHighsVarTypeInteger : kHighsVarTypeContinuous);
  }
  for (const Row& row : model.rows) {
    start.push_back(static_cast<HighsInt>(index.size()));
    row_lower.push_back(bounded(row.lower));
    row_upper.push_back(bounded(row.upper));
    for (const Term& t : row.terms) {
      index.push_back(t.var.index);
      value.push_back(t.factor);
    }
  }
  expect(Highs_passMip(highs, static_cast<HighsInt>(cost.size()), static_cast<HighsInt>(row_lower.size()),
                       static_cast<HighsInt>(index.size()), kHighsMatrixFormatRowwise, kHighsObjSenseMinimize,
                       model.offset, cost.data(), lower.data(), upper.data(), row_lower.data(), row_upper.data(),
                       start.data(), index.data(), value.data(), integrality.data()),
         "take the model");
}

void set_options(void* highs, const SolveOptions& o) {
  expect(Highs_setBoolOptionValue(highs, "output_flag", 0), "be quiet");
  expect(Highs_setDoubleOptionValue(highs, "mip_rel_gap", o.gap), "take the gap");
  expect(Highs_setDoubleOptionValue(highs, "mip_abs_gap", 0), "take the gap");
  expect(Highs_setIntOptionValue(highs, "random_seed", o.seed), "take the seed");
  expect(Highs_setIntOptionValue(highs, "threads", o.threads), "take the number of threads");
  expect(Highs_setStringOptionValue(highs, "parallel", o.threads > 1 ? "on" : "off"), "take the number of threads");
  if (std::isfinite(o.time_limit))
    expect(Highs_setDoubleOptionValue(highs, "time_limit", std::max(0.0, o.time_limit)), "take the time limit");
}

void on_callback(int kind, const char*, const HighsCallbackDataOut* out, HighsCallbackDataIn* in, void* data) {
  if (kind != kHighsCallbackMipInterrupt) return;
  const auto& progress = *static_cast<const std::function<bool(const SolveProgress&)>*>(data);
  if (!progress({out->mip_primal_bound, out->mip_dual_bound, out->mip_node_count})) in->user_interrupt = 1;
}

void fill_values(void* highs, const Model& model, bool relax, Solution& s) {
  std::vector<double> values(model.columns.size()), costs(model.columns.size());
  std::vector<double> activities(model.rows.size()), duals(model.rows.size());
  expect(Highs_getSolution(highs, values.data(), costs.data(), activities.data(), duals.data()), "give its solution");
  const bool integers = has_integers(model) && !relax;
  for (std::size_t j = 0; j < values.size() && integers; ++j) {
    if (model.columns[j].integer) values[j] = std::round(values[j]);
  }
  Model judged = model;
  if (relax) {
    for (Column& c : judged.columns) c.integer = false;
  }
  double scale = 1;
  for (const Row& row : model.rows) {
    for (const Term& t : row.terms) scale = std::max(scale, std::abs(t.factor));
  }
  const double off = violation(judged, values) / scale;
  if (off > kMostViolation) throw InternalError("HiGHS returned values that violate model '{}' by {}", model.name, off);
  s.objective = objective(model, values);
  s.values = std::move(values);
  if (integers) return;
  s.row_duals = std::move(duals);
  s.reduced_costs = std::move(costs);
}

Outcome outcome_of(HighsInt status, bool has_solution) {
  if (status == kHighsModelStatusOptimal || status == kHighsModelStatusModelEmpty) return Outcome::kOptimal;
  if (status == kHighsModelStatusInfeasible) return Outcome::kInfeasible;
  if (status == kHighsModelStatusUnbounded || status == kHighsModelStatusUnboundedOrInfeasible)
    return Outcome::kUnbounded;
  return has_solution ? Outcome::kFeasible : Outcome::kNothing;
}

}  // namespace

std::string why_not_built() { return ""; }

std::string solver_name() { return std::string("HiGHS ") + Highs_version(); }

Solution solve(const Model& model, const SolveOptions& options) {
  const Handle handle(Highs_create());
  void* highs = handle.get();
  set_options(highs, options);
  pass(highs, model, options.relax);
  if (!options.start.empty())
    expect(Highs_setSolution(highs, options.start.data(), nullptr, nullptr, nullptr), "take the start");
  std::function<bool(const SolveProgress&)> progress = options.progress;
  if (progress) {
    expect(Highs_setCallback(highs, on_callback, &progress), "report progress");
    expect(Highs_startCallback(highs, kHighsCallbackMipInterrupt), "report progress");
  }
  const auto begin = std::chrono::steady_clock::now();
  expect(Highs_run(highs), "solve the model");
  Solution s;
  s.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const HighsInt status = Highs_getModelStatus(highs);
  HighsInt primal = 0;
  Highs_getIntInfoValue(highs, "primal_solution_status", &primal);
  const bool has_solution = primal == kHighsSolutionStatusFeasible;
  s.outcome = outcome_of(status, has_solution);
  if (status == kHighsModelStatusTimeLimit) s.stopped_by = "time";
  if (status == kHighsModelStatusInterrupt) s.stopped_by = "interrupt";
  if (has_solution) fill_values(highs, model, options.relax, s);
  const bool integers = has_integers(model) && !options.relax;
  if (integers) {
    Highs_getDoubleInfoValue(highs, "mip_dual_bound", &s.bound);
    Highs_getInt64InfoValue(highs, "mip_node_count", &s.nodes);
  } else if (s.outcome == Outcome::kOptimal) {
    s.bound = s.objective;
  }
  return s;
}

struct Relaxation::Solver {
  Handle handle{Highs_create()};
};

Relaxation::Relaxation(const Model& model) : solver_(std::make_unique<Solver>()) {
  void* highs = solver_->handle.get();
  set_options(highs, {});
  expect(Highs_setStringOptionValue(highs, "presolve", "off"), "leave presolve out");
  pass(highs, model, true);
}

Relaxation::~Relaxation() = default;
Relaxation::Relaxation(Relaxation&&) noexcept = default;

void Relaxation::bound(Var var, double lower, double upper) {
  expect(Highs_changeColBounds(solver_->handle.get(), var.index, lower, upper), "change a bound");
}

void Relaxation::add_row(double lower, double upper, const std::vector<Term>& terms) {
  void* highs = solver_->handle.get();
  const double infinity = Highs_getInfinity(highs);
  std::vector<HighsInt> index;
  std::vector<double> value;
  for (const Term& t : terms) {
    index.push_back(t.var.index);
    value.push_back(t.factor);
  }
  expect(Highs_addRow(highs, std::isinf(lower) ? -infinity : lower, std::isinf(upper) ? infinity : upper,
                      static_cast<HighsInt>(index.size()), index.data(), value.data()),
         "take a row");
}

void Relaxation::remove_rows(const std::vector<int>& rows) {
  if (rows.empty()) return;
  const std::vector<HighsInt> set(rows.begin(), rows.end());
  expect(Highs_deleteRowsBySet(solver_->handle.get(), static_cast<HighsInt>(set.size()), set.data()), "drop rows");
}

void Relaxation::start_from(const Relaxation& other) {
  if (other.values_.empty()) return;
  void* from = other.solver_->handle.get();
  std::vector<HighsInt> columns(static_cast<std::size_t>(Highs_getNumCol(from)));
  std::vector<HighsInt> rows(static_cast<std::size_t>(Highs_getNumRow(from)));
  if (Highs_getBasis(from, columns.data(), rows.data()) == kHighsStatusError) return;
  expect(Highs_setBasis(solver_->handle.get(), columns.data(), rows.data()), "take a basis");
}

std::vector<char> Relaxation::idle_rows() const {
  std::vector<HighsInt> columns(values_.size()), rows(duals_.size());
  expect(Highs_getBasis(solver_->handle.get(), columns.data(), rows.data()), "give its basis");
  std::vector<char> idle(rows.size());
  for (std::size_t r = 0; r < rows.size(); ++r) idle[r] = rows[r] == kHighsBasisStatusBasic ? 1 : 0;
  return idle;
}

std::vector<int> Relaxation::basic() const {
  std::vector<HighsInt> basic(duals_.size());
  if (basic.empty()) return {};
  if (Highs_getBasicVariables(solver_->handle.get(), basic.data()) == kHighsStatusError) return {};
  std::vector<int> out;
  for (const HighsInt b : basic) out.push_back(b >= 0 ? b : -1);
  return out;
}

std::vector<std::pair<int, double>> Relaxation::tableau_row(int place) const {
  std::vector<double> dense(duals_.size());
  std::vector<HighsInt> index(duals_.size());
  HighsInt n = 0;
  const HighsInt status = Highs_getBasisInverseRow(solver_->handle.get(), place, dense.data(), &n, index.data());
  if (status == kHighsStatusError) return {};
  std::vector<std::pair<int, double>> out;
  for (HighsInt i = 0; i < n; ++i) out.emplace_back(index[i], dense[index[i]]);
  std::sort(out.begin(), out.end());
  return out;
}

Relaxation::Outcome Relaxation::solve(std::int64_t most_iterations) {
  void* highs = solver_->handle.get();
  const auto most =
      static_cast<HighsInt>(std::clamp<std::int64_t>(most_iterations, 1, std::numeric_limits<std::int32_t>::max()));
  expect(Highs_setIntOptionValue(highs, "simplex_iteration_limit", most), "take an iteration limit");
  const bool ran = Highs_run(highs) != kHighsStatusError;
  HighsInt iterations = 0;
  Highs_getIntInfoValue(highs, "simplex_iteration_count", &iterations);
  iterations_ += std::max<HighsInt>(iterations, 0);
  const HighsInt status = Highs_getModelStatus(highs);
  duals_.assign(static_cast<std::size_t>(Highs_getNumRow(highs)), 0);
  if (ran && status == kHighsModelStatusInfeasible) {
    HighsInt has_ray = 0;
    if (Highs_getDualRay(highs, &has_ray, duals_.data()) == kHighsStatusError || has_ray == 0) duals_.clear();
    return Outcome::kInfeasible;
  }
  if (!ran || status != kHighsModelStatusOptimal) return Outcome::kStopped;
  values_.resize(static_cast<std::size_t>(Highs_getNumCol(highs)));
  std::vector<double> costs(values_.size()), activities(duals_.size());
  expect(Highs_getSolution(highs, values_.data(), costs.data(), activities.data(), duals_.data()), "give its solution");
  objective_ = Highs_getObjectiveValue(highs);
  return Outcome::kOptimal;
}

}  // namespace neaptide::milp
