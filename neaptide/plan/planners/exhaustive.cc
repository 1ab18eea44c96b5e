#include "neaptide/plan/planners/exhaustive.hpp"

#include <algorithm>
#include <bit>
#include <queue>
#include <unordered_map>

#include "neaptide/base/errors.hpp"
#include "neaptide/plan/answer.hpp"

namespace neaptide::plan {
namespace {

constexpr std::size_t kMostOps = 16, kMostCells = 64, kMostStates = 3'000'000;

/// What decides the future: which values lie where, and which ops have run. Every resident value is of the newest
/// version (rule 5 ends the others), and the newest version follows from the once ops that have run.
struct State {
  std::uint64_t values = 0;  // bit device * n_buffers + buffer
  std::uint32_t ran = 0;     // bit op; without a fixed order only once ops are noted
  friend bool operator==(const State&, const State&) = default;
};
struct Hash {
  std::size_t operator()(const State& s) const {
    std::uint64_t h = s.values * 0x9e3779b97f4a7c15ull ^ (s.ran + 0x7f4a7c15ull) * 0xbf58476d1ce4e5b9ull;
    h ^= h >> 29;
    return static_cast<std::size_t>(h * 0x94d049bb133111ebull ^ (h >> 31));
  }
};

/// What depends only on the once ops that have run.
struct Phase {
  std::vector<int> newest;   // by buffer
  std::uint64_t useful = 0;  // cells whose value something can still want, or that are a fixed home
  double to_come = 0;        // the cheapest way to run the once ops that are left
};

struct Found {
  double cost = 0;
  State from;
  Step by;
  bool done = false;
};

class Search {
 public:
  Search(const Problem& problem, bool fixed_order)
      : p_(problem), fixed_order_(fixed_order), n_(problem.buffers.size()), versions_(versions(problem)) {
    position_.resize(p_.ops.size());
    for (std::size_t i = 0; i < p_.order.size(); ++i) position_[p_.order[i].index()] = i;
    for (std::size_t o = 0; o < p_.ops.size(); ++o) once_ |= p_.ops[OpId(o)].once ? 1u << o : 0u;
  }

  /// Runs to the end. Cost, or nothing when no way reaches the goal.
  std::optional<double> run() {
    State start;
    for (std::size_t b = 0; b < n_; ++b) {
      if (p_.buffers[BufferId(b)].home) start.values |= bit(*p_.buffers[BufferId(b)].home, BufferId(b));
    }
    for (std::size_t d = 0; d < p_.devices.size(); ++d) {
      if (excess(DeviceId(d), held(start, DeviceId(d))) > 0) return std::nullopt;
    }
    seen_[start] = {.cost = 0, .from = start, .by = {}, .done = false};
    open_.push({phase(start).to_come, start});
    while (!open_.empty()) {
      const State state = open_.top().state;
      open_.pop();
      Found& found = seen_.at(state);
      if (found.done) continue;
      found.done = true;
      if (is_goal(state)) {
        last_ = state;
        return found.cost;
      }
      expand(state, found.cost);
      if (seen_.size() > kMostStates)
        throw UserError("planner 'exhaustive': more than {} states; it is meant for a dozen ops", kMostStates);
    }
    return std::nullopt;
  }

  std::vector<Step> steps() const {
    std::vector<std::pair<State, State>> path;  // from the last edge to the first
    for (State s = last_; !(seen_.at(s).from == s); s = seen_.at(s).from) path.emplace_back(seen_.at(s).from, s);
    std::vector<Step> out;
    for (auto it = path.rbegin(); it != path.rend(); ++it) add_edge(it->first, it->second, out);
    return out;
  }

 private:
  struct Entry {
    double least;  // cost so far and the cheapest way to run the once ops that are left
    State state;
    bool operator<(const Entry& o) const {
      if (least != o.least) return least > o.least;
      return state.values != o.state.values ? state.values > o.state.values : state.ran > o.state.ran;
    }
  };

  std::uint64_t bit(DeviceId d, BufferId b) const { return std::uint64_t{1} << (d.index() * n_ + b.index()); }
  bool has(const State& s, DeviceId d, BufferId b) const { return (s.values & bit(d, b)) != 0; }
  bool fixed(DeviceId d, BufferId b) const { return p_.buffers[b].home == d && !p_.buffers[b].pageable; }
  bool block(const State& s, DeviceId d, BufferId b) const { return has(s, d, b) || fixed(d, b); }

