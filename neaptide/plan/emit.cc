#include "neaptide/plan/emit.hpp"

#include <algorithm>
#include <limits>

#include "neaptide/base/errors.hpp"

namespace neaptide::plan {
namespace {

constexpr int kForever = std::numeric_limits<int>::max();

/// Chooses implementations along the order, as if nothing were ever freed.
class Chooser {
 public:
  explicit Chooser(const Problem& problem)
      : p_(problem), there_(problem.buffers.size(), 0), last_read_(problem.buffers.size(), -1) {
    for (std::size_t b = 0; b < there_.size(); ++b) there_[b] = p_.buffers[BufferId(b)].home ? 1 : 0;
    for (std::size_t i = 0; i < p_.order.size(); ++i) {
      for (BufferId b : p_.ops[p_.order[i]].impls.front().reads) last_read_[b.index()] = static_cast<int>(i);
    }
  }

  Choice run() {
    Choice choice(p_.ops.size(), -1);
    for (std::size_t i = 0; i < p_.order.size(); ++i) {
      const Op& op = p_.ops[p_.order[i]];
      if (!op.once && all_there(op.impls.front().writes)) continue;
      const int k = pick(op, static_cast<int>(i));
      choice[p_.order[i]] = k;
      for (BufferId b : op.impls[static_cast<std::size_t>(k)].writes) there_[b.index()] = 1;
    }
    leave_out_unneeded(choice);
    return choice;
  }

 private:
  bool all_there(const std::vector<BufferId>& list) const {
    return std::all_of(list.begin(), list.end(), [&](BufferId b) { return there_[b.index()] != 0; });
  }

  bool takes_what_is_needed(const Impl& impl, int position) const {
    return std::any_of(impl.in_place.begin(), impl.in_place.end(), [&](const InPlace& pair) {
      return last_read_[pair.in.index()] > position || p_.buffers[pair.in].keep;
    });
  }

  int pick(const Op& op, int position) const {
    int second = 0;
    bool found = false;
    for (std::size_t k = 0; k < op.impls.size(); ++k) {
      if (!all_there(op.impls[k].reads)) continue;
      if (!takes_what_is_needed(op.impls[k], position)) return static_cast<int>(k);
      if (!found) second = static_cast<int>(k);
      found = true;
    }
    return second;
  }

  void leave_out_unneeded(Choice& choice) const {
    std::vector<char> needed(p_.buffers.size(), 0);
    for (std::size_t b = 0; b < needed.size(); ++b) needed[b] = p_.buffers[BufferId(b)].keep ? 1 : 0;
    for (auto it = p_.order.rbegin(); it != p_.order.rend(); ++it) {
      if (choice[*it] < 0) continue;
      const Impl& impl = p_.ops[*it].impls[static_cast<std::size_t>(choice[*it])];
      const bool wanted = p_.ops[*it].once || std::any_of(impl.writes.begin(), impl.writes.end(),
                                                          [&](BufferId b) { return needed[b.index()] != 0; });
      if (!wanted) choice[*it] = -1;
      for (BufferId b : impl.reads) needed[b.index()] |= wanted ? 1 : 0;
    }
  }

  const Problem& p_;
  std::vector<char> there_;
  std::vector<int> last_read_;  // position of the last op whose first implementation reads the buffer
};

/// Watches every value along the order: when it is used, and for how long it could be had again.
class Watcher {
 public:
  Watcher(const Problem& problem, const Choice& choice)
      : p_(problem),
        choice_(choice),
        overwritten_(problem.buffers.size(), kForever),
        open_(overwritten_),
        last_(problem.buffers.size(), -1) {
    const std::size_t n = problem.buffers.size();
    u_.writer = IdVector<BufferTag, OpId>(n);
    u_.readers = IdVector<BufferTag, std::vector<int>>(n);
    u_.droppable = IdVector<BufferTag, bool>(n, false);
    u_.until = IdVector<BufferTag, int>(n, -1);
    u_.position = IdVector<OpTag, int>(problem.ops.size(), -1);
  }

