#include "neaptide/plan/planners/neaptide.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <future>
#include <map>
#include <optional>

#include "neaptide/base/errors.hpp"
#include "neaptide/plan/answer.hpp"
#include "neaptide/plan/bounds.hpp"
#include "neaptide/plan/forced.hpp"
#include "neaptide/plan/planners/neaptide_order.hpp"
#include "neaptide/plan/planners/neaptide_overlap.hpp"
#include "neaptide/plan/planners/neaptide_portfolio.hpp"
#include "neaptide/plan/planners/neaptide_prove.hpp"
#include "neaptide/plan/planners/neaptide_search.hpp"
#include "neaptide/plan/planners/neaptide_start.hpp"
#include "neaptide/plan/simulate.hpp"

namespace neaptide::plan {
namespace {

using tide::Model;
using tide::Search;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kMostDefaultTicks = 15'000'000;  // one to two seconds on one core
constexpr std::int64_t kDefaultTicksPerOp = 30'000;
constexpr std::int64_t kFeasibleTicksPerOp = 20'000;
constexpr std::int64_t kMostFeasibleTicks = 60'000'000;
constexpr std::int64_t kProbeTicksPerOp = 4'000;  // of one probe for the smallest budget
constexpr std::int64_t kMostProbeTicks = 12'000'000;
constexpr std::int64_t kRoundTicksPerOp = 5'000;
constexpr std::int64_t kWanderTicksPerOp = 2'000;
constexpr std::int64_t kSecondOpinionTicksPerOp = 1'000;  // for a first plan where there is another already
constexpr int kPartsBeside = 30;                          // of a search beside the prover
constexpr double kTicksPerSecond = 1e7;
constexpr double kLongestTimeLimit = 1e6;  // longer ones are none
constexpr double kSame = 1e-12;

tide::Switches read_switches(const Options& options) {
  check_switches(options, "neaptide",
                 {"anneal", "blocks", "bound", "chain-recompute", "contiguous", "implementations", "merge", "multi-cut",
                  "order", "paging", "portfolio", "prune", "shake", "spare"});
  const auto on = [&](const char* name) { return switch_value(options, name, "on", {"on", "off"}) == "on"; };
  tide::Switches s;
  s.chain_recompute = on("chain-recompute");
  s.implementations = on("implementations");
  s.paging = on("paging");
  s.spare = on("spare");
  s.merge = on("merge");
  s.prune = on("prune");
  s.contiguous = on("contiguous");
  s.anneal = on("anneal");
  s.order = on("order");
  s.portfolio = on("portfolio");
  s.shake = on("shake");
  s.blocks = on("blocks");
  s.bound = on("bound");
  s.multi_cut = on("multi-cut");
  return s;
}

std::int64_t n_ops(const Problem& problem) { return static_cast<std::int64_t>(problem.ops.size()); }
std::int64_t feasible_ticks(const Problem& problem) {
  return std::min(kMostFeasibleTicks, kFeasibleTicksPerOp * n_ops(problem));
}
std::int64_t probe_ticks(const Problem& problem) {
  return std::min(kMostProbeTicks, kProbeTicksPerOp * n_ops(problem));
}

/// A time limit that is given is meant to be used; half of what a fast core does in that time.
std::int64_t default_ticks(const Problem& problem, const Options& options) {
  const std::int64_t ticks = default_effort(problem);
  if (options.time_limit > kLongestTimeLimit) return ticks;
  return std::max(ticks, static_cast<std::int64_t>(options.time_limit * kTicksPerSecond));
}

/// The steps of a sequence of actions. What may end anywhere ends where the schedule says; all other frees follow.
std::vector<Step> steps_of(const Problem& problem, const Model& model, const tide::Sequence& sequence) {
  const tide::Schedule s(model, sequence);
  std::map<int, std::vector<Step>> after;  // by node
  for (std::size_t v = 0; v < model.values.size() && model.n_devices > 1; ++v) {
    if (!model.values[v].keep_anywhere) continue;
    for (int d = 0; d < model.n_devices; ++d) {
      const int cell = model.cell(static_cast<int>(v), d);
      if (d == s.end_device(static_cast<int>(v)) || s.events(cell).empty()) continue;
      const int last = s.events(cell).back().node;
      if (!s.consumes(last, cell)) after[last].push_back(Free{model.values[v].buffer, DeviceId(d)});
    }
  }
  std::vector<Step> steps;
  for (const int node : s.time().nodes()) {
    if (s.action(node) < 0) continue;
    steps.push_back(model.step(s.action(node)));
    if (const auto it = after.find(node); it != after.end())
      steps.insert(steps.end(), it->second.begin(), it->second.end());
  }
  return with_frees(problem, steps);
}

/// Everything that one call shares between its rounds.
class Run {
 public:
  Run(const Problem& problem, const Options& options)
      : problem_(problem),
        options_(options),
        switches_(read_switches(options)),
        model_(problem),
        once_each_(once_each(problem)),
        begin_(Clock::now()),
        ticks_(options.effort > 0 ? options.effort : default_ticks(problem, options)) {}