  Bytes held(const State& s, DeviceId d) const {
    Bytes sum = 0;
    for (std::size_t b = 0; b < n_; ++b) sum += block(s, d, BufferId(b)) ? p_.size_on(BufferId(b), d) : 0;
    return sum;
  }

  Bytes excess(DeviceId d, Bytes load) const { return load - p_.devices[d].budget.value_or(load); }

  const Phase& phase(const State& s) {
    const auto [it, fresh] = phases_.try_emplace(s.ran & once_);
    if (fresh) it->second = {newest(s), useful(s), still_to_come(s)};
    return it->second;
  }

  double still_to_come(const State& s) const {
    double sum = 0;
    for (std::size_t o = 0; o < p_.ops.size(); ++o) {
      if ((once_ & ~s.ran & (1u << o)) == 0) continue;
      double least = p_.ops[OpId(o)].impls.front().seconds;
      for (const Impl& i : p_.ops[OpId(o)].impls) least = std::min(least, i.seconds);
      sum += least;
    }
    return sum;
  }

  /// Values that nothing can want any more are left out: one state instead of many.
  std::uint64_t useful(const State& s) const {
    std::vector<char> wanted(n_, 0);
    for (std::size_t b = 0; b < n_; ++b) wanted[b] = p_.buffers[BufferId(b)].keep ? 1 : 0;
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t o = 0; o < p_.ops.size(); ++o) {
        const Op& op = p_.ops[OpId(o)];
        if (op.once && (s.ran & (1u << o)) != 0) continue;
        for (const Impl& impl : op.impls) {
          const bool runs = op.once || std::any_of(impl.writes.begin(), impl.writes.end(),
                                                   [&](BufferId b) { return wanted[b.index()] != 0; });
          for (BufferId b : impl.reads) {
            if (!runs || wanted[b.index()] != 0) continue;
            wanted[b.index()] = 1;
            changed = true;
          }
        }
      }
    }
    std::uint64_t cells = 0;
    for (std::size_t d = 0; d < p_.devices.size(); ++d) {
      for (std::size_t b = 0; b < n_; ++b) {
        if (wanted[b] != 0 || fixed(DeviceId(d), BufferId(b))) cells |= bit(DeviceId(d), BufferId(b));
      }
    }
    return cells;
  }

  /// The step of an edge between the frees that its two states imply.
  void add_edge(const State& from, const State& to, std::vector<Step>& out) const {
    const Step& step = seen_.at(to).by;
    std::uint64_t touched = 0, gained = 0, ended = 0, replaced = 0;
    if (const auto* c = std::get_if<Compute>(&step)) {
      const Impl& impl = p_.ops[c->op].impls[static_cast<std::size_t>(c->impl)];
      for (BufferId b : impl.reads) touched |= bit(impl.device, b);
      for (BufferId b : impl.writes) {
        gained |= bit(impl.device, b);
        for (std::size_t e = 0; e < p_.devices.size() && p_.ops[c->op].once; ++e) ended |= bit(DeviceId(e), b);
      }
      ended &= ~gained;
      for (const InPlace& pair : impl.in_place) {
        ended |= bit(impl.device, pair.in);
        replaced |= bit(impl.device, pair.out);
      }
    } else if (const auto* k = std::get_if<Copy>(&step)) {
      touched = bit(k->from, k->buffer);
      gained = bit(k->to, k->buffer);
    }
    const std::uint64_t lost = (from.values | gained) & ~to.values & ~ended;
    add_frees((lost & ~touched & ~gained) | (from.values & replaced), out);
    out.push_back(step);
    add_frees(lost & (touched | gained), out);
  }

  void add_frees(std::uint64_t cells, std::vector<Step>& out) const {
    for (; cells != 0; cells &= cells - 1) {
      const auto cell = static_cast<std::size_t>(std::countr_zero(cells));
      const DeviceId d(cell / n_);
      const BufferId b(cell % n_);
      if (!fixed(d, b)) out.push_back(Free{b, d});
    }
  }

  std::vector<int> newest(const State& s) const {
    std::vector<int> newest(n_, 0);
    for (std::size_t o = 0; o < p_.ops.size(); ++o) {
      if ((s.ran & once_ & (1u << o)) == 0) continue;
      const Impl& impl = p_.ops[OpId(o)].impls.front();  // an overwriting op writes the buffer in all of them
      for (std::size_t j = 0; j < impl.writes.size(); ++j)
        newest[impl.writes[j].index()] = std::max(newest[impl.writes[j].index()], versions_.write[o][0][j]);
    }
    return newest;
  }