  /// A value may be dropped when it can be had again until its last use. How long that is depends on which other values
  /// may be dropped: what is made from them is made again as well, and then reads it once more. So the late values are
  /// judged first, as if all that they are made from could be dropped; those that are made too close to an update stay
  /// (gradients, as a rule), and what they read is not asked for again. Then the values that lost by that assumption
  /// are judged once more: letting one of them go harms no other, for it asks of its inputs no more than it can get.
  Uses run() {
    note_uses();
    close_ways([](BufferId) { return true; });
    find_last([this](BufferId b) { return open_[b.index()] > last_[b.index()]; });
    close_ways([this](BufferId b) { return u_.droppable[b] || ways_ > last_[b.index()]; });
    find_last([this](BufferId b) { return static_cast<bool>(u_.droppable[b]); });
    for (std::size_t b = 0; b < last_.size(); ++b) u_.until[BufferId(b)] = last_[b];
    return std::move(u_);
  }

 private:
  const Impl* impl_at(std::size_t i) const {
    const int k = choice_[p_.order[i]];
    return k < 0 ? nullptr : &p_.ops[p_.order[i]].impls[static_cast<std::size_t>(k)];
  }

  void note_uses() {
    for (std::size_t i = 0; i < p_.order.size(); ++i) {
      const OpId op = p_.order[i];
      const int here = static_cast<int>(i);
      u_.position[op] = here;
      const Impl* impl = impl_at(i);
      if (impl == nullptr) continue;
      for (BufferId b : impl->reads) u_.readers[b].push_back(here);
      for (BufferId b : impl->writes) {
        if (!p_.buffers[b].home && !u_.writer[b].valid()) {
          u_.writer[b] = op;
        } else if (p_.ops[op].once) {
          overwritten_[b.index()] = std::min(overwritten_[b.index()], here);
        }
      }
    }
  }

  /// One version, made by an op that may run again.
  bool candidate(BufferId b, OpId op) const {
    return u_.writer[b] == op && !p_.ops[op].once && !p_.buffers[b].keep && overwritten_[b.index()] == kForever;
  }

  /// Along the order: the position from which a value cannot be had any more, when those chosen are dropped.
  template <typename F>
  void close_ways(const F& chosen) {
    open_ = overwritten_;
    for (std::size_t i = 0; i < p_.order.size(); ++i) {
      const Impl* impl = impl_at(i);
      if (impl == nullptr) continue;
      ways_ = kForever;
      for (BufferId b : impl->reads) ways_ = std::min(ways_, open_[b.index()]);
      for (BufferId b : impl->writes) ways_ = std::min(ways_, overwritten_[b.index()]);
      for (BufferId b : impl->writes) {
        if (!candidate(b, p_.order[i]) || !chosen(b)) continue;
        open_[b.index()] = ways_;
        u_.droppable[b] = true;
      }
    }
  }

  /// Against the order: the last use of every value, when those that pass are dropped and made again.
  template <typename F>
  void find_last(const F& passes) {
    std::fill(last_.begin(), last_.end(), -1);
    for (std::size_t i = p_.order.size(); i-- > 0;) {
      const Impl* impl = impl_at(i);
      if (impl == nullptr) continue;
      int until = static_cast<int>(i);
      for (BufferId b : impl->writes) {
        if (!candidate(b, p_.order[i])) continue;
        u_.droppable[b] = passes(b);
        if (u_.droppable[b]) until = std::max(until, last_[b.index()]);
      }
      for (BufferId b : impl->reads) last_[b.index()] = std::max(last_[b.index()], until);
    }
  }

