#include "neaptide/plan/cuts_playback.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "neaptide/base/errors.hpp"

namespace neaptide::plan {
namespace {

class Player {
 public:
  Player(const CutsModel& model, const std::vector<char>& solution)
      : m_(model), f_(model.frame), chosen_(solution), resident_(f_.size.size(), 0) {
    for (std::size_t v = 0; v < resident_.size(); ++v) resident_[v] = f_.homed[v];
    for (const auto& reads : f_.facts.reads) {
      for (const int v : reads) ++waiting_[v];
    }
    readers_.resize(f_.size.size());
    for (std::size_t o = 0; o < f_.impl_reads.size(); ++o) {
      for (std::size_t i = 0; i < f_.impl_reads[o].size(); ++i) {
        for (const int v : f_.impl_reads[o][i]) readers_[v].emplace_back(static_cast<int>(o), static_cast<int>(i));
      }
    }
  }

  Playback run() {
    std::vector<std::vector<OpId>> by_interval(m_.n_intervals());
    for (const OpId o : f_.problem.order) {
      if (f_.facts.necessary[o.index()]) by_interval[interval_of(o)].push_back(o);
    }
    for (int j = 0; j < m_.n_intervals(); ++j) {
      interval_ = j;
      const OpId tau = j + 1 < m_.n_intervals() ? m_.cuts[j] : OpId();
      std::stable_partition(by_interval[j].begin(), by_interval[j].end(), [&](OpId o) { return o != tau; });
      for (const OpId o : by_interval[j]) {
        if (o == tau) make_held(tau);
        if (!already(o.value)) {
          const int how = choose(o.value);
          ensure(make_inputs(o.value, how, 0), "a chain of inputs is too long to be followed");
          execute(o.value, how);
        }
        for (const int v : f_.facts.reads[o.index()]) --waiting_[v];
      }
      if (j + 1 < m_.n_intervals()) cross(j);
    }
    return std::move(out_);
  }

 private:
  bool is_set(const CutsKey& key) const {
    const int c = m_.column(key);
    return c >= 0 && chosen_[c] != 0;
  }

  int interval_of(OpId o) const {
    const auto& [least, most] = m_.first[o.index()];
    if (least == most) return least;
    for (int j = std::max(1, least); j <= most; ++j) {
      for (std::size_t i = 0; i < f_.impl_reads[o.index()].size(); ++i) {
        if (is_set({CutsKey::kRun, o.value, j, static_cast<int>(i)})) return j;
      }
    }
    int j = 0;  // where the order has it
    while (j < most && f_.facts.position[m_.cuts[j].index()] < f_.facts.position[o.index()]) ++j;
    return std::max(j, least);
  }

  /// The implementation: one that writes what is wanted, as the solution says, that takes over nothing which is read
  /// later and finds its inputs; then the fastest.
  int choose(int o, int wanted = -1) {
    const Op& op = f_.problem.ops[OpId(o)];
    const bool at_instant =
        interval_ < static_cast<int>(m_.cuts.size()) && m_.cuts[interval_].value == o && op.impls.size() > 1;
    const auto rank = [&](std::size_t i, bool careful) {
      const int impl = static_cast<int>(i);
      const auto lacks = std::count_if(f_.facts.writes[o].begin(), f_.facts.writes[o].end(), [&](int v) {
        return !resident_[v] && (v == wanted || is_wanted(v)) &&
               !std::count(f_.impl_writes[o][i].begin(), f_.impl_writes[o][i].end(), v);
      });
      const bool said = at_instant ? is_set({CutsKey::kFirst, interval_, impl})
                                   : is_set({CutsKey::kRun, o, interval_, f_.stands_for[o][i]});
      const int by = m_.column({CutsKey::kBy, o, interval_, impl});
      const bool takes = std::any_of(op.impls[i].in_place.begin(), op.impls[i].in_place.end(), [&](const InPlace& p) {
        const auto& versions = f_.facts.value_of[p.in.index()];
        return std::any_of(versions.begin(), versions.end(), [&](int v) { return is_wanted(v, o) || waits(v) > 1; });
      });
      const auto absent = std::count_if(f_.impl_reads[o][i].begin(), f_.impl_reads[o][i].end(),
                                        [&](int v) { return resident_[v] == 0; });
      return std::tuple(lacks, !said, by >= 0 && !chosen_[by], careful && takes, absent, op.impls[i].seconds);
    };
    std::size_t best = 0, careless = 0;
    for (std::size_t i = 1; i < op.impls.size(); ++i) {
      if (rank(i, true) < rank(best, true)) best = i;
      if (rank(i, false) < rank(careless, false)) careless = i;
    }
    if (careless != best) out_.in_the_way.insert(OpId(o));
    return static_cast<int>(best);
  }

