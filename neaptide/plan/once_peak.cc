#include "neaptide/plan/once_peak.hpp"

#include <algorithm>
#include <limits>

#include "neaptide/plan/cuts_frame.hpp"
#include "neaptide/plan/min_cut.hpp"

namespace neaptide::plan {
namespace {

constexpr std::int64_t kMostWork = 2'000'000;  // nodes and arcs; a tenth of a second

constexpr std::size_t kMostInPairs = 40;  // instants that are looked at two by two

class Ideals {
 public:
  Ideals(const Problem& problem, DeviceId device) : f_(problem, device, BoundScope::kAnyOrder) {
    const std::size_t n = f_.facts.values.size();
    readers_.resize(n);
    for (std::size_t o = 0; o < problem.ops.size(); ++o) {
      if (!f_.may_cut(OpId(o))) continue;
      for (const int v : f_.facts.reads[o]) readers_[v].push_back(static_cast<int>(o));
    }
    Wide sum = 0;
    counts_.assign(n, 0);
    for (std::size_t v = 0; v < n; ++v) {
      const int maker = f_.sole_maker(static_cast<int>(v));
      const bool wanted = !readers_[v].empty() || f_.needed_at_end[v] != 0;
      if (maker < 0 || !problem.ops[OpId(maker)].once || !f_.may_cut(OpId(maker)) || !wanted) continue;
      counts_[v] = f_.size[v] > 0 && !may_come_back(f_.facts.values[v].buffer);
      if (counts_[v] != 0) sum += f_.size[v];
    }
    any_ = sum > 0;
    while (sum >> shift_ >= kNoLimit / 2) ++shift_;
  }

  bool any() const { return any_; }
  bool comparable(OpId a, OpId b) const {
    return f_.reach(a, true)[b.index()] != 0 || f_.reach(b, true)[a.index()] != 0;
  }
  std::int64_t work() const { return work_ + flow_.work(); }

  /// Instants by what the ideal of the given order holds there, which is at least what the best one does; most first.
  std::vector<std::pair<Bytes, OpId>> promising() const {
    const auto& order = f_.problem.order;
    std::vector<Bytes> change(order.size() + 2, 0);
    for (std::size_t v = 0; v < counts_.size(); ++v) {
      if (counts_[v] == 0) continue;
      int last = f_.needed_at_end[v] != 0 ? static_cast<int>(order.size()) : 0;
      for (const int r : readers_[v]) last = std::max(last, f_.facts.position[r]);
      change[f_.facts.position[f_.sole_maker(static_cast<int>(v))] + 1] += f_.size[v];
      change[last + 1] -= f_.size[v];
    }
    std::vector<std::pair<Bytes, OpId>> out;
    Bytes held = f_.fixed_bytes;
    for (std::size_t i = 0; i < order.size(); ++i) {
      held += change[i];
      if (!f_.may_cut(order[i])) continue;
      Bytes sum = held + f_.least_extra(order[i]) + dearer_without_place(order[i]).second;
      for (const int v : f_.facts.reads[order[i].index()]) sum += counts_[v] != 0 ? 0 : f_.size[v];
      out.emplace_back(sum, order[i]);
    }
    std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    return out;
  }

