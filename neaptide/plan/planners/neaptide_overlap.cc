#include "neaptide/plan/planners/neaptide_overlap.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "neaptide/plan/answer.hpp"
#include "neaptide/plan/emit.hpp"
#include "neaptide/plan/overlap_bound.hpp"
#include "neaptide/plan/planners/neaptide_search.hpp"
#include "neaptide/plan/simulate.hpp"
#include "neaptide/plan/verify.hpp"

namespace neaptide::plan {
namespace {

using Clock = std::chrono::steady_clock;
using Steps = std::vector<Step>;

constexpr double kCopyShares[] = {1.0, 0.25, 0.0};  // of a copy's seconds, as the serial planner sees them
constexpr std::int64_t kDefaultVisits = 5'000'000;  // steps simulated by the local search
constexpr double kVisitsPerSecond = 1'000'000;      // of a time limit that is given, which is meant to be used
constexpr std::int64_t kTicksPerVisit = 5;          // of an effort that is given
constexpr int kLongestStretch = 12;                 // ops that change their device together
constexpr double kLongestTimeLimit = 3600;          // longer ones are none
constexpr double kSame = 1e-12;

/// Frees that follow from the other steps (with_frees) go. What must be kept, but has no home, stays where the plan
/// says.
Steps without_frees(const Problem& p, const Steps& steps) {
  Steps out;
  for (const Step& s : steps) {
    const auto* f = std::get_if<Free>(&s);
    if (f == nullptr || (p.buffers[f->buffer].keep && !p.buffers[f->buffer].home)) out.push_back(s);
  }
  return out;
}

/// Makes steps legal again after a change: copies bring what a step misses, copies that nothing reads go.
class Router {
 public:
  explicit Router(const Problem& problem)
      : p_(problem), n_devices_(problem.devices.size()), there_(n_devices_ * problem.buffers.size()) {}

  /// Nothing when some value is nowhere any more. Versions are right where the order of the computes is.
  std::optional<Steps> run(const Steps& steps) {
    if (!forward(steps)) return std::nullopt;
    drop_idle_copies();
    drop_idle_frees();
    return out_;
  }
  /// By step of the last result: whether it is a copy that was not in the steps given.
  const std::vector<char>& fresh() const { return fresh_; }

 private:
  void start() {
    std::fill(there_.begin(), there_.end(), 0);
    for (std::size_t b = 0; b < p_.buffers.size(); ++b) {
      if (p_.buffers[BufferId(b)].home) at(*p_.buffers[BufferId(b)].home, BufferId(b)) = 1;
    }
    out_.clear();
    fresh_.clear();
  }

  bool forward(const Steps& steps) {
    start();
    for (const Step& s : steps) {
      if (const auto* c = std::get_if<Compute>(&s)) {
        if (!compute(*c)) return false;
      } else if (const auto* k = std::get_if<Copy>(&s)) {
        if (at(k->from, k->buffer) == 0) continue;
        at(k->to, k->buffer) = 1;
        add(s, false);
      } else if (const auto* f = std::get_if<Free>(&s)) {
        if (!is_elsewhere(*f)) continue;
        at(f->device, f->buffer) = 0;
        add(s, false);
      }
    }
    for (std::size_t b = 0; b < p_.buffers.size(); ++b) {
      const Buffer& buffer = p_.buffers[BufferId(b)];
      if (buffer.keep && buffer.home && !bring(BufferId(b), *buffer.home)) return false;
    }
    return true;
  }

  /// Whether the value is held on another device, too.
  bool is_elsewhere(const Free& f) {
    for (std::size_t d = 0; d < n_devices_; ++d) {
      if (DeviceId(d) != f.device && at(DeviceId(d), f.buffer) != 0) return true;
    }
    return false;
  }

  /// Copies that went leave frees of what is not there.
  void drop_idle_frees() {
    const Steps steps = std::move(out_);
    const std::vector<char> fresh = std::move(fresh_);
    start();
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (const auto* f = std::get_if<Free>(&steps[i])) {
        if (at(f->device, f->buffer) == 0 || !is_elsewhere(*f)) continue;
        at(f->device, f->buffer) = 0;
      } else if (const auto* k = std::get_if<Copy>(&steps[i])) {
        at(k->to, k->buffer) = 1;
      } else if (const auto* c = std::get_if<Compute>(&steps[i])) {
        made_by(*c);
      }
      add(steps[i], fresh[i] != 0);
    }
  }

