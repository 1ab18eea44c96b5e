#include "neaptide/plan/planners/neaptide_placement.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "neaptide/plan/emit.hpp"
#include "neaptide/plan/forced.hpp"

namespace neaptide::plan::tide {
namespace {

/// The fastest one that fits, on the wished side where there is one; -1: none fits at all.
int fastest(const Problem& p, OpId op, DeviceId device, bool here) {
  const auto& impls = p.ops[op].impls;
  int best = -1;
  for (std::size_t i = 0; i < impls.size(); ++i) {
    const auto& budget = p.devices[impls[i].device].budget;
    if (budget && working_set(p, op, impls[i]).bytes > *budget) continue;
    const auto rank = [&](std::size_t k) { return std::pair{(impls[k].device == device) != here, impls[k].seconds}; };
    if (best < 0 || rank(i) < rank(static_cast<std::size_t>(best))) best = static_cast<int>(i);
  }
  return best;
}

Choice implementations(const Problem& p, DeviceId device, const PlacementBound::Choice& wanted) {
  Choice out = first_choice(p);
  for (std::size_t o = 0; o < p.ops.size(); ++o) {
    if (out[OpId(o)] >= 0) out[OpId(o)] = fastest(p, OpId(o), device, wanted.op_here[o] != 0);
  }
  return out;
}

class Writer {
 public:
  Writer(const Problem& p, DeviceId device, const PlacementBound::Choice& wanted, bool free_order)
      : p_(p),
        device_(device),
        stays_(wanted.stays),
        free_order_(free_order),
        choice_(implementations(p, device, wanted)),
        emit_(p, choice_),
        versions_(versions(p)),
        ran_(p.ops.size(), 0),
        n_readers_(p.buffers.size(), 0),
        writer_(p.buffers.size()) {
    for (const OpId op : p.order) {
      if (choice_[op] < 0) continue;
      for (const BufferId b : impl(op).reads) ++n_readers_[b.index()];
      for (const BufferId b : impl(op).writes) writer_[b.index()] = op;
    }
    let_the_last_stay();
  }

  std::vector<Step> run() {
    bool fine = true;
    for (const OpId op : p_.order) {
      if (choice_[op] < 0 || (free_order_ && may_wait(op))) continue;
      for (const BufferId b : impl(op).reads) {
        const OpId source = writer_[b.index()];
        if (source.valid() && free_order_ && may_wait(source)) fine = fine && take(source);
      }
      fine = fine && take(op);
    }
    for (const OpId op : p_.order) fine = fine && (choice_[op] < 0 || take(op));
    if (!fine || !emit_.finish()) return {};
    return with_departures();
  }

 private:
  const Impl& impl(OpId op) const { return p_.ops[op].impls[static_cast<std::size_t>(choice_[op])]; }

  /// Of kept values of one size it is all the same to the cut which ones stay, and at the best price whether they stay
  /// at all. Those that are used first leave, so that their room is there for the others, until the rest has room.
  void let_the_last_stay() {
    std::vector<BufferId> list;  // kept and made on the device, by first use in the order
    std::vector<char> seen(p_.buffers.size(), 0);
    for (const OpId op : p_.order) {
      if (choice_[op] < 0) continue;
      for (const BufferId b : impl(op).reads) {
        const OpId writer = writer_[b.index()];
        const bool counts =
            p_.buffers[b].keep && !p_.buffers[b].home && writer.valid() && impl(writer).device == device_;
        if (counts && seen[b.index()] == 0) list.push_back(b);
        seen[b.index()] = 1;
      }
    }
    std::map<Bytes, int> n_stay;  // by size
    Bytes sum = 0;
    for (const BufferId b : list) {
      n_stay[p_.buffers[b].bytes] += stays_[b.index()] != 0 ? 1 : 0;
      sum += stays_[b.index()] != 0 ? p_.size_on(b, device_) : 0;
    }
    for (auto it = list.rbegin(); it != list.rend(); ++it) {
      stays_[it->index()] = n_stay[p_.buffers[*it].bytes]-- > 0 ? 1 : 0;
    }
    const Bytes room = p_.devices[device_].budget.value_or(sum);
    for (const BufferId b : list) {
      if (sum <= room || stays_[b.index()] == 0) continue;
      stays_[b.index()] = 0;
      sum -= p_.size_on(b, device_);
    }
  }

  /// Reads nothing, and what it writes is never overwritten.
  bool may_wait(OpId op) const {
    return impl(op).reads.empty() && std::all_of(impl(op).writes.begin(), impl(op).writes.end(), [&](BufferId b) {
             return versions_.last[b] == 0 && !p_.buffers[b].home;
           });
  }

  bool take(OpId op) {
    if (ran_[op.index()] != 0) return true;
    ran_[op.index()] = 1;
    if (!emit_.run(op)) return false;
    for (const BufferId b : impl(op).reads) --n_readers_[b.index()];
    bool fine = true;
    for (const BufferId b : impl(op).reads) fine = fine && leave(b);
    for (const BufferId b : impl(op).writes) fine = fine && leave(b);
    return fine;
  }

  /// After its last use, for good: a kept value that is not to stay.
  bool leave(BufferId b) {
    const Buffer& buffer = p_.buffers[b];
    if (n_readers_[b.index()] > 0 || !buffer.keep || buffer.home || stays_[b.index()] != 0) return true;
    std::optional<Seconds> least;
    DeviceId to;
    for (std::size_t d = 0; d < p_.devices.size(); ++d) {
      const auto s = DeviceId(d) == device_ ? std::nullopt : copy_seconds(p_, b, device_, DeviceId(d));
      if (!s || (least && *least <= *s)) continue;
      least = s;
      to = DeviceId(d);
    }
    if (!to.valid() || !emit_.ensure(b, to)) return false;
    departures_.emplace_back(emit_.steps().size(), b);
    return true;
  }

  std::vector<Step> with_departures() {
    std::vector<char> there(p_.buffers.size(), 0);  // on the device
    std::vector<Step> out;
    const std::vector<Step> steps = emit_.take();
    std::size_t next = 0;
    for (std::size_t i = 0; i <= steps.size(); ++i) {
      for (; next < departures_.size() && departures_[next].first == i; ++next) {
        const BufferId b = departures_[next].second;
        if (there[b.index()] != 0) out.push_back(Free{b, device_});
        there[b.index()] = 0;
      }
      if (i == steps.size()) break;
      out.push_back(steps[i]);
      if (const auto* c = std::get_if<Compute>(&steps[i])) {
        const Impl& one = p_.ops[c->op].impls[static_cast<std::size_t>(c->impl)];
        for (const BufferId b : one.writes) there[b.index()] = one.device == device_ ? 1 : there[b.index()];
      } else if (const auto* k = std::get_if<Copy>(&steps[i])) {
        if (k->to == device_) there[k->buffer.index()] = 1;
      }
    }
    return out;
  }

  const Problem& p_;
  DeviceId device_;
  std::vector<char> stays_;  // by buffer: kept on the device
  bool free_order_;
  Choice choice_;
  Emitter emit_;
  Versions versions_;
  std::vector<char> ran_;                                     // by op
  std::vector<int> n_readers_;                                // by buffer: runs to come
  std::vector<OpId> writer_;                                  // by buffer
  std::vector<std::pair<std::size_t, BufferId>> departures_;  // after that many steps
};

}  // namespace

std::vector<Step> placed_steps(const Problem& problem, DeviceId device, const PlacementBound::Choice& choice,
                               bool free_order) {
  return Writer(problem, device, choice, free_order).run();
}

}  // namespace neaptide::plan::tide
