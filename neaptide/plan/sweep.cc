#include "neaptide/plan/sweep.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/json.hpp"
#include "neaptide/plan/bounds.hpp"
#include "neaptide/plan/energy.hpp"
#include "neaptide/plan/facts.hpp"
#include "neaptide/plan/forced.hpp"
#include "neaptide/plan/planners/neaptide.hpp"
#include "neaptide/plan/simulate.hpp"

namespace neaptide::plan {
namespace {

constexpr double kSame = 1e-12;                      // relative, for sums of seconds
constexpr int kMostProbes = 12;                      // of a bisection
constexpr int kResolution = 512;                     // a bisection ends at this part of the largest budget
constexpr double kGoodEnough = 5e-4;                 // gap at which no second look is taken
constexpr std::int64_t kBoundsEffort = 400'000'000;  // arcs of flow work for a bisection over bounds

bool at_most(double a, double b) { return a <= b * (1 + kSame); }

/// a + (b - a) x i / n, exactly rounded down.
Bytes between(Bytes a, Bytes b, std::int64_t i, std::int64_t n) {
  return n == 0 ? a : static_cast<Bytes>(a + static_cast<Wide>(b - a) * i / n);
}

/// By the objective that it was planned for.
double cost(const Plan& plan) { return cost_by(plan.cost, plan.objective); }

void add(Curve& curve, Plan plan, DeviceId device) {
  if (plan.steps.empty()) return;
  const Bytes need = extent(plan, device);
  const auto beats = [&](const Plan& p) { return extent(p, device) <= need && cost(p) <= cost(plan); };
  if (std::any_of(curve.plans.begin(), curve.plans.end(), beats)) return;
  std::erase_if(curve.plans, [&](const Plan& p) { return extent(p, device) >= need && cost(p) >= cost(plan); });
  const auto at =
      std::find_if(curve.plans.begin(), curve.plans.end(), [&](const Plan& p) { return extent(p, device) > need; });
  curve.plans.insert(at, std::move(plan));
}

void add(std::vector<BoundAt>& bounds, Bytes budget, const LowerBound& bound) {
  const auto beats = [&](const BoundAt& b) { return b.budget >= budget && b.bound.seconds >= bound.seconds; };
  if (bound.certificate.empty() || std::any_of(bounds.begin(), bounds.end(), beats)) return;
  std::erase_if(bounds, [&](const BoundAt& b) { return b.budget <= budget && b.bound.seconds <= bound.seconds; });
  const auto at = std::find_if(bounds.begin(), bounds.end(), [&](const BoundAt& b) { return b.budget > budget; });
  bounds.insert(at, BoundAt{budget, bound});
}

/// One sweep under way: what is known so far, and the calls that add to it.
class Sweeper {
 public:
  Sweeper(const Problem& problem, const SweepOptions& options) : options_(options), problem_(problem) {
    ensure(problem.devices.has(options.device), "there is no such device");
    ensure(!options.planners.empty(), "a sweep needs a planner");
    const Problem chosen = with_options(problem, options.plan);
    const Simulation keep_all = simulate(chosen, keep_all_steps(chosen));
    unlimited_ = chosen;
    unlimited_.devices[options.device].budget.reset();
    out_.problem = problem.name;
    out_.device = problem.devices[options.device].name;
    out_.device_id = options.device;
    out_.keep_all = keep_all.peak[options.device];
    out_.objective = options.plan.objective;
    out_.keep_all_cost = cost_by(keep_all.cost, out_.objective);
    if (out_.objective == Objective::kTime) out_.once_each = once_each(chosen);
    if (out_.objective == Objective::kEnergy) out_.once_each = once_each(in_joules(chosen));
    out_.proved = smallest_peak(unlimited_, options.device).bytes;
    for (const std::string& p : options.planners) out_.curves.push_back({p, {}});
    const auto ours = std::find(options.planners.begin(), options.planners.end(), "neaptide");
    main_ = ours == options.planners.end() ? 0 : static_cast<std::size_t>(ours - options.planners.begin());
  }

