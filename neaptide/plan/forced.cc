#include "neaptide/plan/forced.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "neaptide/plan/once_peak.hpp"

namespace neaptide::plan {
namespace {

/// What it reads and writes, less what takes a block over.
std::set<BufferId> held_by(const Impl& impl) {
  std::set<BufferId> held(impl.reads.begin(), impl.reads.end());
  held.insert(impl.writes.begin(), impl.writes.end());
  for (const InPlace& pair : impl.in_place) held.erase(pair.out);
  return held;
}

void largest_first(const Problem& p, std::vector<BufferId>& list) {
  std::stable_sort(list.begin(), list.end(),
                   [&](BufferId a, BufferId b) { return p.buffers[a].bytes > p.buffers[b].bytes; });
}

/// Buffers that every implementation of the op reads.
std::vector<BufferId> always_read(const Op& op) {
  std::vector<BufferId> common = op.impls.front().reads;
  for (const Impl& i : op.impls) {
    std::erase_if(common, [&](BufferId b) { return std::find(i.reads.begin(), i.reads.end(), b) == i.reads.end(); });
  }
  return common;
}

}  // namespace

Bytes fixed_bytes(const Problem& p, DeviceId d) {
  Bytes sum = 0;
  for (std::size_t i = 0; i < p.buffers.size(); ++i) {
    const Buffer& b = p.buffers[BufferId(i)];
    if (b.home == d && !b.pageable) sum += p.size_on(BufferId(i), d);
  }
  return sum;
}

Bytes own_bytes(const Problem& p, const Impl& impl) {
  Bytes sum = p.rounded(impl.workspace, impl.device);
  for (const BufferId b : held_by(impl)) {
    const bool fixed = p.buffers[b].home == impl.device && !p.buffers[b].pageable;
    if (!fixed) sum += p.size_on(b, impl.device);
  }
  return sum;
}

IdVector<OpTag, bool> necessary_ops(const Problem& problem) {
  std::vector<std::set<OpId>> writers(problem.buffers.size());
  for (std::size_t o = 0; o < problem.ops.size(); ++o) {
    for (const Impl& i : problem.ops[OpId(o)].impls) {
      for (BufferId b : i.writes) writers[b.index()].insert(OpId(o));
    }
  }
  IdVector<OpTag, bool> needed(problem.ops.size(), false);
  std::vector<OpId> open;
  const auto need = [&](OpId op) {
    if (needed[op]) return;
    needed[op] = true;
    open.push_back(op);
  };
  const auto need_value = [&](BufferId b) {
    if (!problem.buffers[b].home && writers[b.index()].size() == 1) need(*writers[b.index()].begin());
  };
  for (std::size_t o = 0; o < problem.ops.size(); ++o) {
    if (problem.ops[OpId(o)].once) need(OpId(o));
  }
  for (std::size_t b = 0; b < problem.buffers.size(); ++b) {
    if (problem.buffers[BufferId(b)].keep) need_value(BufferId(b));
  }
  while (!open.empty()) {
    const Op& op = problem.ops[open.back()];
    open.pop_back();
    for (BufferId b : always_read(op)) need_value(b);
  }
  return needed;
}

Seconds cheapest_seconds(const Problem& problem) {
  const IdVector<OpTag, bool> needed = necessary_ops(problem);
  Seconds sum = 0;
  for (OpId op : problem.order) {
    if (!needed[op]) continue;
    Seconds least = std::numeric_limits<double>::infinity();
    for (const Impl& i : problem.ops[op].impls) least = std::min(least, i.seconds);
    sum += least;
  }
  return sum;
}

Forced working_set(const Problem& problem, OpId op, const Impl& impl) {
  Forced f;
  f.op = op;
  f.bytes = fixed_bytes(problem, impl.device) + own_bytes(problem, impl);
  const std::set<BufferId> held = held_by(impl);
  f.buffers.assign(held.begin(), held.end());
  largest_first(problem, f.buffers);
  return f;
}

Forced smallest_peak(const Problem& problem, DeviceId device) {
  Forced best;
  best.bytes = fixed_bytes(problem, device);
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& b = problem.buffers[BufferId(i)];
    if (b.home != device) continue;
    if (b.pageable) best.bytes += problem.size_on(BufferId(i), device);  // they all lie there before step 0
    best.buffers.push_back(BufferId(i));
  }
  largest_first(problem, best.buffers);
  const IdVector<OpTag, bool> needed = necessary_ops(problem);
  for (OpId op : problem.order) {
    if (!needed[op]) continue;
    std::optional<Forced> least;
    for (const Impl& i : problem.ops[op].impls) {
      Forced f = i.device == device ? working_set(problem, op, i) : Forced{};
      if (!least || f.bytes < least->bytes) least = std::move(f);
    }
    if (least && least->bytes > best.bytes) best = std::move(*least);
  }
  OncePeak held = once_peak(problem, device, best.bytes);
  if (held.op.valid()) best = {held.bytes, held.op, std::move(held.buffers)};
  return best;
}

namespace {

Infeasible refusal(const Problem& problem, DeviceId device, const Forced& forced) {
  Infeasible why;
  why.device = device;
  why.proved = forced.bytes;
  why.step = forced.op.valid() ? problem.ops[forced.op].name : "the start";
  for (BufferId b : forced.buffers) why.buffers.push_back(problem.buffers[b].name);
  return why;
}

}  // namespace

std::optional<Infeasible> prove_infeasible(const Problem& problem) {
  for (std::size_t d = 0; d < problem.devices.size(); ++d) {
    const Forced forced = smallest_peak(problem, DeviceId(d));
    const auto budget = problem.devices[DeviceId(d)].budget;
    if (budget && forced.bytes > *budget) return refusal(problem, DeviceId(d), forced);
  }
  const IdVector<OpTag, bool> needed = necessary_ops(problem);
  for (OpId op : problem.order) {
    if (!needed[op]) continue;
    std::optional<Infeasible> nearest;  // the implementation that overflows least
    Bytes least = std::numeric_limits<Bytes>::max();
    for (const Impl& i : problem.ops[op].impls) {
      const Forced forced = working_set(problem, op, i);
      const Bytes over = forced.bytes - problem.devices[i.device].budget.value_or(forced.bytes);
      if (over < least) nearest = refusal(problem, i.device, forced);
      least = std::min(least, over);
    }
    if (least > 0) return nearest;
  }
  return std::nullopt;
}

}  // namespace neaptide::plan
