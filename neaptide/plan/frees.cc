// with_frees: the shortest residences that the computes and copies of a sequence allow.
#include <algorithm>

#include "neaptide/plan/simulate.hpp"

namespace neaptide::plan {
namespace {

/// One block while it is resident: since when its value is not needed any more, if nothing uses it again.
struct Residence {
  bool resident = false;
  int last_use = -1;  // step that last read or wrote the value; -1: the start
};

class Freeer {
 public:
  Freeer(const Problem& problem, const std::vector<Step>& steps)
      : p_(problem), steps_(steps), state_(problem.devices.size() * problem.buffers.size()), frees_(steps.size() + 1) {}

  std::vector<Step> run() {
    for (std::size_t i = 0; i < p_.buffers.size(); ++i) {
      const BufferId b(i);
      if (p_.buffers[b].home) at(*p_.buffers[b].home, b).resident = true;
    }
    for (const Step& step : steps_) {
      std::visit([this](const auto& s) { visit(s); }, step);
      ++now_;
    }
    end();
    return merged();
  }

 private:
  Residence& at(DeviceId d, BufferId b) { return state_[d.index() * p_.buffers.size() + b.index()]; }
  bool may_drop(DeviceId d, BufferId b) const { return p_.buffers[b].home != d || p_.buffers[b].pageable; }

  /// The value dies here without another use: free the block right after the last one, unless that is this very step.
  void die(DeviceId d, BufferId b) {
    const Residence& r = at(d, b);
    if (r.resident && r.last_use < now_ && may_drop(d, b))
      frees_[static_cast<std::size_t>(r.last_use) + 1].push_back({b, d});
  }

  void define(DeviceId d, BufferId b) {
    die(d, b);
    at(d, b) = {true, now_};
  }

  void visit(const Compute& s) {
    const Op& op = p_.ops[s.op];
    const Impl& impl = op.impls[static_cast<std::size_t>(s.impl)];
    for (BufferId b : impl.reads) at(impl.device, b).last_use = now_;
    for (const InPlace& pair : impl.in_place) at(impl.device, pair.in) = {};
    for (BufferId b : impl.writes) {
      define(impl.device, b);
      if (!op.once) continue;
      for (std::size_t i = 0; i < p_.devices.size(); ++i) {
        const DeviceId other(i);
        if (other == impl.device || !at(other, b).resident || !may_drop(other, b)) continue;
        die(other, b);
        at(other, b) = {};
      }
    }
  }

  void visit(const Copy& s) {
    at(s.from, s.buffer).last_use = now_;
    define(s.to, s.buffer);
  }

  void visit(const Free& s) { at(s.device, s.buffer) = {}; }

  void end() {
    for (std::size_t i = 0; i < p_.buffers.size(); ++i) {
      const BufferId b(i);
      const DeviceId kept = keeper(b);
      for (std::size_t j = 0; j < p_.devices.size(); ++j) {
        if (at(DeviceId(j), b).resident && DeviceId(j) != kept) die(DeviceId(j), b);
      }
    }
  }

  /// Where a `keep` buffer stays: on its home, else where it is wanted last anyway (then the shortest time beyond use).
  DeviceId keeper(BufferId b) {
    if (!p_.buffers[b].keep) return DeviceId();
    if (p_.buffers[b].home) return *p_.buffers[b].home;
    DeviceId best;
    for (std::size_t j = 0; j < p_.devices.size(); ++j) {
      const DeviceId d(j);
      if (at(d, b).resident && (!best.valid() || at(d, b).last_use > at(best, b).last_use)) best = d;
    }
    return best;
  }

  std::vector<Step> merged() const {
    std::vector<Step> out;
    for (std::size_t i = 0; i <= steps_.size(); ++i) {
      for (const Free& f : frees_[i]) out.emplace_back(f);
      if (i < steps_.size()) out.push_back(steps_[i]);
    }
    return out;
  }

  const Problem& p_;
  const std::vector<Step>& steps_;
  std::vector<Residence> state_;
  std::vector<std::vector<Free>> frees_;  // before step i
  int now_ = 0;
};

}  // namespace

std::vector<Step> with_frees(const Problem& problem, const std::vector<Step>& steps) {
  return Freeer(problem, steps).run();
}

}  // namespace neaptide::plan
