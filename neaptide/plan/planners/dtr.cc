#include "neaptide/plan/planners/dtr.hpp"

#include <algorithm>
#include <limits>

#include "neaptide/base/errors.hpp"
#include "neaptide/plan/answer.hpp"
#include "neaptide/plan/emit.hpp"
#include "neaptide/plan/simulate.hpp"

namespace neaptide::plan {
namespace {

constexpr int kMostDepth = 20000;
constexpr std::size_t kMostSteps = 2'000'000;

class Online {
 public:
  Online(const Problem& problem, const Choice& choice, DeviceId device, Bytes limit, bool neighbourhood)
      : p_(problem),
        choice_(choice),
        uses_(uses_of(problem, choice)),
        device_(device),
        limit_(limit),
        neighbourhood_(neighbourhood),
        emit_(problem, choice),
        pinned_(problem.buffers.size(), 0),
        touched_(problem.buffers.size(), 0),
        here_(problem.buffers.size(), 0) {
    for (std::size_t b = 0; b < here_.size(); ++b) {
      if (p_.buffers[BufferId(b)].home) hold(BufferId(b));
    }
  }

  /// Empty when the heuristic runs out of things to evict.
  std::vector<Step> run() {
    for (OpId op : p_.order) {
      if (choice_[op] < 0) continue;
      now_ = uses_.position[op];
      if (!compute(op, 0) || emit_.steps().size() > kMostSteps) return {};
      release_dead();
    }
    if (!emit_.finish()) return {};
    return with_frees(p_, emit_.take());
  }

 private:
  const Impl& impl(OpId op) const { return p_.ops[op].impls[static_cast<std::size_t>(choice_[op])]; }
  Bytes size(BufferId b) const { return p_.size_on(b, device_); }

  void hold(BufferId b) {
    if (here_[b.index()] != 0) return;
    here_[b.index()] = 1;
    held_ += size(b);
    if (!p_.buffers[b].home) live_.push_back(b);
  }

  void evict(BufferId b) {
    if (here_[b.index()] == 0) return;
    here_[b.index()] = 0;
    held_ -= size(b);
    std::erase(live_, b);
    emit_.drop(b);
  }

  bool compute(OpId op, int depth) {
    if (depth > kMostDepth) return false;
    const Impl& chosen = impl(op);
    for (BufferId b : chosen.reads) ++pinned_[b.index()];
    bool good = true;
    for (BufferId b : chosen.reads) {
      if (good && here_[b.index()] == 0) good = uses_.writer[b].valid() && compute(uses_.writer[b], depth + 1);
    }
    good = good && make_room(chosen) && emit_.run(op);
    for (BufferId b : chosen.reads) --pinned_[b.index()];
    if (!good) return false;
    ++clock_;
    for (const InPlace& pair : chosen.in_place) evict(pair.in);
    for (BufferId b : chosen.writes) hold(b);
    for (BufferId b : chosen.reads) touched_[b.index()] = clock_;
    for (BufferId b : chosen.writes) touched_[b.index()] = clock_;
    return true;
  }

  bool make_room(const Impl& chosen) {
    Bytes need = p_.rounded(chosen.workspace, device_);
    for (BufferId b : chosen.writes) {
      const bool in_place = std::any_of(chosen.in_place.begin(), chosen.in_place.end(),
                                        [&](const InPlace& pair) { return pair.out == b; });
      if (in_place) evict(b);
      if (!in_place && here_[b.index()] == 0) need += size(b);
      ++pinned_[b.index()];
    }
    bool good = true;
    while (good && held_ + need > limit_) good = evict_one();
    for (BufferId b : chosen.writes) --pinned_[b.index()];
    return good;
  }

  bool evict_one() {
    BufferId victim;
    double least = std::numeric_limits<double>::infinity();
    for (BufferId b : live_) {
      if (!uses_.droppable[b] || pinned_[b.index()] != 0 || size(b) == 0) continue;
      const double staleness = static_cast<double>(clock_ - touched_[b.index()] + 1);
      const double h = projected_cost(b) / (static_cast<double>(size(b)) * staleness);
      if (h >= least) continue;
      least = h;
      victim = b;
    }
    if (!victim.valid()) return false;
    evict(victim);
    return true;
  }

  /// Own cost and that of every evicted value connected to it through evicted values, upwards and downwards.
  double projected_cost(BufferId b) {
    double sum = impl(uses_.writer[b]).seconds;
    if (!neighbourhood_) return sum;
    ++mark_;
    marks_.resize(p_.ops.size(), 0);
    sum += evicted_ancestors(uses_.writer[b]) + evicted_descendants(b);
    return sum;
  }

  double evicted_ancestors(OpId op) {
    double sum = 0;
    for (BufferId r : impl(op).reads) {
      const OpId writer = uses_.writer[r];
      if (here_[r.index()] != 0 || !writer.valid() || marks_[writer.index()] == mark_) continue;
      marks_[writer.index()] = mark_;
      sum += impl(writer).seconds + evicted_ancestors(writer);
    }
    return sum;
  }

  double evicted_descendants(BufferId b) {
    double sum = 0;
    for (int at : uses_.readers[b]) {
      const OpId reader = p_.order[static_cast<std::size_t>(at)];
      if (at > now_ || p_.ops[reader].once || marks_[reader.index()] == mark_) continue;
      for (BufferId w : impl(reader).writes) {
        if (here_[w.index()] != 0 || !uses_.droppable[w] || uses_.readers[w].empty() || uses_.readers[w].back() <= now_)
          continue;
        if (marks_[reader.index()] != mark_) sum += impl(reader).seconds;
        marks_[reader.index()] = mark_;
        sum += evicted_descendants(w);
      }
    }
    return sum;
  }

  /// Values whose last reader in the order has run are released; one that cannot be made again stays as long as a
  /// recomputation may want it.
  void release_dead() {
    for (BufferId b : std::vector<BufferId>(live_)) {
      if (p_.buffers[b].keep) continue;
      const std::vector<int>& readers = uses_.readers[b];
      const int last = !uses_.droppable[b] ? uses_.until[b] : readers.empty() ? -1 : readers.back();
      if (last <= now_) release(b);
    }
  }

  /// As evict, but a value that cannot be made again stays with the emitter: its steps decide how long it really lives.
  void release(BufferId b) {
    here_[b.index()] = 0;
    held_ -= size(b);
    std::erase(live_, b);
    if (uses_.droppable[b]) emit_.drop(b);
  }

  const Problem& p_;
  const Choice& choice_;
  Uses uses_;
  DeviceId device_;
  Bytes limit_;
  bool neighbourhood_;
  Emitter emit_;
  std::vector<int> pinned_;
  std::vector<long long> touched_;
  std::vector<char> here_;
  std::vector<BufferId> live_;  // resident, not homed
  std::vector<int> marks_;
  int mark_ = 0;
  Bytes held_ = 0;
  long long clock_ = 0;
  int now_ = 0;
};

}  // namespace

Plan run_dtr(const Problem& problem, const Options& options) {
  check_switches(options, "dtr", {"heuristic"});
  const bool neighbourhood =
      switch_value(options, "heuristic", "neighbourhood", {"local", "neighbourhood"}) == "neighbourhood";
  const Choice choice = first_choice(problem);
  const DeviceId device = only_device(problem, choice, "dtr");
  const Bytes limit = problem.devices[device].budget.value_or(std::numeric_limits<Bytes>::max());
  std::vector<Step> steps = Online(problem, choice, device, limit, neighbourhood).run();
  return steps.empty() ? nothing_fits(problem) : answer(problem, std::move(steps));
}

}  // namespace neaptide::plan
