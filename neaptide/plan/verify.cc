#include "neaptide/plan/verify.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "neaptide/base/errors.hpp"

namespace neaptide::plan {
namespace {

constexpr double kTolerance = 1e-9;  // relative, for sums of seconds
constexpr int kNone = -1;            // a block without a value

bool differs(double a, double b) { return std::abs(a - b) > kTolerance * std::max(std::abs(a), std::abs(b)); }

/// Rule 5: which version each op reads and writes.
struct OrderVersions {
  std::vector<std::map<BufferId, int>> read, write;  // by op
  std::vector<int> last;                             // by buffer

  explicit OrderVersions(const Problem& p) : read(p.ops.size()), write(p.ops.size()), last(p.buffers.size(), kNone) {
    for (std::size_t b = 0; b < last.size(); ++b) last[b] = p.buffers[BufferId(b)].home ? 0 : kNone;
    for (OpId id : p.order) {
      std::set<BufferId> reads, writes;
      for (const Impl& i : p.ops[id].impls) {
        reads.insert(i.reads.begin(), i.reads.end());
        writes.insert(i.writes.begin(), i.writes.end());
      }
      // What nothing wrote yet is the op's own output, left by another implementation: version 0.
      for (BufferId b : reads) read[id.index()][b] = std::max(0, last[b.index()]);
      for (BufferId b : writes) {
        int& v = last[b.index()];
        v = v == kNone ? 0 : v + (p.ops[id].once ? 1 : 0);
        write[id.index()][b] = v;
      }
    }
  }
};

/// One buffer on one device.
struct Block {
  bool held = false;
  int value = kNone;  // version, or none on a stale home
  Seconds ready = 0;  // end of the step that made the value (overlapped time)
  Seconds used = 0;   // end of the last step that touches the block
};

/// Bytes of one device that became free, by the time at which they did (overlapped time).
class Pool {
 public:
  void give(Bytes bytes, Seconds at) {
    if (bytes > 0) entries_.insert({at, bytes});
  }

  /// Takes the bytes that became free first; returns when the last of them did.
  Seconds take(Bytes bytes) {
    Seconds at = 0;
    while (bytes > 0 && !entries_.empty()) {
      auto first = *entries_.begin();
      entries_.erase(entries_.begin());
      at = std::max(at, first.first);
      if (first.second > bytes) entries_.insert({first.first, first.second - bytes});
      bytes -= std::min(bytes, first.second);
    }
    return at;
  }

 private:
  std::multiset<std::pair<Seconds, Bytes>> entries_;
};

class Replay {
 public:
  Replay(const Problem& problem, const Plan& plan, int max_violations)
      : p_(problem), plan_(plan), max_(static_cast<std::size_t>(max_violations)), order_(problem) {}

  Report run() {
    report_.peak = IdVector<DeviceTag, Bytes>(p_.devices.size(), 0);
    if (plan_.steps.empty() && (plan_.status == Status::kInfeasible || plan_.status == Status::kTimeLimit))
      return std::move(report_);
    if (plan_.status == Status::kInfeasible) violate(0, "the status is infeasible but there are steps");
    begin();
    for (const Step& step : plan_.steps) {
      std::visit([this](const auto& s) { run_step(s); }, step);
      ++step_;
    }
    step_ = -1;
    finish();
    check_claims();
    return std::move(report_);
  }

 private:
  template <class... A>
  void violate(int rule, fmt::format_string<A...> f, A&&... a) {
    if (report_.violations.size() < max_)
      report_.violations.push_back({rule, step_, fmt::format(f, std::forward<A>(a)...)});
  }

  const std::string& name(DeviceId d) const { return p_.devices[d].name; }
  const std::string& name(BufferId b) const { return p_.buffers[b].name; }
  Block& at(DeviceId d, BufferId b) { return blocks_[d.index() * p_.buffers.size() + b.index()]; }
  bool may_drop(DeviceId d, BufferId b) const { return p_.buffers[b].home != d || p_.buffers[b].pageable; }

  /// Rule 1.
  Bytes counted(DeviceId d, Bytes bytes) const {
    const Bytes a = p_.devices[d].alignment;
    return (bytes + a - 1) / a * a;
  }
  Bytes counted(DeviceId d, BufferId b) const { return counted(d, p_.buffers[b].bytes); }

  std::optional<Bytes> budget(DeviceId d) const {
    return plan_.budgets.has(d) ? plan_.budgets[d] : p_.devices[d].budget;
  }

