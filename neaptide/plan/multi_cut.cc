#include "neaptide/plan/multi_cut.hpp"

#include <algorithm>
#include <climits>
#include <cmath>
#include <memory>
#include <tuple>

#include "neaptide/base/errors.hpp"
#include "neaptide/plan/bounds.hpp"
#include "neaptide/plan/cuts_certificate.hpp"
#include "neaptide/plan/simulate.hpp"

namespace neaptide::plan {
namespace {

constexpr int kMostNewInstants = 1;  // per round
constexpr int kNodesAtFirst = 60;    // of a stage's tree before another stage is tried
constexpr int kMostInVain = 3;
constexpr int kNearRelaxation = 8;

/// Plays a 0/1 solution back: first runs in order, everything else made again just before it is read.
class Playback {
 public:
  Playback(const CutsModel& model, const std::vector<char>& solution)
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

  std::vector<Compute> run() {
    std::vector<std::vector<OpId>> by_interval(m_.n_intervals());
    for (const OpId o : f_.problem.order) {
      if (f_.facts.necessary[o.index()]) by_interval[interval_of(o)].push_back(o);
    }
    for (int j = 0; j < m_.n_intervals(); ++j) {
      interval_ = j;
      for (const OpId o : by_interval[j]) {
        if (!already(o.value)) {
          const int how = choose(o.value);
          ensure(make_inputs(o.value, how, 0), "a chain of inputs is too long to be followed");
          execute(o.value, how);
        }
        for (const int v : f_.facts.reads[o.index()]) --waiting_[v];
      }
      if (j + 1 < m_.n_intervals()) cross(j);
    }
    return std::move(runs_);
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
  int choose(int o, int wanted = -1) const {
    const Op& op = f_.problem.ops[OpId(o)];
    const bool at_instant =
        interval_ < static_cast<int>(m_.cuts.size()) && m_.cuts[interval_].value == o && op.impls.size() > 1;
    const auto rank = [&](std::size_t i) {
      const int impl = static_cast<int>(i);
      const auto lacks = std::count_if(f_.facts.writes[o].begin(), f_.facts.writes[o].end(), [&](int v) {
        return (v == wanted || is_wanted(v)) &&
               !std::count(f_.impl_writes[o][i].begin(), f_.impl_writes[o][i].end(), v);
      });
      const bool said = at_instant ? is_set({CutsKey::kFirst, interval_, impl})
                                   : is_set({CutsKey::kRun, o, interval_, f_.stands_for[o][i]});
      const bool takes = std::any_of(op.impls[i].in_place.begin(), op.impls[i].in_place.end(), [&](const InPlace& p) {
        const auto& versions = f_.facts.value_of[p.in.index()];
        return std::any_of(versions.begin(), versions.end(), [&](int v) { return is_wanted(v) || waits(v) > 1; });
      });
      const auto absent = std::count_if(f_.impl_reads[o][i].begin(), f_.impl_reads[o][i].end(),
                                        [&](int v) { return resident_[v] == 0; });
      return std::tuple(lacks, !said, takes, absent, op.impls[i].seconds);
    };
    std::size_t best = 0;
    for (std::size_t i = 1; i < op.impls.size(); ++i) {
      if (rank(i) < rank(best)) best = i;
    }
    return static_cast<int>(best);
  }

  /// Held at the end of the interval, or read in it by a run that the solution names.
  bool is_wanted(int v) const {
    if (is_set({CutsKey::kHeld, v, interval_})) return true;
    return std::any_of(readers_[v].begin(), readers_[v].end(), [&](const auto& reader) {
      return is_set({CutsKey::kRun, reader.first, interval_, reader.second});
    });
  }

  int waits(int v) const {
    const auto it = waiting_.find(v);
    return it == waiting_.end() ? 0 : it->second;
  }

  bool make_inputs(int o, int impl, int depth) {
    if (depth > 400) return false;
    const std::vector<int> reads = f_.impl_reads[o][impl];
    for (const int v : reads) {
      if (resident_[v]) continue;
      int maker = -1;
      for (const OpId m : f_.facts.values[v].makers) {
        const bool may = !f_.problem.ops[m].once || !ran_.count(m.value);
        if (may && (maker < 0 || runs_here(m.value))) maker = m.value;
      }
      if (maker < 0) {
        resident_[v] = 1;  // the playback keeps what cannot be made again
        continue;
      }
      const int how = choose(maker, v);
      if (!make_inputs(maker, how, depth + 1)) return false;
      execute(maker, how);
    }
    return true;
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
    runs_.push_back({OpId(o), impl});
    ran_.insert(o);
    for (const InPlace& p : f_.problem.ops[OpId(o)].impls[static_cast<std::size_t>(impl)].in_place) {
      for (const int v : f_.facts.value_of[p.in.index()]) resident_[v] = 0;
    }
    for (const int v : f_.impl_writes[o][impl]) resident_[v] = 1;
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
  std::vector<Compute> runs_;
  int interval_ = 0;
};

}  // namespace

Wide MultiCut::target(Seconds known) const {
  const double units = std::ldexp(known * (1 - 1e-13), -frame_.facts.unit_log2);
  return units < 9e18 ? static_cast<Wide>(static_cast<std::int64_t>(std::ceil(units))) : Wide{1} << 62;
}

std::vector<Compute> MultiCut::runs_of(const CutsModel& model, const std::vector<char>& solution) const {
  try {
    return Playback(model, solution).run();
  } catch (const InternalError&) {
    return {};  // a chain too long to be followed
  }
}

bool MultiCut::comparable(OpId op, const std::vector<OpId>& cuts) const {
  return std::all_of(cuts.begin(), cuts.end(),
                     [&](OpId c) { return c != op && (frame_.before(c, op) || frame_.before(op, c)); });
}

std::vector<OpId> MultiCut::with(std::vector<OpId> cuts, const std::vector<OpId>& more) const {
  for (const OpId op : more) {
    if (!comparable(op, cuts)) continue;
    cuts.insert(std::find_if(cuts.begin(), cuts.end(), [&](OpId c) { return frame_.before(op, c); }), op);
  }
  return cuts;
}

MultiCut::Grown MultiCut::grow(const std::vector<Compute>& runs, const Grown& now) const {
  std::vector<Step> steps(runs.begin(), runs.end());
  Simulation sim;
  try {
    steps = with_frees(frame_.problem, steps);
    sim = simulate(frame_.problem, steps);
  } catch (const InternalError&) {
    return now;
  }
  const Bytes budget = *frame_.problem.devices[frame_.device].budget;
  struct Over {
    Bytes load;
    OpId op, before;  // before: where a run between the two first runs holds too much
  };
  std::vector<Over> first, again;
  std::vector<char> ran(frame_.problem.ops.size(), 0);
  Bytes inside = 0;
  OpId before;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto* c = std::get_if<Compute>(&steps[i]);
    if (c == nullptr) continue;
    const Bytes load = sim.held[frame_.device.index()][i];
    if (ran[c->op.index()]) {
      inside = std::max(inside, load);
      continue;
    }
    ran[c->op.index()] = 1;
    if (!frame_.may_cut(c->op)) continue;
    if (load > budget && comparable(c->op, now.cuts)) first.push_back({load, c->op, {}});
    if (inside > budget && before.valid()) again.push_back({inside, c->op, before});
    inside = 0;
    before = c->op;
  }
  std::vector<Over>& list = first.empty() ? again : first;
  std::stable_sort(list.begin(), list.end(), [](const Over& a, const Over& b) { return a.load > b.load; });
  Grown out = now;
  std::vector<OpId> taken;
  const int apart = std::max(2, static_cast<int>(frame_.problem.ops.size()) / 20);
  for (const Over& o : list) {
    const bool near = std::any_of(taken.begin(), taken.end(), [&](OpId c) {
      return std::abs(frame_.facts.position[c.index()] - frame_.facts.position[o.op.index()]) <= apart;
    });
    if (near || static_cast<int>(taken.size()) >= kMostNewInstants) continue;
    Grown tried = out;
    tried.cuts = with(tried.cuts, {o.op});
    if (o.before.valid()) {
      tried.cuts = with(tried.cuts, {o.before});
      tried.inside.insert(o.op);
    }
    if (tried == out) continue;
    out = std::move(tried);
    taken.push_back(o.op);
  }
  return out;
}

struct MultiCut::Stage {
  Stage(const CutsFrame& frame, Grown grown) : at(std::move(grown)), model(frame, at.cuts, at.inside), tree(model) {}
  const Grown at;
  const CutsModel model;
  CutsTree tree;
  bool in_earnest = false;  // has had all the work there was
};

// Works on a stage for a while. Its cheapest 0/1 solution, or one near the relaxation when the tree does not get that
// far, is played back. Returns what to look at next; the stage itself when it has nothing more to say.
MultiCut::Grown MultiCut::work_on(Stage* stage, int nodes_at_once, Seconds* known, const Ways& ways) {
  CutsTree& tree = stage->tree;
  int last_node = nodes_at_once;
  Wide near = 1;
  const auto stop = [&] { return ways.stop() || tree.n_nodes() >= last_node; };
  while (true) {
    const std::int64_t done = tree.work();
    const CutsTree::End end = tree.run(target(*known), ways.work - work_, stop);
    work_ += tree.work() - done;
    const bool gave_up = end == CutsTree::End::kStopped && tree.n_nodes() < last_node;
    if (end == CutsTree::End::kReached || gave_up || work_ >= ways.work || ways.stop()) return stage->at;
    const std::int64_t before = tree.work();
    const auto solution =
        end == CutsTree::End::kRelaxed ? std::optional<std::vector<char>>(tree.relaxed()) : tree.dive(ways.stop);
    work_ += tree.work() - before;
    if (end != CutsTree::End::kRelaxed) {  // worth playing back only if it says nearly what the relaxation does
      const Wide bound = tree.bound();
      if (!solution || tree.units(*solution) > bound + (target(*known) - bound) * near / kNearRelaxation) {
        last_node = tree.n_nodes() + nodes_at_once;
        near = std::min<Wide>(2 * near, 1 << 20);  // rather any instant than none
        continue;
      }
    }
    const std::vector<Compute> runs = runs_of(stage->model, *solution);
    const Wide wanted = target(*known);
    if (ways.improve && !runs.empty()) *known = std::min(*known, ways.improve(runs));
    Grown more = grow(runs, stage->at);
    if (more != stage->at || target(*known) >= wanted) return more;  // else: a better plan, and the tree goes on
  }
}

LowerBound MultiCut::prove(OpId first, Seconds known, const Ways& ways) {
  nodes_ = 0;
  work_ = 0;
  Grown now{{first}, {}};
  std::unique_ptr<Stage> best;
  const auto units = [&] { return best ? best->tree.bound() : frame_.facts.floor_units; };
  int in_vain = 0;  // stages in a row that prove no more than an earlier one
  while (!ways.stop() && work_ < ways.work && units() < target(known)) {
    auto stage = std::make_unique<Stage>(frame_, now);
    instants_ = static_cast<int>(now.cuts.size());
    const bool too_large = stage->model.columns.size() > ways.most_columns || instants_ > ways.most_instants;
    Grown more = too_large ? now : work_on(stage.get(), kNodesAtFirst, &known, ways);
    nodes_ += stage->tree.n_nodes();
    ++in_vain;
    const bool ended = more == now;
    if (stage->tree.bound() > units()) {
      best = std::move(stage);
      in_vain = 0;
    }
    if ((ended || in_vain >= kMostInVain) && best && !best->in_earnest) {
      const int nodes = best->tree.n_nodes();
      best->in_earnest = true;
      more = work_on(best.get(), INT_MAX, &known, ways);
      nodes_ += best->tree.n_nodes() - nodes;
      in_vain = 0;
      if (more == best->at) break;
    } else if (ended) {
      break;
    }
    now = std::move(more);
  }
  LowerBound bound = floor_bound(frame_.problem);
  if (units() > frame_.facts.floor_units)
    bound = {seconds_down(units(), frame_.facts.unit_log2), frame_.scope, cuts_certificate(best->model, best->tree),
             ""};
  return bound;
}

}  // namespace neaptide::plan