  /// The least at the first run of tau; of the orders in which one op runs before it, or another after it.
  OncePeak at(OpId tau, OpId earlier = {}, OpId later = {}) {
    place(tau, earlier, later);
    work_ += static_cast<std::int64_t>(node_.size() + counts_.size());
    const auto [penalised, penalty] = dearer_without_place(tau);
    OncePeak out;
    out.op = tau;
    out.bytes = f_.fixed_bytes + f_.least_extra(tau);
    for (const BufferId b : leanest_writes(tau)) out.buffers.push_back(b);
    std::vector<char> read(f_.facts.values.size(), 0);
    for (const int v : f_.facts.reads[tau.index()]) {
      read[v] = 1;
      out.bytes += f_.size[v];
      out.buffers.push_back(f_.facts.values[v].buffer);
    }
    flow_.reset(next_node_ + static_cast<int>(counts_.size()));
    std::vector<std::pair<int, int>> made;  // value, its arc
    for (std::size_t v = 0; v < counts_.size(); ++v) {
      const Bytes price = read[v] == 0 ? f_.size[v] : static_cast<int>(v) == penalised ? penalty : 0;
      const int arc = counts_[v] != 0 && price > 0 ? add_value(static_cast<int>(v), tau, price) : -1;
      if (arc >= 0 && read[v] == 0) made.emplace_back(static_cast<int>(v), arc);
    }
    add_dependencies();
    out.bytes += static_cast<Bytes>(flow_.run(kSource, kSink) << shift_);
    for (const auto& [v, arc] : made) {
      const int maker = node_[static_cast<std::size_t>(f_.sole_maker(v))];
      if (flow_.reached(maker) && !flow_.reached(next_node_ + v)) out.buffers.push_back(f_.facts.values[v].buffer);
    }
    std::stable_sort(out.buffers.begin(), out.buffers.end(),
                     [&](BufferId a, BufferId b) { return f_.problem.buffers[a].bytes > f_.problem.buffers[b].bytes; });
    return out;
  }

 private:
  bool may_come_back(BufferId buffer) const {
    for (std::size_t d = 0; d < f_.problem.devices.size(); ++d) {
      if (DeviceId(d) != f_.device && copy_seconds(f_.problem, buffer, DeviceId(d), f_.device)) return true;
    }
    return false;
  }

  static constexpr int kSource = 0, kSink = 1;

  /// Nodes of the ops: what must have run before tau is the source, what cannot have is the sink.
  void place(OpId tau, OpId earlier, OpId later) {
    std::vector<char> before = f_.reach(tau, false), after = f_.reach(tau, true);
    const auto add = [](std::vector<char>& to, const std::vector<char>& more) {
      for (std::size_t o = 0; o < to.size(); ++o) to[o] |= more[o];
    };
    if (earlier.valid()) add(before, f_.reach(earlier, false));
    if (later.valid()) add(after, f_.reach(later, true));
    node_.assign(before.size(), kSource);
    next_node_ = 2;
    for (std::size_t o = 0; o < node_.size(); ++o) {
      if (after[o] != 0) node_[o] = kSink;
      if (after[o] == 0 && before[o] == 0) node_[o] = next_node_++;
    }
  }

  /// Paid where the value has been made and is read after tau, or is kept.
  int add_value(int v, OpId tau, Bytes price) {
    const int maker = node_[static_cast<std::size_t>(f_.sole_maker(v))], value = next_node_ + v;
    if (maker == kSink) return -1;
    const int arc = flow_.add(maker, value, static_cast<Units>(price >> shift_));
    if (f_.needed_at_end[v] != 0) flow_.add(value, kSink, kNoLimit);
    for (const int r : readers_[v]) {
      const int reader = node_[static_cast<std::size_t>(r)];
      if (r != tau.value && reader != kSource) flow_.add(value, reader, kNoLimit);
    }
    return arc;
  }

  void add_dependencies() {
    for (std::size_t o = 0; o < node_.size(); ++o) {
      if (node_[o] == kSource || node_[o] == kSink || f_.facts.necessary[o] == 0) continue;
      for (const int v : f_.facts.reads[o]) {
        const int maker = f_.sole_maker(v);
        if (maker >= 0 && node_[static_cast<std::size_t>(maker)] != kSource)
          flow_.add(node_[o], node_[static_cast<std::size_t>(maker)], kNoLimit);
      }
    }
  }