  /// From the end: a copy whose target is not read before it is made anew brings nothing.
  void drop_idle_copies() {
    std::fill(there_.begin(), there_.end(), 0);  // now: wanted later
    for (std::size_t b = 0; b < p_.buffers.size(); ++b) {
      const Buffer& buffer = p_.buffers[BufferId(b)];
      if (buffer.keep && buffer.home) at(*buffer.home, BufferId(b)) = 1;
    }
    std::vector<char> idle(out_.size(), 0);
    for (std::size_t i = out_.size(); i-- > 0;) {
      if (const auto* k = std::get_if<Copy>(&out_[i])) {
        idle[i] = at(k->to, k->buffer) == 0;
        if (idle[i] == 0) at(k->to, k->buffer) = 0, at(k->from, k->buffer) = 1;
      } else if (const auto* f = std::get_if<Free>(&out_[i])) {
        at(f->device, f->buffer) = 0;
      } else if (const auto* c = std::get_if<Compute>(&out_[i])) {
        const Op& op = p_.ops[c->op];
        const Impl& impl = op.impls[static_cast<std::size_t>(c->impl)];
        for (const BufferId b : impl.writes) {
          for (std::size_t d = 0; d < n_devices_; ++d) {
            if (op.once || DeviceId(d) == impl.device) at(DeviceId(d), b) = 0;
          }
        }
        for (const BufferId b : impl.reads) at(impl.device, b) = 1;
      }
    }
    std::size_t kept = 0;
    for (std::size_t i = 0; i < out_.size(); ++i) {
      if (idle[i] != 0) continue;
      out_[kept] = out_[i];
      fresh_[kept++] = fresh_[i];
    }
    out_.resize(kept);
    fresh_.resize(kept);
  }

  void add(const Step& s, bool fresh) {
    out_.push_back(s);
    fresh_.push_back(fresh ? 1 : 0);
  }

  char& at(DeviceId d, BufferId b) { return there_[b.index() * n_devices_ + d.index()]; }

  bool compute(const Compute& c) {
    const Impl& impl = p_.ops[c.op].impls[static_cast<std::size_t>(c.impl)];
    for (const BufferId b : impl.reads) {
      if (!bring(b, impl.device)) return false;
    }
    add(c, false);
    made_by(c);
    return true;
  }

  void made_by(const Compute& c) {
    const Op& op = p_.ops[c.op];
    const Impl& impl = op.impls[static_cast<std::size_t>(c.impl)];
    for (const InPlace& pair : impl.in_place) at(impl.device, pair.in) = 0;
    for (const BufferId b : impl.writes) {
      for (std::size_t d = 0; d < n_devices_ && op.once; ++d) at(DeviceId(d), b) = 0;
      at(impl.device, b) = 1;
    }
  }

  bool bring(BufferId b, DeviceId to) {
    if (at(to, b) != 0) return true;
    std::optional<Copy> best;
    Seconds least = 0;
    for (std::size_t d = 0; d < n_devices_; ++d) {
      if (at(DeviceId(d), b) == 0) continue;
      const auto seconds = copy_seconds(p_, b, DeviceId(d), to);
      if (!seconds || (best && *seconds >= least)) continue;
      best = Copy{b, DeviceId(d), to};
      least = *seconds;
    }
    if (!best) return false;
    add(*best, true);
    at(to, b) = 1;
    return true;
  }

  const Problem& p_;
  std::size_t n_devices_;
  std::vector<char> there_;  // [buffer][device]
  Steps out_;
  std::vector<char> fresh_;
};

/// What a step touches, to know which steps may change places.
class Conflicts {
 public:
  explicit Conflicts(const Problem& problem) : p_(problem) {}

  /// Whether the two may not change places: one makes, ends or overwrites what the other uses.
  bool between(const Step& a, const Step& b) {
    gather(a, &reads_a_, &writes_a_);
    gather(b, &reads_b_, &writes_b_);
    return meet(writes_a_, reads_b_) || meet(writes_a_, writes_b_) || meet(reads_a_, writes_b_);
  }

 private:
  using Cells = std::vector<std::size_t>;

  std::size_t cell(DeviceId d, BufferId b) const { return b.index() * p_.devices.size() + d.index(); }