  const Problem& p_;
  const Choice& choice_;
  std::vector<int> overwritten_;  // position of the first op that ends version 0
  std::vector<int> open_;         // position from which the value cannot be had any more
  std::vector<int> last_;         // position until which some run may still want the value
  int ways_ = kForever;           // of the op at hand: position from which it cannot run again
  Uses u_;
};

}  // namespace

Choice first_choice(const Problem& problem) { return Chooser(problem).run(); }

DeviceId only_device(const Problem& problem, const Choice& choice, std::string_view planner) {
  DeviceId one;
  const auto note = [&](DeviceId d) {
    if (!one.valid()) one = d;
    if (one != d)
      throw UserError("planner '{}' knows one device; '{}' uses {} and {}", planner, problem.name,
                      problem.devices[one].name, problem.devices[d].name);
  };
  for (const Buffer& b : problem.buffers) {
    if (b.home) note(*b.home);
  }
  for (OpId op : problem.order) {
    if (choice[op] >= 0) note(problem.ops[op].impls[static_cast<std::size_t>(choice[op])].device);
  }
  return one.valid() ? one : DeviceId(0);
}

Seconds seconds_of(const Problem& problem, const Choice& choice) {
  Seconds sum = 0;
  for (OpId op : problem.order) {
    if (choice[op] >= 0) sum += problem.ops[op].impls[static_cast<std::size_t>(choice[op])].seconds;
  }
  return sum;
}

std::vector<DeviceId> route(const Problem& problem, BufferId buffer, DeviceId from, DeviceId to) {
  const std::size_t n = problem.devices.size();
  constexpr double kFar = std::numeric_limits<double>::infinity();
  std::vector<double> best(n, kFar);
  std::vector<DeviceId> before(n);
  best[from.index()] = 0;
  for (std::size_t round = 0; round + 1 < n; ++round) {
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = 0; b < n && best[a] < kFar; ++b) {
        const auto seconds = a == b ? std::nullopt : copy_seconds(problem, buffer, DeviceId(a), DeviceId(b));
        if (!seconds || best[a] + *seconds >= best[b]) continue;
        best[b] = best[a] + *seconds;
        before[b] = DeviceId(a);
      }
    }
  }
  if (best[to.index()] == kFar) return {};
  std::vector<DeviceId> path{to};
  while (path.back() != from) path.push_back(before[path.back().index()]);
  std::reverse(path.begin(), path.end());
  return path;
}

Uses uses_of(const Problem& problem, const Choice& choice) { return Watcher(problem, choice).run(); }

Emitter::Emitter(const Problem& problem, const Choice& choice)
    : problem_(problem),
      choice_(choice),
      versions_(versions(problem)),
      position_(problem.ops.size(), 0),
      writers_(problem.buffers.size()),
      newest_(problem.buffers.size(), -1),
      has_(problem.devices.size() * problem.buffers.size(), 0),
      n_holders_(problem.buffers.size(), 0),
      ran_(problem.ops.size(), 0) {
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const BufferId b(i);
    if (!problem.buffers[b].home) continue;
    set(*problem.buffers[b].home, b, true);
    newest_[i] = 0;
  }
  for (std::size_t i = 0; i < problem.order.size(); ++i) {
    const OpId op = problem.order[i];
    position_[op.index()] = static_cast<int>(i);
    if (choice[op] < 0) continue;
    const auto k = static_cast<std::size_t>(choice[op]);
    const Impl& chosen = impl(op);
    for (std::size_t j = 0; j < chosen.writes.size(); ++j) {
      std::vector<OpId>& list = writers_[chosen.writes[j].index()];
      const auto version = static_cast<std::size_t>(versions_.write[op.index()][k][j]);
      if (list.size() <= version) list.resize(version + 1);
      if (!list[version].valid()) list[version] = op;
    }
  }
}

void Emitter::set(DeviceId d, BufferId b, bool value) {
  char& cell = has_[d.index() * problem_.buffers.size() + b.index()];
  if ((cell != 0) == value) return;
  cell = value ? 1 : 0;
  n_holders_[b.index()] += value ? 1 : -1;
}

bool Emitter::resident(BufferId buffer) const { return n_holders_[buffer.index()] > 0; }

void Emitter::drop(BufferId buffer) {
  for (std::size_t d = 0; d < problem_.devices.size(); ++d) {
    if (problem_.buffers[buffer].home != DeviceId(d)) set(DeviceId(d), buffer, false);
  }
}

bool Emitter::copy_from_elsewhere(BufferId buffer, DeviceId device) {
  std::vector<DeviceId> best;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t d = 0; d < problem_.devices.size(); ++d) {
    if (!has(DeviceId(d), buffer)) continue;
    const std::vector<DeviceId> path = route(problem_, buffer, DeviceId(d), device);
    double seconds = path.empty() ? least : 0;
    for (std::size_t i = 0; i + 1 < path.size(); ++i) seconds += *copy_seconds(problem_, buffer, path[i], path[i + 1]);
    if (seconds >= least) continue;
    least = seconds;
    best = path;
  }
  for (std::size_t i = 0; i + 1 < best.size(); ++i) {
    steps_.emplace_back(Copy{buffer, best[i], best[i + 1]});
    set(best[i + 1], buffer, true);
  }
  return !best.empty();
}

