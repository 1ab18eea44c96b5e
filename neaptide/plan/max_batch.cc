#include "neaptide/plan/max_batch.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/json.hpp"
#include "neaptide/plan/answer.hpp"
#include "neaptide/plan/bounds.hpp"
#include "neaptide/plan/facts.hpp"
#include "neaptide/plan/forced.hpp"
#include "neaptide/plan/simulate.hpp"

namespace neaptide::plan {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Seconds kAnyCost = std::numeric_limits<double>::infinity();
constexpr double kSame = 1e-12;
constexpr std::int64_t kCutEffortPerOp = 200'000;
constexpr std::int64_t kProbeEffort = 10'000'000;  // one to two seconds
constexpr std::int64_t kLongEffort = 40'000'000;   // some seconds
constexpr double kNearlyCheap = 1.02;

/// Sizes and seconds aside, the two are the same: steps of one are steps of the other.
bool same_shape(const Problem& a, const Problem& b) {
  const auto shape = [](Problem p) {
    p.name.clear();
    for (std::size_t i = 0; i < p.buffers.size(); ++i) p.buffers[BufferId(i)].bytes = 0;
    for (std::size_t i = 0; i < p.ops.size(); ++i) {
      for (Impl& impl : p.ops[OpId(i)].impls) {
        impl.seconds = 0;
        impl.workspace = 0;
        impl.joules = impl.joules ? std::optional<double>(0) : std::nullopt;
      }
    }
    for (CopyCost& c : p.copies) {
      c.seconds = 0;
      c.joules = c.joules ? std::optional<double>(0) : std::nullopt;
    }
    return p;
  };
  return shape(a) == shape(b);
}

/// Every buffer and workspace of `large` is at least that of `small`.
bool sizes_grow(const Problem& small, const Problem& large) {
  for (std::size_t i = 0; i < small.buffers.size(); ++i) {
    if (small.buffers[BufferId(i)].bytes > large.buffers[BufferId(i)].bytes) return false;
  }
  for (std::size_t o = 0; o < small.ops.size(); ++o) {
    for (std::size_t k = 0; k < small.ops[OpId(o)].impls.size(); ++k) {
      if (small.ops[OpId(o)].impls[k].workspace > large.ops[OpId(o)].impls[k].workspace) return false;
    }
  }
  return true;
}

/// One factor takes the seconds of every implementation from one problem to the other.
bool seconds_in_proportion(const Problem& a, const Problem& b) {
  double factor = 0;
  for (std::size_t o = 0; o < a.ops.size(); ++o) {
    for (std::size_t k = 0; k < a.ops[OpId(o)].impls.size(); ++k) {
      const Seconds x = a.ops[OpId(o)].impls[k].seconds, y = b.ops[OpId(o)].impls[k].seconds;
      if (x == 0 && y == 0) continue;
      if (x == 0) return false;
      if (factor == 0) factor = y / x;
      if (std::abs(y - factor * x) > 1e-9 * y) return false;
    }
  }
  return true;
}

class Asking {
 public:
  explicit Asking(const BatchQuestion& question) : q_(question), begin_(Clock::now()) {}

  MaxBatch run() {
    if (q_.first < 1 || q_.last < q_.first)
      throw UserError("batches from {} to {} hold none; the first is at least 1", q_.first, q_.last);
    const Problem& p = problem(q_.first);
    const auto limited = [&](DeviceId d) { return p.devices[d].budget.has_value(); };
    bool any = false;
    for (std::size_t d = 0; d < p.devices.size(); ++d) any = any || limited(DeviceId(d));
    if (!any) throw UserError("without a budget there is no largest batch; give one in bytes");
    find_ceiling();
    search();
    prove();
    polish();
    conclude();
    return std::move(out_);
  }

 private:
  double elapsed() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }
  bool stopped() {
    out_.interrupted = out_.interrupted || q_.options.interrupted();
    out_.out_of_time = out_.out_of_time || elapsed() >= q_.options.time_limit;
    return out_.interrupted || out_.out_of_time;
  }