  void gather(const Step& s, Cells* reads, Cells* writes) const {
    reads->clear();
    writes->clear();
    if (const auto* k = std::get_if<Copy>(&s)) {
      reads->push_back(cell(k->from, k->buffer));
      writes->push_back(cell(k->to, k->buffer));
    } else if (const auto* f = std::get_if<Free>(&s)) {
      writes->push_back(cell(f->device, f->buffer));
      for (std::size_t d = 0; d < p_.devices.size(); ++d) reads->push_back(cell(DeviceId(d), f->buffer));
    } else if (const auto* c = std::get_if<Compute>(&s)) {
      const Op& op = p_.ops[c->op];
      const Impl& impl = op.impls[static_cast<std::size_t>(c->impl)];
      for (const BufferId b : impl.reads) reads->push_back(cell(impl.device, b));
      for (const BufferId b : impl.writes) {
        for (std::size_t d = 0; d < p_.devices.size(); ++d) {
          if (op.once || DeviceId(d) == impl.device) writes->push_back(cell(DeviceId(d), b));
        }
      }
      for (const InPlace& pair : impl.in_place) writes->push_back(cell(impl.device, pair.in));
    }
  }

  static bool meet(const Cells& a, const Cells& b) {
    return std::any_of(a.begin(), a.end(), [&](std::size_t x) { return std::find(b.begin(), b.end(), x) != b.end(); });
  }

  const Problem& p_;
  Cells reads_a_, writes_a_, reads_b_, writes_b_;
};

/// Ops one by one onto the lane where they end first, those with the longest way to the end first; memory aside.
Steps list_schedule(const Problem& p) {
  const Choice needed = first_choice(p);
  const std::size_t n = p.ops.size();
  const Versions versions = plan::versions(p);
  // An op follows whoever it must not overtake: in the given order, makers before readers, readers before overwriters.
  std::vector<std::vector<std::size_t>> after(n);
  std::vector<int> waits(n, 0);
  std::vector<double> rank(n, 0);
  std::map<BufferId, std::vector<std::size_t>> touched, written;
  for (const OpId op : p.order) {
    if (needed[op] < 0) continue;
    std::set<std::size_t> before;
    std::set<BufferId> reads, writes;
    for (const Impl& i : p.ops[op].impls) {
      reads.insert(i.reads.begin(), i.reads.end());
      writes.insert(i.writes.begin(), i.writes.end());
    }
    for (const BufferId b : reads) before.insert(written[b].begin(), written[b].end());
    for (const BufferId b : writes) before.insert(touched[b].begin(), touched[b].end());
    for (const std::size_t o : before) after[o].push_back(op.index());
    waits[op.index()] = static_cast<int>(before.size());
    for (const BufferId b : reads) touched[b].push_back(op.index());
    for (const BufferId b : writes) touched[b].push_back(op.index()), written[b].push_back(op.index());
  }
  for (std::size_t i = n; i-- > 0;) {
    const OpId op = p.order[i];
    Seconds least = p.ops[op].impls.front().seconds;
    for (const Impl& impl : p.ops[op].impls) least = std::min(least, impl.seconds);
    for (const std::size_t o : after[op.index()]) rank[op.index()] = std::max(rank[op.index()], rank[o]);
    rank[op.index()] += least;
  }
  struct Ready {
    double rank;
    std::size_t position, op;
    bool operator<(const Ready& o) const { return rank != o.rank ? rank > o.rank : position < o.position; }
  };
  std::vector<std::size_t> position(n);
  for (std::size_t i = 0; i < n; ++i) position[p.order[i].index()] = i;
  std::set<Ready> ready;
  for (std::size_t o = 0; o < n; ++o) {
    if (needed[OpId(o)] >= 0 && waits[o] == 0) ready.insert({rank[o], position[o], o});
  }
  constexpr Seconds kNever = 1e300;
  const std::size_t n_devices = p.devices.size();
  std::vector<Seconds> made(p.buffers.size() * n_devices, kNever), lane(n_devices, 0);
  for (std::size_t b = 0; b < p.buffers.size(); ++b) {
    if (p.buffers[BufferId(b)].home) made[b * n_devices + p.buffers[BufferId(b)].home->index()] = 0;
  }
  const auto arrival = [&](BufferId b, std::size_t device) {
    Seconds first = made[b.index() * n_devices + device];
    for (std::size_t d = 0; d < n_devices; ++d) {
      const Seconds there = made[b.index() * n_devices + d];
      if (d == device || there >= first) continue;
      if (const auto s = copy_seconds(p, b, DeviceId(d), DeviceId(device))) first = std::min(first, there + *s);
    }
    return first;
  };
  Steps steps;
  while (!ready.empty()) {
    const std::size_t o = ready.begin()->op;
    ready.erase(ready.begin());
    const Op& op = p.ops[OpId(o)];
    int best = -1;
    Seconds best_end = kNever;
    for (std::size_t i = 0; i < op.impls.size(); ++i) {
      Seconds start = lane[op.impls[i].device.index()];
      for (const BufferId b : op.impls[i].reads) start = std::max(start, arrival(b, op.impls[i].device.index()));
      if (start + op.impls[i].seconds >= best_end) continue;
      best = static_cast<int>(i);
      best_end = start + op.impls[i].seconds;
    }
    if (best < 0) return {};
    const Impl& impl = op.impls[static_cast<std::size_t>(best)];
    const std::size_t d = impl.device.index();
    for (const BufferId b : impl.reads) {
      Seconds& there = made[b.index() * n_devices + d];
      there = std::min(there, arrival(b, d));
    }
    for (const InPlace& pair : impl.in_place) made[pair.in.index() * n_devices + d] = kNever;
    for (const BufferId b : impl.writes) {
      for (std::size_t e = 0; e < n_devices && op.once; ++e) made[b.index() * n_devices + e] = kNever;
      made[b.index() * n_devices + d] = best_end;
    }
    lane[d] = best_end;
    steps.emplace_back(Compute{OpId(o), best});
    for (const std::size_t next : after[o]) {
      if (--waits[next] == 0) ready.insert({rank[next], position[next], next});
    }
  }
  return steps;
}

class Overlap {
 public:
  Overlap(const Problem& problem, const Options& options)
      : p_(problem),
        options_(options),
        bound_(overlap_bound(problem)),
        router_(problem),
        conflicts_(problem),
        random_(options.seed),
        begin_(Clock::now()) {}