  Sweep run() {
    total_ = 1 + (options_.points + (options_.free_budget ? kMostProbes / 2 : 0)) +
             options_.points * static_cast<int>(options_.planners.size() - 1);
    find_fastest();
    out_.budgets = budgets();
    for (std::size_t c = 0; c < out_.curves.size(); ++c) {
      for (const Bytes budget : out_.budgets) plan_at(c, budget);
      if (options_.warm) come_down(c);
      if (c == main_ && options_.free_budget) find_free();
    }
    settle();
    return std::move(out_);
  }

  FreeBudget free_budget() {
    total_ = 1 + kMostProbes;
    find_fastest();
    find_free();
    return std::move(out_.free);
  }

 private:
  double elapsed() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }

  bool stopped() {
    if (!out_.stopped_by.empty()) return true;
    if (elapsed() >= options_.plan.time_limit) out_.stopped_by = "time";
    if (options_.plan.interrupted()) out_.stopped_by = "interrupt";
    return !out_.stopped_by.empty();
  }

  /// Plans once, without a budget where none is given, and records what that shows.
  Plan attempt(std::size_t curve, std::optional<Bytes> budget, const Plan* start) {
    Options o = options_.plan;
    o.start.clear();
    if (start != nullptr && options_.warm) o.start = start->steps;
    o.budgets.erase(out_.device);
    if (budget) o.budgets[out_.device] = *budget;
    const int left = std::max(1, total_ - done_);
    o.time_limit = std::max(0.0, options_.plan.time_limit - elapsed()) / left;
    Problem problem = problem_;
    if (!budget) problem.devices[options_.device].budget.reset();
    Plan plan = options_.make(problem, out_.curves[curve].planner, o);
    if (plan.stopped_by == "interrupt") out_.stopped_by = "interrupt";
    if (budget && plan.lower_bound) add(out_.bounds, *budget, *plan.lower_bound);
    if (budget && plan.infeasible && plan.infeasible->device == options_.device) {
      out_.proved = std::max(out_.proved, plan.infeasible->proved);
    }
    add(out_.curves[curve], plan, options_.device);
    ++done_;
    if (options_.progress) options_.progress(std::min(done_, total_), total_, budget.value_or(0));
    return plan;
  }

  void plan_at(std::size_t curve, Bytes budget) {
    if (stopped()) return;
    attempt(curve, budget, best_within(out_.curves[curve], budget, options_.device));
  }

  /// A second look from the other side: the plan of the next larger budget, repaired where it is over this one.
  void come_down(std::size_t curve) {
    Curve& c = out_.curves[curve];
    if (c.planner != "neaptide") return;  // no other planner starts from a plan
    for (std::size_t i = out_.budgets.size() - 1; i-- > 0 && !stopped();) {
      const Plan* here = best_within(c, out_.budgets[i], options_.device);
      const Plan* above = best_within(c, out_.budgets[i + 1], options_.device);
      if (above == nullptr || above == here) continue;
      const std::optional<double> gap = gap_at(out_, c, out_.budgets[i]);
      if (gap && *gap <= std::max(options_.plan.gap, kGoodEnough)) continue;
      attempt(curve, out_.budgets[i], above);
    }
  }

  void find_fastest() {
    const Plan fastest = attempt(main_, std::nullopt, nullptr);
    if (fastest.steps.empty()) return;
    out_.free.cost = cost(fastest);
    out_.free.proved_cheapest = fastest.status == Status::kOptimal;
    note_free();
  }

  /// The plan of the least bytes among those that cost no more than the cheapest, which may be found later.
  void note_free() {
    const std::vector<Plan>& plans = out_.curves[main_].plans;
    if (plans.empty()) return;
    if (!at_most(out_.free.cost, cost(plans.back()))) out_.free.cost = cost(plans.back());
    for (const Plan& p : plans) {
      if (!at_most(cost(p), out_.free.cost)) continue;
      out_.free.plan = p;
      out_.free.found = extent(p, options_.device);
      return;
    }
  }

  std::vector<Bytes> budgets() {
    note_free();
    Bytes from = options_.from ? *options_.from : smallest_budget(problem_, options_.plan, options_.device);
    const Bytes to = options_.to ? *options_.to : std::max({from, out_.keep_all, out_.free.found});
    if (from > to) throw UserError("a sweep from {} to {} bytes is empty; from must not be above to", from, to);
    std::vector<Bytes> out;
    const int n = std::max(1, options_.points);
    for (int i = 0; i < n; ++i) {
      const Bytes b = n == 1 ? to : between(from, to, i, n - 1);
      if (out.empty() || out.back() != b) out.push_back(b);
    }
    return out;
  }