/// Whether the op would read and write the versions that its first execution reads and writes.
bool Emitter::may_run(OpId op) const {
  if (problem_.ops[op].once && ran_[op.index()] != 0) return false;
  const auto k = static_cast<std::size_t>(choice_[op]);
  const Impl& chosen = impl(op);
  for (std::size_t j = 0; j < chosen.reads.size(); ++j) {
    if (newest_[chosen.reads[j].index()] > std::max(0, versions_.read[op.index()][k][j])) return false;
  }
  for (std::size_t j = 0; j < chosen.writes.size(); ++j) {
    if (newest_[chosen.writes[j].index()] > versions_.write[op.index()][k][j]) return false;
  }
  return true;
}

/// Adds every op that must run again before `op` can.
bool Emitter::collect(OpId op, std::vector<OpId>& out, std::vector<char>& seen) const {
  std::vector<OpId> open{op};
  while (!open.empty()) {
    const OpId next = open.back();
    open.pop_back();
    for (BufferId b : impl(next).reads) {
      if (resident(b)) continue;
      const int version = std::max(0, newest_[b.index()]);
      const std::vector<OpId>& ways = writers_[b.index()];
      const OpId writer =
          static_cast<std::size_t>(version) < ways.size() ? ways[static_cast<std::size_t>(version)] : OpId();
      if (!writer.valid() || !may_run(writer)) return false;
      if (seen[writer.index()] != 0) continue;
      seen[writer.index()] = 1;
      out.push_back(writer);
      open.push_back(writer);
    }
  }
  return true;
}

bool Emitter::compute(OpId op, int depth) {
  const Impl& chosen = impl(op);
  for (BufferId b : chosen.reads) {
    if (!resident(b) && depth > 0) return make(op, depth - 1);
    if (!has(chosen.device, b) && !(resident(b) && copy_from_elsewhere(b, chosen.device))) return false;
  }
  steps_.emplace_back(Compute{op, choice_[op]});
  ran_[op.index()] = 1;
  for (const InPlace& pair : chosen.in_place) set(chosen.device, pair.in, false);
  const auto k = static_cast<std::size_t>(choice_[op]);
  for (std::size_t j = 0; j < chosen.writes.size(); ++j) {
    const BufferId b = chosen.writes[j];
    if (problem_.ops[op].once) {
      for (std::size_t d = 0; d < problem_.devices.size(); ++d) set(DeviceId(d), b, false);
    }
    set(chosen.device, b, true);
    newest_[b.index()] = std::max(newest_[b.index()], versions_.write[op.index()][k][j]);
  }
  return true;
}

bool Emitter::make(OpId op, int depth) {
  std::vector<OpId> again;
  std::vector<char> seen(problem_.ops.size(), 0);
  if (!may_run(op) || !collect(op, again, seen)) return false;
  std::sort(again.begin(), again.end(), [&](OpId a, OpId b) { return position_[a.index()] < position_[b.index()]; });
  for (OpId o : again) {
    if (!compute(o, depth)) return false;
  }
  return compute(op, depth);
}

bool Emitter::run(OpId op) {
  constexpr int kNested = 40;  // an implementation that takes its input in place may make a value vanish again
  return make(op, kNested);
}

bool Emitter::ensure(BufferId buffer, DeviceId device) {
  if (has(device, buffer)) return true;
  if (!resident(buffer)) {
    const auto version = static_cast<std::size_t>(std::max(0, newest_[buffer.index()]));
    const std::vector<OpId>& ways = writers_[buffer.index()];
    if (version >= ways.size() || !ways[version].valid() || !run(ways[version])) return false;
  }
  return has(device, buffer) || copy_from_elsewhere(buffer, device);
}

bool Emitter::finish() {
  for (std::size_t i = 0; i < problem_.buffers.size(); ++i) {
    const BufferId b(i);
    if (!problem_.buffers[b].keep) continue;
    if (problem_.buffers[b].home ? !ensure(b, *problem_.buffers[b].home) : !resident(b)) return false;
  }
  return true;
}

}  // namespace neaptide::plan