  Plan run(Plan (*serial)(const Problem&, const Options&)) {
    Plan plan = serial(p_, part(1.0 / std::size(kCopyShares)));
    if (plan.steps.empty() && options_.time_limit < kLongestTimeLimit)
      plan = serial(p_, part(1.0));                                 // all that is left
    if (plan.steps.empty() || p_.devices.size() == 1) return plan;  // one lane: overlapped seconds are serial ones
    offer(without_frees(p_, plan.steps), false);
    best_.steps = plan.steps;  // as it is, whatever with_frees would make of it
    best_.cost = simulate(p_, plan.steps).cost.overlapped;
    for (const double share : kCopyShares) {
      if (share < 1.0 && !done()) offer_serial(serial, cheaper_copies(share), {}, 0);
    }
    if (!done()) offer_list_schedule(serial);
    improve();
    plan.steps = best_.steps;
    plan.lower_bound = bound_;
    plan.stopped_by = interrupted() ? "interrupt" : out_of_time() ? "time" : "";
    plan.status = out_of_time() ? Status::kTimeLimit : Status::kFeasible;
    return plan;
  }

 private:
  struct Found {
    Steps steps;  // with frees
    Steps moves;  // without
    Seconds cost = 0;
  };

  double elapsed() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }
  bool out_of_time() const { return elapsed() >= options_.time_limit; }
  bool good_enough() const {
    return best_.cost <= bound_.seconds * (1 + kSame) || best_.cost - bound_.seconds <= options_.gap * bound_.seconds;
  }
  bool interrupted() const { return interrupted_ || options_.interrupted(); }
  bool done() const { return interrupted() || good_enough() || out_of_time(); }

  /// Options of one run of the serial planner.
  Options part(double share) const {
    Options o = options_;
    o.objective = Objective::kTime;
    o.time_limit = std::max(0.0, options_.time_limit - elapsed()) * share;
    o.effort = static_cast<std::int64_t>(static_cast<double>(options_.effort) * share);
    o.progress = [this](const Progress& progress) {  // its costs are serial ones: only whether to go on
      Progress ours = progress;
      ours.incumbent = best_.steps.empty() ? progress.incumbent : best_.cost;
      ours.bound = bound_.seconds;
      ours.gap = bound_.seconds > 0 ? ours.incumbent / bound_.seconds - 1 : 0;
      return !options_.progress || options_.progress(ours);
    };
    return o;
  }