  const Problem& problem(std::int64_t batch) {
    const auto [it, fresh] = built_.try_emplace(batch);
    if (fresh) it->second = q_.problem(batch);
    return it->second;
  }
  Seconds most(const Problem& p) const { return q_.most ? q_.most(p) * (1 + kSame) : kAnyCost; }

  /// By how much the unavoidable working sets overflow; negative: how much they leave.
  double excess(std::int64_t batch) {
    const Problem& p = problem(batch);
    double most = -std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < p.devices.size(); ++i) {
      const DeviceId d(i);
      if (!p.devices[d].budget) continue;
      most = std::max(most, static_cast<double>(smallest_peak(p, d).bytes - *p.devices[d].budget));
    }
    return prove_infeasible(p) ? std::max(most, 1.0) : std::min(most, 0.0);
  }

  /// The first batch that the working sets alone forbid. They grow in lines, so that a line finds it.
  void find_ceiling() {
    std::int64_t low = q_.first, high = q_.last;
    double at_low = excess(low);
    constexpr const char* kWorkingSet = "an op's inputs, outputs and workspace alone are beyond the budget";
    if (at_low > 0) return forbid(low, kWorkingSet);
    double at_high = 0;
    std::int64_t step = low;
    for (;;) {  // outwards
      high = low > q_.last - step ? q_.last : low + step;
      at_high = excess(high);
      if (at_high > 0) break;
      if (high == q_.last) return;
      const double slope = (at_high - at_low) / static_cast<double>(high - low);
      low = high;
      at_low = at_high;
      const double guess = slope > 0 ? -at_high / slope * 1.02 + 2 : 0;
      step = std::max<std::int64_t>(step * 2, guess < 1e9 ? static_cast<std::int64_t>(guess) : 0);
    }
    for (int side = 0; high - low > 1; side ^= 1) {  // inwards
      const double part = at_low < 0 ? -at_low / (at_high - at_low) : 0.5;
      // Floor and ceiling by turns close in from both sides.
      const double guess = part * static_cast<double>(high - low);
      const auto into = static_cast<std::int64_t>(side == 0 ? std::floor(guess) : std::ceil(guess));
      const std::int64_t middle = low + std::clamp<std::int64_t>(into, 1, high - low - 1);
      const double here = excess(middle);
      (here > 0 ? high : low) = middle;
      (here > 0 ? at_high : at_low) = here;
    }
    forbid(high, kWorkingSet);
  }

  /// First the largest batch that may have a plan, then by halves. A batch without a plan is passed over, not excluded.
  void search() {
    std::int64_t beyond = out_.impossible.value_or(q_.last + 1);  // no plan known from here on
    std::int64_t next = beyond - 1;
    while (next >= q_.first && next < beyond && !stopped()) {
      const std::optional<std::int64_t> hint = probe(next);
      if (out_.batch < next) beyond = next;
      const std::int64_t low = std::max(out_.batch, q_.first - 1);
      const std::int64_t reach = out_.batch == next ? std::min(reach_of_steps(beyond), beyond - 1) : 0;
      next = low + (beyond - low) / 2;
      if (hint && *hint > low && *hint < beyond) next = *hint;
      if (reach > low) next = reach;
      if (next == low) break;
    }
  }

  /// Plans one batch. Returns the batch at which the planner's smallest peak would fit, when it has found one.
  std::optional<std::int64_t> probe(std::int64_t batch) {
    const Problem& p = problem(batch);
    const double started = elapsed();
    const Seconds limit = most(p);
    BatchProbe result;
    result.batch = batch;
    std::optional<std::int64_t> hint;
    // The steps known for a smaller batch are a start; where they lead nowhere, the planner begins by itself; where
    // that is nearly cheap enough, it goes on for longer.
    std::vector<Step> start;
    if (out_.batch > 0 && same_shape(out_.problem, p)) start = out_.plan.steps;
    const std::int64_t effort = q_.options.effort, longer = effort > 0 ? 4 * effort : kLongEffort;
    std::optional<Plan> dear;  // the cheapest that costs too much
    const auto attempt = [&](std::vector<Step> from, std::int64_t ticks) {
      Plan plan = make(p, options(limit, std::move(from), ticks));
      if (plan.infeasible) hint = fitting(batch, p, *plan.infeasible);
      if (!plan.steps.empty() && (!dear || plan.cost.seconds < dear->cost.seconds)) dear = std::move(plan);
    };
    const auto done = [&] { return (dear && dear->cost.seconds <= limit) || excluded_by(dear, limit) || stopped(); };
    const auto near = [&] { return dear && dear->cost.seconds <= limit * kNearlyCheap; };
    if (!start.empty()) attempt(std::move(start), effort);
    if (!done() && !near()) attempt({}, effort);
    if (!done() && near()) attempt(dear->steps, longer);
    if (dear) result.cost = dear->cost.seconds;
    if (excluded_by(dear, limit)) {
      result.found = BatchProbe::Found::kImpossible;
      forbid(batch, "the bound of a plan for it is above the cost asked for");
    } else if (dear && dear->cost.seconds <= limit) {
      result.found = BatchProbe::Found::kPlan;
      keep(batch, p, std::move(*dear));
    }
    result.seconds = elapsed() - started;
    out_.probes.push_back(result);
    if (q_.told) q_.told(result);
    return hint;
  }

  /// Its own bound says that no plan is cheap enough; a solver's word alone excludes nothing.
  static bool excluded_by(const std::optional<Plan>& plan, Seconds limit) {
    return plan && plan->lower_bound && plan->lower_bound->vouched_by.empty() && plan->lower_bound->seconds > limit;
  }

  Options options(Seconds enough, std::vector<Step> start, std::int64_t effort) {
    Options o = q_.options;
    // The planner takes a time limit for one to be used up; here many plans share it.
    o.effort = effort == 0 && std::isfinite(q_.options.time_limit) ? kProbeEffort : effort;
    o.time_limit -= elapsed();
    o.start = std::move(start);
    o.progress = [this, enough](const Progress& progress) {
      const bool go_on = !q_.options.progress || q_.options.progress(progress);
      return go_on && progress.incumbent > enough;  // a plan that is cheap enough is an answer
    };
    return o;
  }

  Plan make(const Problem& p, const Options& o) const { return q_.make ? q_.make(p, o) : make_plan(p, "neaptide", o); }

  void keep(std::int64_t batch, const Problem& p, Plan plan) {
    out_.batch = batch;
    out_.problem = p;
    out_.plan = std::move(plan);
  }

  /// Peaks grow about as the batch does.
  static std::optional<std::int64_t> fitting(std::int64_t batch, const Problem& p, const Infeasible& why) {
    const std::optional<Bytes> budget = p.devices[why.device].budget;
    if (!budget || why.smallest <= *budget) return std::nullopt;
    return static_cast<std::int64_t>(static_cast<double>(batch) * static_cast<double>(*budget) /
                                     static_cast<double>(why.smallest));
  }

  /// The largest batch below `beyond` for which the steps found do as they are.
  std::int64_t reach_of_steps(std::int64_t beyond) {
    std::int64_t low = out_.batch, high = beyond;
    for (std::int64_t step = 1; high - low > 1; step *= 2) {
      const std::int64_t middle = low + std::min(step, (high - low) / 2);
      (do_for(middle) ? low : high) = middle;
    }
    return low;
  }
  bool do_for(std::int64_t batch) {
    const Problem& p = problem(batch);
    if (!same_shape(out_.problem, p)) return false;
    const Simulation sim = simulate(p, out_.plan.steps);
    return overflow(p, sim.peak) == 0 && sim.cost.seconds <= most(p);
  }

  void forbid(std::int64_t batch, const char* because) {
    out_.impossible = batch;
    out_.proof = because;
  }

  /// Single cuts from above: the smallest batch that one of them excludes.
  void prove() {
    std::int64_t low = std::max(out_.batch, q_.first - 1), high = out_.impossible.value_or(q_.last + 1);
    for (std::int64_t next = high - 1; next > low && !stopped(); next = low + (high - low) / 2) {
      const char* because = excluded(problem(next));
      if (because != nullptr) forbid(next, because);
      (because != nullptr ? high : low) = next;
    }
  }

  const char* excluded(const Problem& p) {
    const Seconds limit = most(p);
    if (cheapest_seconds(p) > limit) return "every op once costs more than asked for";
    const auto order = q_.options.switches.find("order");
    const bool fixed = order != q_.options.switches.end() && order->second == "off";
    for (std::size_t d = 0; d < p.devices.size(); ++d) {
      if (!p.devices[DeviceId(d)].budget) continue;
      CutBounds cuts(p, DeviceId(d), fixed ? BoundScope::kThisOrder : BoundScope::kAnyOrder);
      cuts.stop = [this] { return stopped(); };
      const LowerBound bound = cuts.best(kCutEffortPerOp * static_cast<std::int64_t>(p.ops.size()), limit);
      if (cuts.infeasible()) return "what is needed at one instant is beyond the budget";
      if (bound.seconds > limit) return "a single cut costs more than asked for";
    }
    return nullptr;
  }

  /// Any plan has done so far; now a cheap one.
  void polish() {
    if (out_.batch == 0 || stopped()) return;
    Plan plan = make(out_.problem, options(0, out_.plan.steps, q_.options.effort));
    if (!plan.steps.empty() && plan.cost.seconds <= out_.plan.cost.seconds) out_.plan = std::move(plan);
  }

  void conclude() {
    out_.seconds_spent = elapsed();
    const Problem* before = nullptr;
    bool grow = true, in_proportion = true;
    for (const auto& [batch, p] : built_) {
      if (before != nullptr) {
        grow = grow && same_shape(*before, p) && sizes_grow(*before, p);
        in_proportion = in_proportion && grow && seconds_in_proportion(*before, p);
      }
      before = &p;
    }
    out_.assumption = fmt::format("a plan for a batch is one for every smaller batch: sizes {} with the batch",
                                  grow ? "grow" : "do not grow");
    if (q_.most && grow) out_.assumption += in_proportion ? ", seconds in proportion" : ", seconds not in proportion";
    out_.assumption += fmt::format(" (seen at {} batches)", built_.size());
    if (grow) return;
    out_.impossible.reset();
    out_.proof.clear();
  }

  const BatchQuestion& q_;
  Clock::time_point begin_;
  std::map<std::int64_t, Problem> built_;
  MaxBatch out_;
};