  /// Held at the end of the interval, or read in it by a run that the solution names, of another op than `but`.
  bool is_wanted(int v, int but = -1) const {
    if (is_set({CutsKey::kHeld, v, interval_})) return true;
    return std::any_of(readers_[v].begin(), readers_[v].end(), [&](const auto& reader) {
      return reader.first != but && is_set({CutsKey::kRun, reader.first, interval_, reader.second});
    });
  }

  int waits(int v) const {
    const auto it = waiting_.find(v);
    return it == waiting_.end() ? 0 : it->second;
  }

  bool make_inputs(int o, int impl, int depth) {
    if (depth > 400) return false;
    const std::vector<int> reads = f_.impl_reads[o][impl];
    return std::all_of(reads.begin(), reads.end(), [&](int v) { return resident_[v] || make(v, depth); });
  }

  bool make(int v, int depth) {
    int maker = -1;
    for (const OpId m : f_.facts.values[v].makers) {
      const bool may = !f_.problem.ops[m].once || !ran_.count(m.value);
      if (may && (maker < 0 || runs_here(m.value))) maker = m.value;
    }
    if (maker < 0) {
      resident_[v] = 1;  // the playback keeps what cannot be made again
      return true;
    }
    if (const auto it = lost_to_.find(v); it != lost_to_.end() && !runs_here(maker)) out_.in_the_way.insert(it->second);
    const int how = choose(maker, v);
    if (!make_inputs(maker, how, depth + 1)) return false;
    execute(maker, how);
    return true;
  }

  /// Before tau first runs, what the solution holds then.
  void make_held(OpId tau) {
    for (std::size_t v = 0; v < resident_.size(); ++v) {
      const int value = static_cast<int>(v);
      if (resident_[v] || !is_set({CutsKey::kHeld, value, interval_}) || makes(tau.value, value)) continue;
      ensure(make(value, 0), "a chain of inputs is too long to be followed");
    }
  }

  /// Ran before its turn, as an input of something, and is still good for it.
  bool already(int o) const {
    if (!ran_.count(o)) return false;
    const auto& writes = f_.facts.writes[o];
    return f_.problem.ops[OpId(o)].once ||
           std::all_of(writes.begin(), writes.end(), [&](int v) { return resident_[v] != 0; });
  }

  bool runs_here(int o) const {
    for (std::size_t i = 0; i < f_.impl_reads[o].size(); ++i) {
      if (is_set({CutsKey::kRun, o, interval_, static_cast<int>(i)})) return true;
    }
    return false;
  }

  void execute(int o, int impl) {
    out_.runs.push_back({OpId(o), impl});
    ran_.insert(o);
    for (const InPlace& p : f_.problem.ops[OpId(o)].impls[static_cast<std::size_t>(impl)].in_place) {
      for (const int v : f_.facts.value_of[p.in.index()]) {
        if (resident_[v]) lost_to_[v] = OpId(o);
        resident_[v] = 0;
      }
    }
    for (const int v : f_.impl_writes[o][impl]) {
      resident_[v] = 1;
      lost_to_.erase(v);
    }
  }

  /// What the solution does not hold at the instant is gone.
  void cross(int k) {
    const OpId tau = m_.cuts[k];
    for (std::size_t v = 0; v < resident_.size(); ++v) {
      if (f_.size[v] == 0 || !resident_[v]) continue;
      const int c = m_.column({CutsKey::kHeld, static_cast<int>(v), k});
      if (c >= 0 && !chosen_[c] && !makes(tau.value, static_cast<int>(v))) resident_[v] = 0;
    }
  }

  bool makes(int o, int v) const {
    return std::find(f_.facts.writes[o].begin(), f_.facts.writes[o].end(), v) != f_.facts.writes[o].end();
  }

  const CutsModel& m_;
  const CutsFrame& f_;
  const std::vector<char>& chosen_;
  std::vector<char> resident_;
  std::vector<std::vector<std::pair<int, int>>> readers_;  // by value: op, implementation
  std::map<int, int> waiting_;                             // by value: first runs that still read it
  std::set<int> ran_;
  std::map<int, OpId> lost_to_;  // values whose block a run took over, until they are made again
  Playback out_;
  int interval_ = 0;
};

}  // namespace

Playback play_back(const CutsModel& model, const std::vector<char>& solution) {
  try {
    return Player(model, solution).run();
  } catch (const InternalError&) {
    return {};
  }
}

}  // namespace neaptide::plan