  /// What the implementation that adds least writes into blocks of its own.
  std::vector<BufferId> leanest_writes(OpId tau) const {
    const auto& impls = f_.problem.ops[tau].impls;
    std::size_t leanest = 0;
    while (f_.extra(tau, static_cast<int>(leanest)) != f_.least_extra(tau)) ++leanest;
    std::vector<BufferId> out;
    for (const BufferId b : impls[leanest].writes) {
      const auto& pairs = impls[leanest].in_place;
      const bool taken = std::any_of(pairs.begin(), pairs.end(), [&](const InPlace& p) { return p.out == b; });
      const auto& reads = impls[leanest].reads;
      if (!taken && std::find(reads.begin(), reads.end(), b) == reads.end()) out.push_back(b);
    }
    return out;
  }

  /// The value which, held for others, costs tau most, because it cannot be written over; and the bytes.
  std::pair<int, Bytes> dearer_without_place(OpId tau) const {
    const Op& op = f_.problem.ops[tau];
    const Bytes least = f_.least_extra(tau);
    std::pair<int, Bytes> worst{-1, 0};
    for (const int v : f_.facts.reads[tau.index()]) {
      Bytes without = std::numeric_limits<Bytes>::max();
      for (std::size_t i = 0; i < op.impls.size(); ++i) {
        const auto& pairs = op.impls[i].in_place;
        const bool taken = std::any_of(pairs.begin(), pairs.end(),
                                       [&](const InPlace& p) { return p.in == f_.facts.values[v].buffer; });
        if (!taken) without = std::min(without, f_.extra(tau, static_cast<int>(i)));
      }
      if (without == std::numeric_limits<Bytes>::max()) continue;  // no other way: such a plan is no plan
      if (without - least > worst.second) worst = {v, without - least};
    }
    return worst;
  }

  CutsFrame f_;
  std::vector<char> counts_;               // by value: there from its only making to its last first reading
  std::vector<std::vector<int>> readers_;  // by value: ops that must read it here
  std::vector<int> node_;                  // by op
  int next_node_ = 2;                      // values follow
  int shift_ = 0;                          // sizes are divided by this power of two, downwards
  bool any_ = false;
  std::int64_t work_ = 0;
  Flow flow_;
};

/// a first runs before b: both instants.
OncePeak in_order(Ideals& ideals, OpId a, OpId b) {
  OncePeak first = ideals.at(a, {}, b);
  OncePeak second = ideals.at(b, a, {});
  return first.bytes >= second.bytes ? first : second;
}

/// Two ops that nothing orders: one of them runs first. Instants by what they may force, most first.
void try_pairs(Ideals& ideals, const std::vector<std::pair<Bytes, OpId>>& instants, OncePeak& best) {
  const std::size_t n = std::min(instants.size(), kMostInPairs);
  for (std::size_t i = 0; i < n && instants[i].first > best.bytes; ++i) {
    for (std::size_t k = i + 1; k < n && ideals.work() < kMostWork; ++k) {
      const OpId a = instants[i].second, b = instants[k].second;
      if (ideals.comparable(a, b)) continue;
      OncePeak one = in_order(ideals, a, b);
      if (one.bytes <= best.bytes) continue;
      OncePeak other = in_order(ideals, b, a);
      if (other.bytes <= best.bytes) continue;
      best = one.bytes <= other.bytes ? std::move(one) : std::move(other);
    }
  }
}

}  // namespace

OncePeak once_peak(const Problem& problem, DeviceId device, Bytes least) {
  OncePeak best;
  best.bytes = least;
  const bool some_once = std::any_of(problem.order.begin(), problem.order.end(), [&](OpId o) {
    return problem.ops[o].once && !problem.ops[o].impls.front().writes.empty();
  });
  if (!some_once) return best;
  Ideals ideals(problem, device);
  if (!ideals.any()) return best;
  const auto instants = ideals.promising();
  for (const auto& [most, op] : instants) {
    if (most <= best.bytes || ideals.work() > kMostWork) break;
    OncePeak one = ideals.at(op);
    if (one.bytes > best.bytes) best = std::move(one);
  }
  try_pairs(ideals, instants, best);
  return best;
}

}  // namespace neaptide::plan