  Plan plan() {
    const std::optional<Infeasible> impossible = prove_infeasible(problem_);
    if (impossible) return refuse(reach_down());
    const tide::Sequence opening = tide::starting_actions(model_);
    for (std::uint64_t i = 0; i < (parallel() ? 2 : 1); ++i) {
      searches_.push_back(std::make_unique<Search>(model_, opening, options_.seed + i, switches_));
      searches_.back()->stop = [this] { return stopped(); };
    }
    if (tide::is_chain(problem_)) take_others();  // dynamic programmes are quicker there
    if (!open(opening)) take_others();
    if (!has_plan()) take_other_order(opening);
    if (!has_plan()) {
      if (!options_.diagnose) return refuse({model_, opening, 0});
      const Found found = reach_down();  // what "min" finds must be found here too
      for (auto& s : searches_) s->adopt(found.sequence);
      if (!has_plan()) return refuse(found);
    }
    report();
    if (prove()) return finish();
    const std::int64_t left = ticks_ * (parallel() ? 6 : 9) / 10;
    const int n_rounds = static_cast<int>(std::clamp<std::int64_t>(left / (kRoundTicksPerOp * n_ops(problem_)), 8, 80));
    for (int r = 0; r < n_rounds && !stopped() && !good_enough(); ++r) improve_together(left / n_rounds, r);
    return finish();
  }

  struct Found {
    Model model;
    tide::Sequence sequence;
    Bytes budget = 0;
  };

 private:
  double elapsed() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

  bool stopped() {
    if (closed_.load()) return true;
    if (options_.interrupted()) interrupted_ = true;
    if (interrupted_.load()) return true;
    if (elapsed() < options_.time_limit) return false;
    out_of_time_ = true;
    return true;
  }

  bool parallel() const { return options_.threads > 1 && ticks_ > 1000; }

  /// Both, at the same time where there are threads for it; the first one on this thread.
  template <typename F, typename G>
  void in_parallel(const F& here, const G& there) {
    if (parallel()) {
      auto other = std::async(std::launch::async, there);
      here();
      other.get();
    } else {
      here();
      there();
    }
  }

  bool has_plan() const {
    return std::any_of(searches_.begin(), searches_.end(), [](const auto& s) { return s->has_best(); });
  }

  /// The search's own first plan, and the given one.
  bool open(const tide::Sequence& opening) {
    Search &first = *searches_[0], &last = *searches_.back();
    std::int64_t ticks = options_.diagnose ? feasible_ticks(problem_) : probe_ticks(problem_);
    if (has_plan()) ticks = std::min(ticks, kSecondOpinionTicksPerOp * n_ops(problem_));
    std::optional<tide::Sequence> given;
    if (!options_.start.empty()) given = tide::sequence_of(model_, options_.start);
    if (given && !switches_.order && !tide::first_runs_in_order(model_, *given)) given.reset();
    if (given) last.offer(*given);
    if (!first.make_feasible(ticks)) first.offer(opening);  // the time may have ended before the first look
    if (given && !last.has_best()) {
      last.adopt(*given);  // over budget: a start all the same
      last.make_feasible(ticks);
    }
    return has_plan();
  }

  /// The plans of the cheap planners. The first search goes on from its own, the second from the best of the others.
  void take_others() {
    Search &first = *searches_[0], &last = *searches_.back();
    if (switches_.portfolio && !others_taken_) {
      for (const auto& steps : tide::cheap_plans(problem_, [this] { return stopped(); })) {
        const tide::Sequence sequence = tide::sequence_of(model_, steps);
        if (switches_.order || tide::first_runs_in_order(model_, sequence)) last.offer(sequence);
      }
    }
    others_taken_ = true;
    if (!has_plan()) return;
    if (!last.has_best()) last.adopt(first.best());
    if (!first.has_best()) first.adopt(last.best());
    last.adopt(last.best());
  }

