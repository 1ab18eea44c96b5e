#include "neaptide/plan/simulate.hpp"

#include <algorithm>
#include <map>

#include "neaptide/base/errors.hpp"

namespace neaptide::plan {
namespace {

/// Freed bytes of a device, keyed by the time at which they became free. A step takes the earliest first, in plan
/// order.
class FreedBytes {
 public:
  void add(Seconds when, Bytes bytes) {
    if (bytes > 0) by_time_[when] += bytes;
  }
  Seconds claim(Bytes bytes) {
    Seconds when = 0;
    for (auto it = by_time_.begin(); bytes > 0 && it != by_time_.end();) {
      when = std::max(when, it->first);
      const Bytes part = std::min(bytes, it->second);
      bytes -= part;
      it->second -= part;
      it = it->second == 0 ? by_time_.erase(it) : std::next(it);
    }
    return when;
  }

 private:
  std::map<Seconds, Bytes> by_time_;
};

struct Residence {
  bool resident = false;
  Seconds made = 0;     // the value is ready
  Seconds touched = 0;  // the last step that uses the block has ended
};

class Simulator {
 public:
  explicit Simulator(const Problem& problem)
      : p_(problem),
        n_buffers_(problem.buffers.size()),
        state_(problem.devices.size() * problem.buffers.size()),
        now_(problem.devices.size(), 0),
        freed_(problem.devices.size()),
        device_lane_(problem.devices.size(), 0) {
    for (std::size_t i = 0; i < n_buffers_; ++i) {
      const BufferId b(i);
      if (p_.buffers[b].home) settle(*p_.buffers[b].home, b);
    }
    out_.peak = IdVector<DeviceTag, Bytes>(p_.devices.size(), 0);
    out_.held.resize(p_.devices.size());
    for (std::size_t d = 0; d < now_.size(); ++d) {
      const std::optional<Bytes> budget = p_.devices[DeviceId(d)].budget;
      if (budget) freed_[d].add(0, *budget - now_[d]);
      out_.peak[DeviceId(d)] = now_[d];
    }
  }

  Simulation run(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      during_ = now_;
      std::visit([this](const auto& s) { apply(s); }, step);
      for (std::size_t d = 0; d < now_.size(); ++d) {
        out_.peak[DeviceId(d)] = std::max(out_.peak[DeviceId(d)], during_[d]);
        out_.held[d].push_back(during_[d]);
      }
    }
    if (joules_known_) out_.cost.joules = joules_;
    return std::move(out_);
  }

 private:
  Residence& at(DeviceId d, BufferId b) { return state_[d.index() * n_buffers_ + b.index()]; }

  void settle(DeviceId d, BufferId b) {
    at(d, b).resident = true;
    now_[d.index()] += p_.size_on(b, d);
  }

  void drop(DeviceId d, BufferId b, Seconds when) {
    now_[d.index()] -= p_.size_on(b, d);
    freed_[d.index()].add(when, p_.size_on(b, d));
    at(d, b) = {};
  }

  void apply(const Compute& s) {
    const Op& op = p_.ops[s.op];
    const Impl& impl = op.impls[static_cast<std::size_t>(s.impl)];
    const DeviceId d = impl.device;
    Bytes fresh = 0;
    for (BufferId b : impl.writes) {
      if (!at(d, b).resident && !is_in_place_output(impl, b)) fresh += p_.size_on(b, d);
    }
    const Bytes workspace = p_.rounded(impl.workspace, d);
    during_[d.index()] += fresh + workspace;

    Seconds start = std::max(device_lane_[d.index()], freed_[d.index()].claim(fresh + workspace));
    for (BufferId b : impl.reads) {
      ensure(at(d, b).resident, "a step reads what is not resident");
      start = std::max(start, at(d, b).made);
    }
    for (BufferId b : impl.writes) start = std::max(start, at(d, b).touched);
    for (const InPlace& pair : impl.in_place) start = std::max(start, at(d, pair.in).touched);
    const Seconds end = start + impl.seconds;
    for (BufferId b : impl.reads) at(d, b).touched = std::max(at(d, b).touched, end);
    freed_[d.index()].add(end, workspace);
    finish(op, impl, end);
    device_lane_[d.index()] = end;
    account(impl.seconds, impl.joules, end);
  }