/// The value at `batch` on the line through (one_batch, one) and (two_batch, two), rounded up.
Bytes on_line(Bytes one, Bytes two, const BatchFamily& f, std::int64_t batch, const std::string& what) {
  Wide top = static_cast<Wide>(two - one) * (batch - f.one_batch), bottom = f.two_batch - f.one_batch;
  if (bottom < 0) {
    top = -top;
    bottom = -bottom;
  }
  const Wide rest = top % bottom;
  const Wide value = one + (top - rest) / bottom + (rest > 0 ? 1 : 0);
  if (value < 0 || value > static_cast<Wide>(1) << 60)
    throw UserError("at batch {} the size of '{}' would not be between 0 and 2^60 bytes", batch, what);
  return static_cast<Bytes>(value);
}

double on_line(double one, double two, const BatchFamily& f, std::int64_t batch) {
  if (one == two) return one;
  const double part = static_cast<double>(batch - f.one_batch) / static_cast<double>(f.two_batch - f.one_batch);
  return std::max(0.0, one + (two - one) * part);
}

}  // namespace

MaxBatch max_batch(const BatchQuestion& question) { return Asking(question).run(); }

Seconds keep_all_seconds(const Problem& problem) { return simulate(problem, keep_all_steps(problem)).cost.seconds; }