  /// The opening's steps in another order.
  void take_other_order(const tide::Sequence& opening) {
    if (!switches_.order) return;
    const auto fits = tide::order_that_fits(model_, opening, probe_ticks(problem_), [this] { return stopped(); });
    for (auto& s : searches_) {
      if (fits) s->adopt(*fits);
    }
  }

  const Search& best() const {
    const Search* best = searches_[0].get();
    for (const auto& s : searches_) {
      if (s->best_seconds() < best->best_seconds()) best = s.get();
    }
    return *best;
  }

  double gap() const {
    return std::max(0.0, best().best_seconds() - bound_seconds_.load()) / std::max(once_each_, 1e-300);
  }

  void report() {
    if (!options_.progress) return;
    Progress p;
    p.incumbent = best().best_seconds();
    p.bound = bound_seconds_.load();
    p.gap = gap();
    p.ticks = best().ticks();
    if (!options_.progress(p)) interrupted_ = true;
  }

  bool good_enough() const { return gap() <= std::max(options_.gap, kSame); }

  void improve(Search& s, std::int64_t ticks, double warmth) {
    s.floor = bound_seconds_.load() * (1 + kSame);
    s.improve(ticks, warmth);
  }

  /// A round of every search at once; then the worse one takes over the better one's schedule. The first search goes
  /// on from there; the last one leaves for elsewhere where there is the time to come back.
  void improve_together(std::int64_t ticks, int round) {
    // Now and then the last one keeps the order of what it has: fewer ways, so further along them.
    if (switches_.order) searches_.back()->keep_order(round % 2 == 1);
    const auto wander = [&](Search& s, int k) {
      const double warmth = (&s == searches_[0].get() ? 0.1 : 0.2) * (round % 8 < 6 ? 1 : 0.1);
      if (switches_.shake && ticks >= kWanderTicksPerOp * n_ops(problem_) && k % 3 != 0) {
        if (k % 3 == 1) s.shake(ticks / 4);
        if (k % 3 == 2 && !s.restart(ticks / 4)) s.adopt(s.best());
      }
      improve(s, ticks, warmth);
    };
    in_parallel([&] { wander(*searches_[0], searches_.size() > 1 ? 0 : round); },
                [&] {
                  if (searches_.size() > 1) wander(*searches_[1], round);
                });
    for (auto& s : searches_) s->adopt(best().best());
    report();
  }

  /// Bounds, while a search goes on where there are threads. True when nothing is left to be found; the answer is then
  /// the prover's plan or the opening one, whatever the search has met by then.
  bool prove() {
    if (!switches_.bound) {
      bound_ = floor_bound(problem_);
      take_others();
      return false;
    }
    const tide::Sequence opening = best().best();
    const Seconds known = best().best_seconds();
    tide::Prover prover(problem_, model_, switches_, options_.seed);
    // Whoever gives seconds wants them used.
    const bool timed = options_.effort == 0 && options_.time_limit < kLongestTimeLimit;
    const Seconds until = options_.time_limit * (parallel() ? 0.5 : 0.4);
    prover.stop = [this, timed, until] { return stopped() || (timed && elapsed() > until); };
    std::atomic<bool> searched = false;
    prover.beside = [&] { return searched.load(); };
    const auto work = [&] {
      prover.run(opening, known, ticks_);
      closed_ = prover.closed();
    };
    if (parallel()) {
      auto other = std::async(std::launch::async, work);
      improve(*searches_[0], ticks_ / 15, 0.2);  // what is proved at once need not wait for the others
      if (!stopped()) take_others();
      const int n_parts = timed ? kPartsBeside : 1;  // a long time is no better spent on one cooling
      const std::int64_t part = ticks_ * (timed ? 2 : 4) / 10 / n_parts;
      for (int k = 0; k < n_parts && !closed_; ++k) {
        if (k % 3 == 2) searches_[0]->shake(part / 4);
        improve(*searches_[0], part, 0.2);
      }
      searched = true;
      other.get();
    } else {
      work();
      if (!closed_) take_others();
    }
    bound_ = prover.bound();
    bound_seconds_ = bound_->seconds;
    for (auto& s : searches_) {
      if (prover.has_best()) s->offer(prover.best());
    }
    if (closed_) answer_ = prover.has_best() ? prover.best() : opening;
    for (auto& s : searches_) {
      if (s->best_seconds() > best().best_seconds()) s->adopt(best().best());
    }
    report();
    return closed_;
  }