  /// Rule 2: the homed buffers, and nothing else.
  void begin() {
    blocks_.assign(p_.devices.size() * p_.buffers.size(), Block{});
    held_.assign(p_.devices.size(), 0);
    pool_.resize(p_.devices.size());
    device_free_.assign(p_.devices.size(), 0);
    runs_.assign(p_.ops.size(), 0);
    newest_.assign(p_.buffers.size(), kNone);
    for (std::size_t i = 0; i < p_.buffers.size(); ++i) {
      const BufferId b(i);
      if (!p_.buffers[b].home) continue;
      at(*p_.buffers[b].home, b) = {.held = true, .value = 0};
      held_[p_.buffers[b].home->index()] += counted(*p_.buffers[b].home, b);
      newest_[i] = 0;
    }
    for (std::size_t i = 0; i < p_.devices.size(); ++i) {
      const DeviceId d(i);
      if (budget(d)) pool_[i].give(*budget(d) - held_[i], 0);
      check_load(d, 0, "the homed buffers");
    }
  }

  /// Rule 7.
  void check_load(DeviceId d, Bytes extra, const std::string& what) {
    const Bytes load = held_[d.index()] + extra;
    report_.peak[d] = std::max(report_.peak[d], load);
    if (budget(d) && load > *budget(d))
      violate(7, "{} holds {} bytes with {}, {} over its budget of {}", name(d), load, what, load - *budget(d),
              *budget(d));
  }

  void hold(DeviceId d, BufferId b) {
    at(d, b).held = true;
    held_[d.index()] += counted(d, b);
  }

  void release(DeviceId d, BufferId b, Seconds when) {
    held_[d.index()] -= counted(d, b);
    pool_[d.index()].give(counted(d, b), when);
    at(d, b) = Block{};
  }

  // Rules 3 and 5.
  void run_step(const Compute& s) {
    if (!p_.ops.has(s.op)) return violate(3, "there is no op {}", s.op.value);
    const Op& op = p_.ops[s.op];
    if (s.impl < 0 || static_cast<std::size_t>(s.impl) >= op.impls.size())
      return violate(3, "op '{}' has no implementation {}", op.name, s.impl);
    const Impl& impl = op.impls[static_cast<std::size_t>(s.impl)];
    const std::string what = fmt::format("'{}' ('{}')", op.name, impl.name);
    check_reads(s.op, impl, what);
    check_again(s.op, impl, what);
    std::map<BufferId, BufferId> taken = taken_over(impl, what);  // output -> input whose block it takes

    Bytes fresh = 0;
    for (BufferId b : impl.writes) {
      if (!at(impl.device, b).held && taken.count(b) == 0) fresh += counted(impl.device, b);
    }
    check_load(impl.device, fresh + counted(impl.device, impl.workspace), what);
    const Seconds end = compute_end(impl, fresh);
    write(s.op, impl, taken, end);
    add(impl.seconds, impl.joules);
  }

  void check_reads(OpId id, const Impl& impl, const std::string& what) {
    for (BufferId b : impl.reads) {
      const int value = at(impl.device, b).value, needed = order_.read[id.index()].at(b);
      if (value == kNone) {
        violate(3, "{} reads '{}', which is not resident on {}", what, name(b), name(impl.device));
      } else if (value != needed) {
        violate(5, "{} reads version {} of '{}'; the order gives it version {}", what, value, name(b), needed);
      }
    }
  }

  void check_again(OpId id, const Impl& impl, const std::string& what) {
    if (++runs_[id.index()] > 1 && p_.ops[id].once) violate(6, "{} is once and runs a second time", what);
    for (BufferId b : impl.writes) {
      const int version = order_.write[id.index()].at(b);
      if (newest_[b.index()] > version)
        violate(5, "{} would bring back version {} of '{}' after version {} was made", what, version, name(b),
                newest_[b.index()]);
    }
  }

  std::map<BufferId, BufferId> taken_over(const Impl& impl, const std::string& what) {
    std::map<BufferId, BufferId> taken;
    for (const InPlace& pair : impl.in_place) {
      if (at(impl.device, pair.out).held) {
        violate(3, "{} writes '{}' in place of '{}' while '{}' is resident on {}", what, name(pair.out), name(pair.in),
                name(pair.out), name(impl.device));
      } else if (!may_drop(impl.device, pair.in)) {
        violate(3, "{} would drop '{}' from its home {}", what, name(pair.in), name(impl.device));
      } else if (at(impl.device, pair.in).held) {
        taken[pair.out] = pair.in;
      }
    }
    return taken;
  }