  static bool is_in_place_output(const Impl& impl, BufferId b) {
    return std::any_of(impl.in_place.begin(), impl.in_place.end(), [&](const InPlace& p) { return p.out == b; });
  }

  void finish(const Op& op, const Impl& impl, Seconds end) {
    const DeviceId d = impl.device;
    for (const InPlace& pair : impl.in_place) {
      const Bytes in = p_.size_on(pair.in, d), out = p_.size_on(pair.out, d);
      freed_[d.index()].add(end, in - out);
      now_[d.index()] -= in;
      at(d, pair.in) = {};
    }
    for (BufferId b : impl.writes) {
      if (!at(d, b).resident) settle(d, b);
      at(d, b).made = at(d, b).touched = end;
      if (op.once) end_copies(d, b, end);
    }
  }

  /// A once op starts a new version: copies elsewhere end, unless they are a home that cannot be paged.
  void end_copies(DeviceId d, BufferId b, Seconds end) {
    for (std::size_t i = 0; i < p_.devices.size(); ++i) {
      const DeviceId other(i);
      const bool fixed = p_.buffers[b].home == other && !p_.buffers[b].pageable;
      if (other != d && !fixed && at(other, b).resident) drop(other, b, std::max(end, at(other, b).touched));
    }
  }

  void apply(const Copy& s) {
    const std::optional<Seconds> seconds = copy_seconds(p_, s.buffer, s.from, s.to);
    ensure(seconds.has_value() && at(s.from, s.buffer).resident, "a copy has no way or no source");
    Residence &from = at(s.from, s.buffer), &to = at(s.to, s.buffer);
    Seconds& lane = link_lane_[{s.from, s.to}];
    Seconds start = std::max({lane, from.made, to.touched});
    if (!to.resident) {
      const Bytes bytes = p_.size_on(s.buffer, s.to);
      start = std::max(start, freed_[s.to.index()].claim(bytes));
      during_[s.to.index()] += bytes;
      settle(s.to, s.buffer);
    }
    lane = start + *seconds;
    from.touched = std::max(from.touched, lane);
    to.made = to.touched = lane;
    account(*seconds, copy_joules(s), lane);
  }

  std::optional<double> copy_joules(const Copy& s) const {
    for (const CopyCost& c : p_.copies) {
      if (c.buffer == s.buffer && c.from == s.from && c.to == s.to) return c.joules;
    }
    return std::nullopt;
  }

  void apply(const Free& s) {
    ensure(at(s.device, s.buffer).resident, "a step frees what is not resident");
    drop(s.device, s.buffer, at(s.device, s.buffer).touched);
  }

  void account(Seconds seconds, std::optional<double> joules, Seconds end) {
    out_.cost.seconds += seconds;
    out_.cost.overlapped = std::max(out_.cost.overlapped, end);
    joules_known_ = joules_known_ && joules.has_value();
    joules_ += joules.value_or(0);
  }

  const Problem& p_;
  std::size_t n_buffers_;
  std::vector<Residence> state_;  // [device][buffer]
  std::vector<Bytes> now_;        // held between steps, by device
  std::vector<Bytes> during_;     // held while the step runs, by device
  std::vector<FreedBytes> freed_;
  std::vector<Seconds> device_lane_;
  std::map<std::pair<DeviceId, DeviceId>, Seconds> link_lane_;
  double joules_ = 0;
  bool joules_known_ = true;
  Simulation out_;
};

}  // namespace

Simulation simulate(const Problem& problem, const std::vector<Step>& steps) { return Simulator(problem).run(steps); }

}  // namespace neaptide::plan