  Problem cheaper_copies(double share) const {
    Problem p = p_;
    p.copies.clear();
    p.links.clear();
    for (std::size_t b = 0; b < p_.buffers.size(); ++b) {
      for (std::size_t d = 0; d < p_.devices.size(); ++d) {
        for (std::size_t e = 0; e < p_.devices.size(); ++e) {
          if (d == e) continue;
          const auto seconds = copy_seconds(p_, BufferId(b), DeviceId(d), DeviceId(e));
          if (seconds) p.copies.push_back({BufferId(b), DeviceId(d), DeviceId(e), share * *seconds});
        }
      }
    }
    return p;
  }

  void offer_serial(Plan (*serial)(const Problem&, const Options&), const Problem& problem, Steps start,
                    std::int64_t effort) {
    Options o = part(1.0 / std::size(kCopyShares));
    o.start = std::move(start);
    o.diagnose = false;
    if (effort > 0) o.effort = effort;
    const Plan plan = serial(problem, o);
    if (!plan.steps.empty()) offer(without_frees(p_, plan.steps), false);
  }

  void offer_list_schedule(Plan (*serial)(const Problem&, const Options&)) {
    const std::optional<Steps> moves = router_.run(list_schedule(p_));
    if (!moves || moves->empty() || offer(*moves, true)) return;
    // Beyond the budgets: what the serial planner makes of it first.
    constexpr std::int64_t kOnlyRepair = 1;
    offer_serial(serial, p_, with_frees(p_, *moves), kOnlyRepair);
  }

  /// Keeps legal steps that fit the budgets as a start, and as the best where they are. False: not legal, or too large.
  bool offer(Steps moves, bool check) {
    std::optional<Found> found = judge(std::move(moves));
    if (!found || (check && !legal(found->steps))) return false;
    if (best_.steps.empty() || found->cost < best_.cost) best_ = *found;
    starts_.push_back(std::move(*found));
    return true;
  }

  bool legal(const Steps& steps) const {
    Plan plan;
    for (const Device& d : p_.devices) plan.budgets.push_back(d.budget);
    plan.steps = steps;
    plan.cost = {-1, -1, {}};
    return verify(p_, plan, 1).ok();
  }

  std::optional<Found> judge(Steps moves) {
    Found f;
    f.steps = with_frees(p_, moves);
    f.moves = std::move(moves);
    visits_ += static_cast<std::int64_t>(f.steps.size());
    const Simulation sim = simulate(p_, f.steps);
    if (overflow(p_, sim.peak) > 0) return std::nullopt;
    f.cost = sim.cost.overlapped;
    return f;
  }

  /// Record to record from the two best starts.
  void improve() {
    std::stable_sort(starts_.begin(), starts_.end(), [](const Found& a, const Found& b) { return a.cost < b.cost; });
    const std::int64_t all = most_visits();
    const std::size_t n = std::min<std::size_t>(2, starts_.size());
    visits_ = 0;
    for (std::size_t i = 0; i < n; ++i) {
      Found current = starts_[i];
      const std::int64_t end = all * static_cast<std::int64_t>(i + 1) / static_cast<std::int64_t>(n);
      const std::int64_t begin = visits_;
      while (visits_ < end && !done()) {
        const double left =
            static_cast<double>(end - visits_) / static_cast<double>(std::max<std::int64_t>(1, end - begin));
        ++visits_;  // a move that leads nowhere is work, too
        std::optional<Found> next = move(current);
        if (!next || next->cost > best_.cost * (1 + 0.03 * left * left)) continue;
        if (next->cost < best_.cost * (1 - kSame) && legal(next->steps)) {
          best_ = *next;
          report();
        }
        current = std::move(*next);
      }
    }
  }

  std::int64_t most_visits() const {
    if (options_.effort > 0) return options_.effort / kTicksPerVisit;
    const bool limited = options_.time_limit < kLongestTimeLimit;
    return std::max(kDefaultVisits, limited ? static_cast<std::int64_t>(options_.time_limit * kVisitsPerSecond) : 0);
  }

  void report() {
    if (!options_.progress) return;
    Progress p;
    p.incumbent = best_.cost;
    p.bound = bound_.seconds;
    p.gap = bound_.seconds > 0 ? best_.cost / bound_.seconds - 1 : 0;
    p.ticks = visits_;
    if (!options_.progress(p)) interrupted_ = true;
  }