  void write(OpId id, const Impl& impl, const std::map<BufferId, BufferId>& taken, Seconds end) {
    const DeviceId d = impl.device;
    for (const auto& [out, in] : taken) {
      held_[d.index()] -= counted(d, in);
      pool_[d.index()].give(counted(d, in) - counted(d, out), end);
      at(d, in) = Block{};
    }
    for (BufferId b : impl.writes) {
      if (!at(d, b).held) hold(d, b);
      const int version = order_.write[id.index()].at(b);
      at(d, b) = {.held = true, .value = version, .ready = end, .used = end};
      newest_[b.index()] = std::max(newest_[b.index()], version);
      if (p_.ops[id].once) end_elsewhere(d, b, end);
    }
  }

  /// Rule 5: a new version ends the copies elsewhere; a home that is not pageable keeps its block without a value.
  void end_elsewhere(DeviceId d, BufferId b, Seconds end) {
    for (std::size_t i = 0; i < p_.devices.size(); ++i) {
      const DeviceId other(i);
      if (other == d || !at(other, b).held) continue;
      if (may_drop(other, b)) {
        release(other, b, std::max(at(other, b).used, end));
      } else {
        at(other, b).value = kNone;
      }
    }
  }

  // Rule 4.
  void run_step(const Copy& s) {
    if (!p_.buffers.has(s.buffer) || !p_.devices.has(s.from) || !p_.devices.has(s.to) || s.from == s.to)
      return violate(4, "a copy names something unknown, or one place twice");
    const std::optional<std::pair<Seconds, std::optional<double>>> way = way_of(s);
    if (!way) return violate(4, "there is no way from {} to {} for '{}'", name(s.from), name(s.to), name(s.buffer));
    if (at(s.from, s.buffer).value == kNone)
      return violate(4, "'{}' is not resident on {}", name(s.buffer), name(s.from));
    const bool fresh = !at(s.to, s.buffer).held;
    Block& from = at(s.from, s.buffer);
    Seconds start = std::max(link_free_[{s.from, s.to}], from.ready);
    if (fresh) {
      hold(s.to, s.buffer);
      start = std::max(start, pool_[s.to.index()].take(counted(s.to, s.buffer)));
    } else {
      start = std::max(start, at(s.to, s.buffer).used);
    }
    const Seconds end = start + way->first;
    check_load(s.to, 0, fmt::format("the copy of '{}'", name(s.buffer)));
    at(s.to, s.buffer) = {.held = true, .value = from.value, .ready = end, .used = end};
    from.used = std::max(from.used, end);
    link_free_[{s.from, s.to}] = end;
    makespan_ = std::max(makespan_, end);
    add(way->first, way->second);
  }

  std::optional<std::pair<Seconds, std::optional<double>>> way_of(const Copy& s) const {
    for (const CopyCost& c : p_.copies) {
      if (c.buffer == s.buffer && c.from == s.from && c.to == s.to) return {{c.seconds, c.joules}};
    }
    for (const Link& l : p_.links) {
      if (l.from == s.from && l.to == s.to)
        return {{l.latency + static_cast<double>(p_.buffers[s.buffer].bytes) / l.bytes_per_second, std::nullopt}};
    }
    return std::nullopt;
  }

  void run_step(const Free& s) {
    if (!p_.devices.has(s.device) || !p_.buffers.has(s.buffer)) return violate(4, "a free names something unknown");
    if (!at(s.device, s.buffer).held) return violate(4, "'{}' is not resident on {}", name(s.buffer), name(s.device));
    if (!may_drop(s.device, s.buffer))
      return violate(4, "'{}' is homed on {} and not pageable", name(s.buffer), name(s.device));
    release(s.device, s.buffer, at(s.device, s.buffer).used);
  }

  /// Rule 8, overlapped: when a computation may start, and so when it ends.
  Seconds compute_end(const Impl& impl, Bytes fresh) {
    const std::size_t d = impl.device.index();
    Seconds start = device_free_[d];
    for (BufferId b : impl.reads) start = std::max(start, at(impl.device, b).ready);
    for (BufferId b : impl.writes) start = std::max(start, at(impl.device, b).used);
    for (const InPlace& pair : impl.in_place) start = std::max(start, at(impl.device, pair.in).used);
    const Bytes workspace = counted(impl.device, impl.workspace);
    start = std::max(start, pool_[d].take(fresh + workspace));
    const Seconds end = start + impl.seconds;
    for (BufferId b : impl.reads) at(impl.device, b).used = std::max(at(impl.device, b).used, end);
    pool_[d].give(workspace, end);
    device_free_[d] = end;
    makespan_ = std::max(makespan_, end);
    return end;
  }

  void add(Seconds seconds, std::optional<double> joules) {
    report_.cost.seconds += seconds;
    if (joules) {
      joules_ += *joules;
    } else {
      all_joules_ = false;
    }
  }