BatchFamily growing_from(const Problem& problem, std::int64_t batch) {
  if (batch < 1) throw UserError("a problem for batch {} is none; batches begin at 1", batch);
  BatchFamily family{problem, problem, batch, 2 * batch};
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    Buffer& b = family.two.buffers[BufferId(i)];
    if (!b.home) b.bytes *= 2;
  }
  for (std::size_t o = 0; o < problem.ops.size(); ++o) {
    for (Impl& impl : family.two.ops[OpId(o)].impls) {
      impl.seconds *= 2;
      impl.workspace *= 2;
      if (impl.joules) *impl.joules *= 2;
    }
  }
  return family;
}

Problem at_batch(const BatchFamily& f, std::int64_t batch) {
  if (f.one_batch < 1 || f.two_batch < 1 || f.one_batch == f.two_batch)
    throw UserError("a family needs two different batches from 1 up, not {} and {}", f.one_batch, f.two_batch);
  if (!same_shape(f.one, f.two))
    throw UserError("problems '{}' and '{}' differ in more than bytes and seconds: no family", f.one.name, f.two.name);
  Problem p = f.one;
  for (std::size_t i = 0; i < p.buffers.size(); ++i) {
    Buffer& b = p.buffers[BufferId(i)];
    b.bytes = on_line(b.bytes, f.two.buffers[BufferId(i)].bytes, f, batch, b.name);
  }
  for (std::size_t o = 0; o < p.ops.size(); ++o) {
    Op& op = p.ops[OpId(o)];
    for (std::size_t k = 0; k < op.impls.size(); ++k) {
      Impl& impl = op.impls[k];
      const Impl& other = f.two.ops[OpId(o)].impls[k];
      impl.workspace = on_line(impl.workspace, other.workspace, f, batch, op.name + "/workspace");
      impl.seconds = on_line(impl.seconds, other.seconds, f, batch);
      if (impl.joules) impl.joules = on_line(*impl.joules, *other.joules, f, batch);
    }
  }
  for (std::size_t i = 0; i < p.copies.size(); ++i) {
    CopyCost& c = p.copies[i];
    c.seconds = on_line(c.seconds, f.two.copies[i].seconds, f, batch);
    if (c.joules) c.joules = on_line(*c.joules, *f.two.copies[i].joules, f, batch);
  }
  return p;
}

std::string to_json(const MaxBatch& answer) {
  Json j;
  j["format"] = "neaptide.max_batch";
  j["version"] = 1;
  j["batch"] = answer.batch;
  j["impossible_from"] = answer.impossible ? Json(*answer.impossible) : Json(nullptr);
  j["proved"] = answer.proved();
  j["proof"] = answer.proof;
  j["assumption"] = answer.assumption;
  j["out_of_time"] = answer.out_of_time;
  j["interrupted"] = answer.interrupted;
  j["seconds_spent"] = answer.seconds_spent;
  j["probes"] = Json::array();
  constexpr const char* kWords[] = {"plan", "nothing found", "impossible"};
  for (const BatchProbe& p : answer.probes) {
    Json probe{{"batch", p.batch}, {"found", kWords[static_cast<std::size_t>(p.found)]}, {"seconds_spent", p.seconds}};
    if (p.found == BatchProbe::Found::kPlan) probe["cost"] = {{"seconds", p.cost}};
    j["probes"].push_back(std::move(probe));
  }
  j["plan"] = answer.batch > 0 ? parse_json(to_json(answer.problem, answer.plan), "plan") : Json(nullptr);
  return json_text(j);
}

}  // namespace neaptide::plan