  bool is_goal(const State& s) const {
    if ((s.ran & once_) != once_) return false;
    for (std::size_t i = 0; i < n_; ++i) {
      const BufferId b(i);
      if (!p_.buffers[b].keep) continue;
      bool there = false;
      for (std::size_t d = 0; d < p_.devices.size(); ++d)
        there |= has(s, DeviceId(d), b) && (!p_.buffers[b].home || p_.buffers[b].home == DeviceId(d));
      if (!there) return false;
    }
    return true;
  }

  void reach(const State& from, State to, double cost, const Step& by) {
    to.values &= phase(to).useful;
    const auto [it, fresh] = seen_.try_emplace(to, Found{cost, from, by, false});
    if (!fresh && (it->second.done || it->second.cost <= cost)) return;
    it->second = {cost, from, by, false};
    open_.push({cost + phase(to).to_come, to});
  }

  void expand(const State& s, double cost) {
    for (std::size_t o = 0; o < p_.ops.size(); ++o) {
      for (std::size_t k = 0; k < p_.ops[OpId(o)].impls.size(); ++k) try_compute(s, cost, OpId(o), k);
    }
    for (std::size_t b = 0; b < n_; ++b) {
      for (std::size_t d = 0; d < p_.devices.size(); ++d) {
        if (has(s, DeviceId(d), BufferId(b))) try_copies(s, cost, BufferId(b), DeviceId(d));
      }
    }
  }

  /// Calls `then` with every smallest set of values of device d, none of them in `pinned`, whose sizes reach `excess`.
  /// To hold more is never worse, so nothing is dropped before a step that would overflow, and never more than it
  /// needs.
  template <class Then>
  void drop_for(const State& s, DeviceId d, Bytes excess, std::uint64_t pinned, const Then& then) const {
    std::vector<BufferId> may;
    for (std::size_t b = 0; b < n_; ++b) {
      const BufferId id(b);
      const bool free = has(s, d, id) && !fixed(d, id) && (pinned & bit(d, id)) == 0;
      if (free && p_.size_on(id, d) > 0) may.push_back(id);
    }
    std::stable_sort(may.begin(), may.end(),
                     [&](BufferId a, BufferId b) { return p_.size_on(a, d) > p_.size_on(b, d); });
    drop_next(may, 0, excess, 0, d, then);
  }

  /// Largest first: once the excess is reached by the last one taken, no set contains a smaller one that reaches it.
  template <class Then>
  void drop_next(const std::vector<BufferId>& may, std::size_t at, Bytes excess, std::uint64_t chosen, DeviceId d,
                 const Then& then) const {
    if (excess <= 0) return then(chosen);
    if (at == may.size()) return;
    drop_next(may, at + 1, excess - p_.size_on(may[at], d), chosen | bit(d, may[at]), d, then);
    drop_next(may, at + 1, excess, chosen, d, then);
  }

  bool order_allows(const State& s, OpId op) const {
    if (!fixed_order_ || (s.ran & (1u << op.index())) != 0) return true;
    for (std::size_t o = 0; o < p_.ops.size(); ++o) {
      if ((s.ran & (1u << o)) != 0 && position_[o] > position_[op.index()]) return false;
    }
    return true;
  }

  bool versions_allow(const State& s, OpId op, std::size_t k) {
    const std::vector<int>& newest = phase(s).newest;
    const Impl& impl = p_.ops[op].impls[k];
    for (std::size_t j = 0; j < impl.reads.size(); ++j) {
      if (!has(s, impl.device, impl.reads[j])) return false;
      if (newest[impl.reads[j].index()] != std::max(0, versions_.read[op.index()][k][j])) return false;
    }
    for (std::size_t j = 0; j < impl.writes.size(); ++j) {
      if (newest[impl.writes[j].index()] > versions_.write[op.index()][k][j]) return false;
    }
    return true;
  }