  /// The largest budget that is proved to cost more than the fastest run; -1: none.
  Bytes proved_dear() const {
    Bytes most = out_.proved - 1;
    for (const BoundAt& b : out_.bounds) {
      if (b.bound.seconds > out_.free.cost * (1 + kSame)) most = std::max(most, b.budget);
    }
    return most;
  }

  void find_free() {
    if (out_.curves[main_].plans.empty()) return;
    note_free();
    Bytes low = proved_dear();  // the search sees no such plan at low; there is one at found
    for (const Bytes b : out_.budgets) {
      const Plan* p = best_within(out_.curves[main_], b, options_.device);
      if (p == nullptr || !at_most(cost(*p), out_.free.cost)) low = std::max(low, b);
    }
    const Bytes fine = out_.free.found / kResolution;
    for (int probe = 0; probe < kMostProbes && low + 1 < out_.free.found && !stopped(); ++probe) {
      if (out_.free.found - low <= fine) break;
      const Bytes budget = between(low, out_.free.found, 1, 2);
      const Plan* start = best_within(out_.curves[main_], out_.free.found, options_.device);
      const Plan p = attempt(main_, budget, start);
      if (p.steps.empty() || !at_most(cost(p), out_.free.cost)) low = budget;
      note_free();
    }
    prove_free();
    out_.free.proved = proved_dear() + 1;
  }

  /// Bisection with bounds alone, between what is proved and what was found.
  void prove_free() {
    if (out_.objective != Objective::kTime) return;
    std::int64_t effort = kBoundsEffort;
    Bytes low = proved_dear(), high = out_.free.found;
    const double enough = out_.free.cost * (1 + 1e-9);
    while (low + 1 < high && effort > 0 && !stopped()) {
      const Bytes budget = between(low, high, 1, 2);
      Problem bounded = unlimited_;
      bounded.devices[options_.device].budget = budget;
      CutBounds cuts(bounded, options_.device, BoundScope::kAnyOrder);
      cuts.stop = [this] { return stopped(); };
      add(out_.bounds, budget, cuts.best(effort / 4, enough));
      effort -= std::max<std::int64_t>(cuts.work(), kBoundsEffort / 1000);
      const Bytes now = proved_dear();
      (now >= budget ? low : high) = now >= budget ? now : budget;
    }
  }

  void settle() {
    const auto& plans = out_.curves[main_].plans;
    if (!plans.empty()) out_.smallest = extent(plans.front(), options_.device);
    note_free();
    out_.free.proved = std::max(out_.free.proved, proved_dear() + 1);
    if (!out_.free.plan) out_.free.proved = 0;
  }

