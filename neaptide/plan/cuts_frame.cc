#include "neaptide/plan/cuts_frame.hpp"

#include <algorithm>
#include <cmath>

namespace neaptide::plan {
namespace {

bool contains(const std::vector<int>& all, const std::vector<int>& part) {
  return std::includes(all.begin(), all.end(), part.begin(), part.end());
}

}  // namespace

CutsFrame::CutsFrame(const Problem& p, DeviceId d, BoundScope s) : problem(p), facts(p), device(d), scope(s) {
  for (std::size_t v = 0; v < facts.values.size(); ++v) {
    const ValueInfo& info = facts.values[v];
    const Buffer& b = p.buffers[info.buffer];
    const bool stays = b.home == device && !b.pageable;
    size.push_back(stays ? 0 : p.size_on(info.buffer, device));
    homed.push_back(b.home.has_value() && info.version == 0);
    needed_at_end.push_back(info.at_end && (b.home ? *b.home == device : p.devices.size() == 1));
  }
  for (std::size_t b = 0; b < p.buffers.size(); ++b) {
    const Buffer& buffer = p.buffers[BufferId(b)];
    if (buffer.home == device && !buffer.pageable) fixed_bytes += p.size_on(BufferId(b), device);
  }
  followers_.resize(p.ops.size());
  for (std::size_t o = 0; o < p.ops.size(); ++o) {
    const auto& impls = p.ops[OpId(o)].impls;
    here.push_back(std::all_of(impls.begin(), impls.end(), [&](const Impl& i) { return i.device == device; }));
    std::vector<std::vector<int>> reads(impls.size()), writes(impls.size()), takes(impls.size());
    for (std::size_t i = 0; i < impls.size(); ++i) {
      for (std::size_t r = 0; r < impls[i].reads.size(); ++r) {
        const int version = facts.versions_.read[o][i][r];
        if (version < 0 || !here[o]) continue;
        const int v = facts.value_of[impls[i].reads[r].index()][version];
        if (size[v] <= 0) continue;
        reads[i].push_back(v);
        const auto& pairs = impls[i].in_place;
        const bool over =
            std::any_of(pairs.begin(), pairs.end(), [&](const InPlace& one) { return one.in == impls[i].reads[r]; });
        if (over) takes[i].push_back(v);
      }
      for (std::size_t w = 0; w < impls[i].writes.size(); ++w) {
        const int v = facts.value_of[impls[i].writes[w].index()][facts.versions_.write[o][i][w]];
        if (size[v] > 0) writes[i].push_back(v);
      }
      std::sort(reads[i].begin(), reads[i].end());
      std::sort(writes[i].begin(), writes[i].end());
      std::sort(takes[i].begin(), takes[i].end());
    }
    std::vector<int> stands, common;
    const auto dominates = [&](std::size_t k, std::size_t i) {
      return here[o] && impls[k].seconds <= impls[i].seconds && contains(reads[i], reads[k]) &&
             contains(writes[k], writes[i]) && facts.may_be_first[o][k] >= facts.may_be_first[o][i];
    };
    for (std::size_t i = 0; i < impls.size(); ++i) {
      std::size_t best = i;
      for (std::size_t k = 0; k < impls.size(); ++k) {
        if (!dominates(k, i)) continue;
        const bool strictly = !dominates(i, k);
        if (strictly ? best == i || impls[k].seconds < impls[best].seconds : k < best && best == i) best = k;
      }
      stands.push_back(static_cast<int>(best));
    }
    for (std::size_t i = 0; i < impls.size(); ++i) {  // a representative stands for itself
      while (stands[stands[i]] != stands[i]) stands[i] = stands[stands[i]];
    }
    for (const int v : reads[0]) {
      if (std::all_of(reads.begin(), reads.end(), [&](const auto& list) { return has(list, v); })) common.push_back(v);
    }
    stands_for.push_back(std::move(stands));
    impl_reads.push_back(std::move(reads));
    impl_writes.push_back(std::move(writes));
    impl_takes.push_back(std::move(takes));
    common_.push_back(std::move(common));
    for (const int v : facts.reads[o]) {
      if (const int m = sole_maker(v); m >= 0) followers_[m].push_back(static_cast<int>(o));
    }
  }
  for (std::size_t v = 0; v < facts.values.size(); ++v) {
    const ValueInfo& info = facts.values[v];
    Seconds in = INFINITY, out = INFINITY;
    for (std::size_t e = 0; e < p.devices.size(); ++e) {
      if (DeviceId(e) == device) continue;
      if (const auto t = copy_seconds(p, info.buffer, DeviceId(e), device)) in = std::min(in, *t);
      if (const auto t = copy_seconds(p, info.buffer, device, DeviceId(e))) out = std::min(out, *t);
    }
    const bool made_here = (!homed[v] || p.buffers[info.buffer].home == device) &&
                           std::all_of(info.makers.begin(), info.makers.end(), [&](OpId o) { return here[o.index()]; });
    const auto units = [&](Seconds t) {
      const double most = std::ldexp(1.0, facts.unit_log2 + 59);  // more than all ops together; to charge less is valid
      return std::isinf(t) ? kNoLimit : facts.units(std::min(t, most));
    };
    back.push_back(units(in));
    away.push_back(made_here ? units(out) : 0);
    if (away.back() == kNoLimit) back.back() = kNoLimit;
  }
}

std::vector<char> CutsFrame::reach(OpId op, bool forwards) const {
  std::vector<char> seen(problem.ops.size(), 0);
  std::vector<std::size_t> open{op.index()};
  seen[op.index()] = 1;
  const auto visit = [&](std::size_t o) {
    if (seen[o]) return;
    seen[o] = 1;
    open.push_back(o);
  };
  while (!open.empty()) {
    const std::size_t o = open.back();
    open.pop_back();
    if (forwards) {
      for (const int f : followers_[o]) visit(static_cast<std::size_t>(f));
      continue;
    }
    for (const int v : facts.reads[o]) {
      if (const int m = sole_maker(v); m >= 0) visit(static_cast<std::size_t>(m));
    }
  }
  return seen;
}

bool CutsFrame::before(OpId a, OpId b) const {
  if (scope == BoundScope::kThisOrder) return facts.position[a.index()] < facts.position[b.index()];
  return a != b && reach(a, true)[b.index()] != 0;
}

std::vector<std::array<int, 2>> CutsFrame::first_runs(const std::vector<OpId>& cuts) const {
  const int last = static_cast<int>(cuts.size());
  std::vector<std::array<int, 2>> out(problem.ops.size(), {0, last});
  for (int k = 0; k < last; ++k) {
    if (scope == BoundScope::kThisOrder) {
      for (std::size_t o = 0; o < out.size(); ++o) {
        if (facts.position[cuts[k].index()] < facts.position[o]) out[o][0] = k + 1;
      }
      continue;
    }
    const std::vector<char> earlier = reach(cuts[k], false), later = reach(cuts[k], true);
    for (std::size_t o = 0; o < out.size(); ++o) {
      if (earlier[o]) out[o][1] = std::min(out[o][1], k);
      if (later[o] && o != cuts[k].index()) out[o][0] = k + 1;
    }
  }
  if (scope == BoundScope::kThisOrder) {
    for (auto& range : out) range[1] = range[0];
  }
  return out;
}

Bytes CutsFrame::extra(OpId op, int impl) const {
  const Impl& i = problem.ops[op].impls[static_cast<std::size_t>(impl)];
  Bytes sum = problem.rounded(i.workspace, device);
  for (std::size_t w = 0; w < i.writes.size(); ++w) {
    const int version = facts.versions_.write[op.index()][static_cast<std::size_t>(impl)][w];
    const int v = facts.value_of[i.writes[w].index()][version];
    const bool takes_over =
        std::any_of(i.in_place.begin(), i.in_place.end(), [&](const InPlace& p) { return p.out == i.writes[w]; });
    if (!takes_over && version == 0 && sole_maker(v) >= 0) sum += size[v];
  }
  return sum;
}

Bytes CutsFrame::least_extra(OpId op) const {
  Bytes least = extra(op, 0);
  for (std::size_t i = 1; i < problem.ops[op].impls.size(); ++i)
    least = std::min(least, extra(op, static_cast<int>(i)));
  return least;
}

Bytes CutsFrame::beside_reads(OpId op, int impl) const {
  const auto i = static_cast<std::size_t>(impl);
  const Impl& one = problem.ops[op].impls[i];
  Bytes sum = problem.rounded(one.workspace, device);
  for (const int v : impl_writes[op.index()][i]) {
    const BufferId b = facts.values[v].buffer;
    const bool takes_over =
        std::any_of(one.in_place.begin(), one.in_place.end(), [&](const InPlace& p) { return p.out == b; });
    const bool overwrites = std::find(one.reads.begin(), one.reads.end(), b) != one.reads.end();
    if (!takes_over && !overwrites) sum += size[v];
  }
  return sum;
}

Bytes CutsFrame::working_set(OpId op, int impl) const {
  Bytes sum = beside_reads(op, impl);
  for (const int v : impl_reads[op.index()][static_cast<std::size_t>(impl)]) sum += size[v];
  return sum;
}

std::vector<int> CutsFrame::ways(OpId op, int impl, bool first, bool in_place) const {
  const auto& impls = problem.ops[op].impls;
  std::vector<int> stands = stands_for[op.index()];
  for (std::size_t i = 0; i < stands.size(); ++i) {
    if (first && !facts.may_be_first[op.index()][i]) stands[i] = -1;
  }
  const auto undercuts = [&](std::size_t a, std::size_t b) {
    return impls[a].seconds <= impls[b].seconds &&
           beside_reads(op, static_cast<int>(a)) <= beside_reads(op, static_cast<int>(b)) &&
           contains(impl_reads[op.index()][b], impl_reads[op.index()][a]) &&
           (!in_place || contains(impl_takes[op.index()][b], impl_takes[op.index()][a]));
  };
  std::vector<int> out;
  for (std::size_t i = 0; i < stands.size(); ++i) {
    bool kept = stands[i] == impl;
    for (std::size_t other = 0; other < stands.size() && kept; ++other) {
      const bool same_class = other != i && stands[other] == impl;
      kept = !same_class || !undercuts(other, i) || (undercuts(i, other) && i < other);
    }
    if (kept) out.push_back(static_cast<int>(i));
  }
  return out;
}

}  // namespace neaptide::plan