  /// Rule 6.
  void finish() {
    for (std::size_t i = 0; i < p_.ops.size(); ++i) {
      if (p_.ops[OpId(i)].once && runs_[i] == 0) violate(6, "once op '{}' never runs", p_.ops[OpId(i)].name);
    }
    for (std::size_t i = 0; i < p_.buffers.size(); ++i) {
      if (p_.buffers[BufferId(i)].keep) check_kept(BufferId(i));
    }
    report_.cost.overlapped = makespan_;
    if (all_joules_) report_.cost.joules = joules_;
  }

  void check_kept(BufferId b) {
    int found = kNone;
    for (std::size_t i = 0; i < p_.devices.size(); ++i) {
      const DeviceId d(i);
      if (p_.buffers[b].home && *p_.buffers[b].home != d) continue;
      found = std::max(found, at(d, b).value);
    }
    const int last = order_.last[b.index()];
    if (found == kNone) {
      violate(6, "'{}' must be kept and is not resident {} at the end", name(b),
              p_.buffers[b].home ? "on its home" : "anywhere");
    } else if (found != last) {
      violate(6, "'{}' ends with version {} of {}", name(b), found, last);
    }
  }

  /// Rule 0: what the plan says about itself.
  void check_claims() {
    const Cost& found = report_.cost;
    if (plan_.cost.seconds >= 0 && differs(plan_.cost.seconds, found.seconds))
      violate(0, "the plan says {} seconds, the replay {}", plan_.cost.seconds, found.seconds);
    if (plan_.cost.overlapped >= 0 && differs(plan_.cost.overlapped, found.overlapped))
      violate(0, "the plan says {} seconds overlapped, the replay {}", plan_.cost.overlapped, found.overlapped);
    if (plan_.cost.joules && (!found.joules || differs(*plan_.cost.joules, *found.joules)))
      violate(0, "the plan says {} joules, the replay {}", *plan_.cost.joules, found.joules.value_or(0));
    for (std::size_t i = 0; i < p_.devices.size(); ++i) check_device_claims(DeviceId(i));
    check_bound(objective_of(found));
  }

  double objective_of(const Cost& found) {
    if (plan_.objective == Objective::kTime) return found.seconds;
    if (plan_.objective == Objective::kOverlap) return found.overlapped;
    if (!found.joules) violate(0, "the objective is energy, but the joules of some step are not known");
    return found.joules.value_or(0);
  }

  void check_bound(double cost) {
    const bool bounded = plan_.lower_bound.has_value();
    const double bound = bounded ? plan_.lower_bound->seconds : 0;
    if (bounded && bound > cost && differs(bound, cost))
      violate(0, "the lower bound {} is above the cost {}", bound, cost);
    if (plan_.status == Status::kOptimal && (!bounded || differs(bound, cost)))
      violate(0, "the status is optimal but the lower bound does not equal the cost");
  }

  void check_device_claims(DeviceId d) {
    const Bytes peak = report_.peak[d];
    if (plan_.peak.has(d) && plan_.peak[d] >= 0 && plan_.peak[d] != peak)
      violate(0, "the plan says a peak of {} on {}, the replay {}", plan_.peak[d], name(d), peak);
    if (!plan_.layout || !plan_.layout->top.has(d)) return;
    const Bytes top = plan_.layout->top[d];
    if (top < peak) violate(0, "the layout ends at {} on {}, below the peak {}", top, name(d), peak);
    if (budget(d) && top > *budget(d))
      violate(7, "the layout ends at {} on {}, over its budget of {}", top, name(d), *budget(d));
  }

  const Problem& p_;
  const Plan& plan_;
  std::size_t max_;
  OrderVersions order_;
  Report report_;
  int step_ = -1;
  std::vector<Block> blocks_;  // [device][buffer]
  std::vector<Bytes> held_;    // by device
  std::vector<int> runs_, newest_;
  double joules_ = 0;
  bool all_joules_ = true;
  // Overlapped time.
  std::vector<Pool> pool_;
  std::vector<Seconds> device_free_;
  std::map<std::pair<DeviceId, DeviceId>, Seconds> link_free_;
  Seconds makespan_ = 0;
};

}  // namespace

Report verify(const Problem& problem, const Plan& plan, int max_violations) {
  const std::vector<std::string> errors = check(problem);
  if (errors.empty()) return Replay(problem, plan, max_violations).run();
  Report report;
  report.violations.push_back({0, -1, "the problem is unsound: " + errors.front()});
  return report;
}

void verify_or_throw(const Problem& problem, const Plan& plan) {
  const Report report = verify(problem, plan, 1);
  if (report.ok()) return;
  const Violation& v = report.violations.front();
  throw InternalError("the plan of '{}' breaks rule {} at step {}: {}", plan.planner, v.rule, v.step, v.reason);
}

}  // namespace neaptide::plan