  void try_compute(const State& s, double cost, OpId op, std::size_t k) {
    const Impl& impl = p_.ops[op].impls[k];
    const DeviceId d = impl.device;
    const std::uint32_t me = 1u << op.index();
    if (p_.ops[op].once && (s.ran & me) != 0) return;
    if (!order_allows(s, op) || !versions_allow(s, op, k)) return;
    State before = s;  // without an old result that the step would write in place of an input
    for (const InPlace& pair : impl.in_place) {
      if (fixed(d, pair.out) || fixed(d, pair.in)) return;
      before.values &= ~bit(d, pair.out);
    }
    Bytes load = held(before, d) + p_.rounded(impl.workspace, d);
    std::uint64_t gained = 0, lost = 0, pinned = 0;
    for (BufferId b : impl.reads) pinned |= bit(d, b);
    for (BufferId b : impl.writes) {
      gained |= bit(d, b);
      if (!block(before, d, b)) load += p_.size_on(b, d);
      for (std::size_t e = 0; e < p_.devices.size() && p_.ops[op].once; ++e) lost |= bit(DeviceId(e), b);
    }
    for (const InPlace& pair : impl.in_place) {
      load -= p_.size_on(pair.out, d);
      lost |= bit(d, pair.in);
    }
    drop_for(before, d, excess(d, load), pinned | gained, [&](std::uint64_t dropped) {
      State t = before;
      t.values = (t.values & ~dropped & ~lost) | gained;
      if (fixed_order_ || p_.ops[op].once) t.ran |= me;
      if (t != s) reach(s, t, cost + impl.seconds, Compute{op, static_cast<int>(k)});
    });
  }

  void try_copies(const State& s, double cost, BufferId b, DeviceId from) {
    for (std::size_t e = 0; e < p_.devices.size(); ++e) {
      const DeviceId to(e);
      const std::optional<Seconds> seconds = to == from || has(s, to, b) ? std::nullopt : copy_seconds(p_, b, from, to);
      if (!seconds) continue;
      const Bytes load = held(s, to) + (block(s, to, b) ? 0 : p_.size_on(b, to));
      drop_for(s, to, excess(to, load), 0, [&](std::uint64_t dropped) {
        State t = s;
        t.values = (t.values & ~dropped) | bit(to, b);
        reach(s, t, cost + *seconds, Copy{b, from, to});
      });
    }
  }

  const Problem& p_;
  bool fixed_order_;
  std::size_t n_;
  Versions versions_;
  std::vector<std::size_t> position_;
  std::uint32_t once_ = 0;
  std::unordered_map<std::uint32_t, Phase> phases_;
  std::unordered_map<State, Found, Hash> seen_;
  std::priority_queue<Entry> open_;
  State last_;
};

void check_size(const Problem& problem, const Options& options) {
  if (problem.ops.size() > kMostOps || problem.buffers.size() * problem.devices.size() > kMostCells)
    throw UserError("planner 'exhaustive' takes at most {} ops and {} buffers x devices; '{}' has {} and {}", kMostOps,
                    kMostCells, problem.name, problem.ops.size(), problem.buffers.size() * problem.devices.size());
  if (options.objective == Objective::kOverlap)
    throw UserError("planner 'exhaustive' minimises serial time or energy, not overlapped time");
}

/// The smallest budget of the device at which some plan exists, between one that is too small and one that is enough.
Bytes smallest_budget(Problem problem, bool fixed, DeviceId device, Bytes too_small, Bytes enough) {
  while (enough - too_small > 1) {
    const Bytes middle = too_small + (enough - too_small) / 2;
    problem.devices[device].budget = middle;
    (Search(problem, fixed).run() ? enough : too_small) = middle;
  }
  return enough;
}

}  // namespace

Plan run_exhaustive(const Problem& problem, const Options& options) {
  check_switches(options, "exhaustive", {"order"});
  const bool fixed = switch_value(options, "order", "free", {"free", "fixed"}) == "fixed";
  check_size(problem, options);
  Search search(problem, fixed);
  const std::optional<double> cost = search.run();
  if (!cost) {
    Plan plan = nothing_fits(problem);
    Infeasible& why = *plan.infeasible;
    Problem roomy = problem;
    roomy.devices[why.device].budget = why.smallest;
    if (Search(roomy, fixed).run())
      why.smallest = why.proved =
          smallest_budget(problem, fixed, why.device, *problem.devices[why.device].budget, why.smallest);
    return plan;
  }
  Plan plan;
  plan.steps = search.steps();
  plan.lower_bound = LowerBound{.seconds = *cost,
                                .valid_for = fixed ? BoundScope::kThisOrder : BoundScope::kAnyOrder,
                                .certificate = "",
                                .vouched_by = "exhaustive search"};
  return plan;
}

}  // namespace neaptide::plan