  Plan finish() {
    Plan plan = answer(problem_, steps_of(problem_, model_, answer_.actions.empty() ? best().best() : answer_));
    ensure(!plan.steps.empty(), "the search's schedule fits, but its steps do not");
    plan.lower_bound = bound_;
    if (interrupted_.load()) plan.stopped_by = "interrupt";
    if (out_of_time_.load()) plan.stopped_by = "time";
    if (out_of_time_.load()) plan.status = Status::kTimeLimit;
    if (plan.stopped_by.empty() && options_.gap > 0 && good_enough()) plan.stopped_by = "gap";
    if (plan.stopped_by.empty() && !good_enough()) plan.stopped_by = "effort";
    return plan;
  }

  Found reach_down() {
    return smallest(problem_, model_, worst_device(), switches_, options_.seed, [this] { return stopped(); });
  }

  /// No plan found: say how far down one could go.
  Plan refuse(const Found& found) { return nothing_fits(problem_, steps_of(problem_, found.model, found.sequence)); }

  /// Of the devices with a budget, the one that lacks most.
  DeviceId worst_device() const {
    DeviceId worst;
    Bytes most = 0;
    for (std::size_t d = 0; d < problem_.devices.size(); ++d) {
      const auto& budget = problem_.devices[DeviceId(d)].budget;
      if (!budget) continue;
      const Bytes over = smallest_peak(problem_, DeviceId(d)).bytes - *budget;
      if (!worst.valid() || over > most) {
        worst = DeviceId(d);
        most = over;
      }
    }
    return worst;
  }

 public:
  /// Bisection between what no plan can avoid and what a search has reached.
  static Found smallest(const Problem& problem, const Model& given, DeviceId device, const tide::Switches& switches,
                        std::uint64_t seed, const std::function<bool()>& stop) {
    Found found{given, tide::starting_actions(given), 0};
    const auto track = std::find(given.track_device.begin(), given.track_device.end(), device.value);
    ensure(track != given.track_device.end(), "a device without a budget has no smallest one");
    const auto t = track - given.track_device.begin();
    const Bytes fixed = *problem.devices[device].budget - given.limit[t];
    const auto peak = [&](const Search& s, bool of_best) {
      if (of_best) return tide::Schedule(given, s.best()).time().highest(static_cast<int>(t));
      return s.current().time().highest(static_cast<int>(t));
    };
    Bytes low = smallest_peak(problem, device).bytes - fixed;
    Bytes high = peak(Search(given, found.sequence, seed, switches), false);
    Bytes target = low;
    for (int probe = 0; probe < 14 && low < high && !stop(); ++probe) {
      Model model = given;
      model.limit[t] = target;
      Search s(model, found.sequence, seed + static_cast<std::uint64_t>(probe), switches);
      s.stop = stop;
      if (s.make_feasible(probe_ticks(problem))) {
        found.sequence = s.best();
        high = std::min(high, peak(s, true));
      } else {
        low = target + 1;
      }
      if (high - low < high / 2000) break;
      target = low + (high - low) / 2;
    }
    found.budget = high + fixed;
    return found;
  }

 private:
  const Problem& problem_;
  const Options& options_;
  tide::Switches switches_;
  Model model_;
  Seconds once_each_;  // what a gap is relative to
  Clock::time_point begin_;
  std::int64_t ticks_;
  std::vector<std::unique_ptr<Search>> searches_;
  std::optional<LowerBound> bound_;
  std::atomic<double> bound_seconds_{0};
  bool others_taken_ = false;
  tide::Sequence answer_;  // when it is known to be the best
  std::atomic<bool> interrupted_{false}, out_of_time_{false}, closed_{false};
};

}  // namespace

std::int64_t default_effort(const Problem& problem) {
  return std::min(kMostDefaultTicks, kDefaultTicksPerOp * n_ops(problem));
}

Plan run_neaptide(const Problem& problem, const Options& options) {
  if (options.objective == Objective::kOverlap) return run_overlap(problem, options, run_neaptide);
  return Run(problem, options).plan();
}

Bytes smallest_budget(const Problem& problem, const Options& options, DeviceId device) {
  Problem bounded = with_options(problem, options);
  ensure(bounded.devices.has(device), "there is no such device");
  if (!bounded.devices[device].budget) bounded.devices[device].budget = Bytes{1} << 60;
  const Model model(bounded);
  const auto end = Clock::now() + std::chrono::duration<double>(std::min(options.time_limit, 1e6));
  const auto stop = [&] { return options.interrupted() || Clock::now() > end; };
  return Run::smallest(bounded, model, device, read_switches(options), options.seed, stop).budget;
}

}  // namespace neaptide::plan