  std::optional<Found> move(const Found& from) {
    if (from.moves.empty()) return std::nullopt;
    const auto i = static_cast<std::size_t>(random_.below(static_cast<int>(from.moves.size())));
    if (random_.below(2) == 0) return shift(from.moves, i);
    const auto* c = std::get_if<Compute>(&from.moves[i]);
    if (c == nullptr) return reroute(without(from.moves, i));
    const int n = static_cast<int>(p_.ops[c->op].impls.size());
    if (n < 2) return shift(from.moves, i);
    const int impl = (c->impl + 1 + random_.below(n - 1)) % n;
    const DeviceId to = p_.ops[c->op].impls[static_cast<std::size_t>(impl)].device;
    Steps steps = from.moves;
    steps[i] = Compute{c->op, impl};
    int more = random_.below(2) == 0 ? 0 : random_.below(kLongestStretch);
    for (std::size_t k = i + 1; k < steps.size() && more > 0; ++k) {
      if (auto* next = std::get_if<Compute>(&steps[k])) --more, bring_to(to, next);
    }
    return reroute(steps);
  }

  /// The op's fastest implementation on the device, where it has one.
  void bring_to(DeviceId device, Compute* c) const {
    const auto& impls = p_.ops[c->op].impls;
    int best = -1;
    for (std::size_t i = 0; i < impls.size(); ++i) {
      if (impls[i].device != device) continue;
      if (best < 0 || impls[i].seconds < impls[static_cast<std::size_t>(best)].seconds) best = static_cast<int>(i);
    }
    if (best >= 0) c->impl = best;
  }

  static Steps without(Steps steps, std::size_t i) {
    steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(i));
    return steps;
  }

  /// Copies that this brings in start where they are wanted, as early as they can, or in between.
  std::optional<Found> reroute(const Steps& steps) {
    std::optional<Steps> routed = router_.run(steps);
    if (!routed) return std::nullopt;
    visits_ += static_cast<std::int64_t>(routed->size());
    const std::vector<char> fresh = router_.fresh();
    const int how = random_.below(3);
    for (std::size_t i = 0; i < routed->size() && how > 0; ++i) {
      if (fresh[i] == 0) continue;
      const std::size_t way = i - reach(*routed, i, true);
      if (way > 0)
        pull(&*routed, i, how == 1 ? way : 1 + static_cast<std::size_t>(random_.below(static_cast<int>(way))));
    }
    return judge(std::move(*routed));
  }

  static void pull(Steps* steps, std::size_t i, std::size_t by) {
    const auto at = steps->begin() + static_cast<std::ptrdiff_t>(i);
    std::rotate(at - static_cast<std::ptrdiff_t>(by), at, at + 1);
  }

  /// How far a step may go past steps that it has nothing to do with.
  std::size_t reach(const Steps& steps, std::size_t i, bool earlier) {
    std::size_t at = i;
    while (earlier ? at > 0 : at + 1 < steps.size()) {
      const std::size_t next = earlier ? at - 1 : at + 1;
      ++visits_;
      if (conflicts_.between(steps[i], steps[next])) break;
      at = next;
    }
    return at;
  }

  /// One step as far as it may go, or part of the way.
  std::optional<Found> shift(const Steps& steps, std::size_t i) {
    const bool earlier = random_.below(2) == 0;
    const std::size_t end = reach(steps, i, earlier);
    const auto way = static_cast<int>(earlier ? i - end : end - i);
    if (way == 0) return std::nullopt;
    const auto by = static_cast<std::size_t>(random_.below(2) == 0 ? way : 1 + random_.below(way));
    Steps out = steps;
    if (earlier) {
      pull(&out, i, by);
    } else {
      const auto at = out.begin() + static_cast<std::ptrdiff_t>(i);
      std::rotate(at, at + 1, at + 1 + static_cast<std::ptrdiff_t>(by));
    }
    return judge(std::move(out));
  }

  const Problem& p_;
  const Options& options_;
  LowerBound bound_;
  Router router_;
  Conflicts conflicts_;
  tide::Random random_;
  Clock::time_point begin_;
  std::vector<Found> starts_;
  Found best_;
  std::int64_t visits_ = 0;
  bool interrupted_ = false;
};

}  // namespace

Plan run_overlap(const Problem& problem, const Options& options, Plan (*serial)(const Problem&, const Options&)) {
  return Overlap(problem, options).run(serial);
}

}  // namespace neaptide::plan