  const SweepOptions& options_;
  const Problem& problem_;
  Problem unlimited_;  // the options applied, no budget on the device
  Sweep out_;
  std::size_t main_ = 0;  // the curve that answers the questions about the problem
  int done_ = 0, total_ = 1;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

int recomputed(const Plan& plan) {
  std::vector<OpId> ops;
  for (const Step& s : plan.steps) {
    if (const auto* c = std::get_if<Compute>(&s)) ops.push_back(c->op);
  }
  const auto n = static_cast<int>(ops.size());
  std::sort(ops.begin(), ops.end());
  return n - static_cast<int>(std::unique(ops.begin(), ops.end()) - ops.begin());
}

double percent_of_keep_all(const Sweep& s, Bytes bytes) {
  return s.keep_all == 0 ? 0 : 100 * static_cast<double>(bytes) / static_cast<double>(s.keep_all);
}

Json point_json(const Sweep& s, const Curve& curve, Bytes budget) {
  const Plan* plan = best_within(curve, budget, s.device_id);
  const LowerBound* bound = bound_at(s, budget);
  const std::optional<double> gap = gap_at(s, curve, budget);
  Json out{{"budget", budget}, {"percent", percent_of_keep_all(s, budget)}, {"feasible", plan != nullptr}};
  out["impossible"] = budget < s.proved;
  out["cost"] = plan ? Json(cost(*plan)) : Json();
  out["overhead"] = plan ? Json(overhead(s, cost(*plan))) : Json();
  out["bound"] = bound ? Json(bound->seconds) : Json();
  out["gap"] = gap ? Json(*gap) : Json();
  out["peak"] = plan ? Json(extent(*plan, s.device_id)) : Json();
  out["recomputed"] = plan ? Json(recomputed(*plan)) : Json();
  return out;
}

}  // namespace

Bytes extent(const Plan& plan, DeviceId device) {
  const Bytes peak = plan.peak.has(device) ? plan.peak[device] : 0;
  return plan.layout && plan.layout->top.has(device) ? std::max(peak, plan.layout->top[device]) : peak;
}

const Plan* best_within(const Curve& curve, Bytes budget, DeviceId device) {
  const Plan* best = nullptr;
  for (const Plan& p : curve.plans) {
    if (extent(p, device) <= budget) best = &p;  // later ones are faster
  }
  return best;
}

const LowerBound* bound_at(const Sweep& sweep, Bytes budget) {
  if (budget < sweep.proved) return nullptr;
  for (const BoundAt& b : sweep.bounds) {
    if (b.budget >= budget) return &b.bound;  // earlier ones are higher
  }
  return nullptr;
}

double overhead(const Sweep& sweep, double cost) { return sweep.free.cost > 0 ? cost / sweep.free.cost - 1 : 0; }

double cost_of(const Sweep& sweep, const Plan& plan) { return cost_by(plan.cost, sweep.objective); }

std::optional<double> gap_at(const Sweep& s, const Curve& curve, Bytes budget) {
  const Plan* plan = best_within(curve, budget, s.device_id);
  const LowerBound* bound = bound_at(s, budget);
  if (plan == nullptr || bound == nullptr) return std::nullopt;
  const double reference = s.objective == Objective::kOverlap ? bound->seconds : s.once_each;
  return reference <= 0 ? 0 : std::max(0.0, cost_of(s, *plan) - bound->seconds) / reference;
}

Sweep sweep(const Problem& problem, const SweepOptions& options) { return Sweeper(problem, options).run(); }

FreeBudget smallest_free_budget(const Problem& problem, const SweepOptions& options) {
  return Sweeper(problem, options).free_budget();
}

std::string to_json(const Sweep& s) {
  Json root{{"format", "neaptide.curve"}, {"version", 1}, {"problem", s.problem}, {"device", s.device}};
  root["objective"] = to_string(s.objective);
  root["keep_all"] = {{"bytes", s.keep_all}, {"cost", s.keep_all_cost}};
  root["smallest"] = {{"bytes", s.smallest}, {"proved", s.proved}};
  root["no_extra_time"] = {{"bytes", s.free.plan ? Json(s.free.found) : Json()},
                           {"proved", s.free.proved},
                           {"cost", s.free.cost},
                           {"proved_cheapest", s.free.proved_cheapest}};
  root["stopped_by"] = s.stopped_by;
  root["curves"] = Json::array();
  for (const Curve& curve : s.curves) {
    Json points = Json::array();
    for (const Bytes budget : s.budgets) points.push_back(point_json(s, curve, budget));
    root["curves"].push_back({{"planner", curve.planner}, {"points", std::move(points)}});
  }
  return json_text(root);
}

std::string to_csv(const Sweep& s) {
  std::string out =
      "planner,budget_bytes,budget_percent,cost,overhead_percent,bound,gap_points,peak_bytes,recomputed\n";
  for (const Curve& curve : s.curves) {
    for (const Bytes budget : s.budgets) {
      const Plan* p = best_within(curve, budget, s.device_id);
      const LowerBound* b = bound_at(s, budget);
      const std::optional<double> gap = gap_at(s, curve, budget);
      out += fmt::format("{},{},{:.4f},", curve.planner, budget, percent_of_keep_all(s, budget));
      out += p != nullptr ? fmt::format("{},{:.6f},", cost(*p), 100 * overhead(s, cost(*p))) : ",,";
      out += b != nullptr ? fmt::format("{},", b->seconds) : ",";
      out += gap ? fmt::format("{:.6f},", 100 * *gap) : ",";
      out += p != nullptr ? fmt::format("{},{}\n", extent(*p, s.device_id), recomputed(*p)) : ",\n";
    }
  }
  return out;
}

}  // namespace neaptide::plan
