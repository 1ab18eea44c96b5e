#include "neaptide/plan/planners/griewank.hpp"

#include <algorithm>

#include "neaptide/plan/answer.hpp"
#include "neaptide/plan/forward.hpp"
#include "neaptide/plan/simulate.hpp"

namespace neaptide::plan {
namespace {

constexpr long long kMostSteps = 2'000'000;

/// binomial(s + r, s), cut off at a large number.
long long reach(int slots, int repetitions) {
  long long value = 1;
  for (int i = 1; i <= slots; ++i) {
    value = value * (repetitions + i) / i;
    if (value > 1'000'000'000) return value;
  }
  return value;
}

/// The repetitions that `steps` need: reach(slots, r - 1) < steps <= reach(slots, r).
int repetitions(int steps, int slots) {
  int r = 0;
  while (reach(slots, r) < steps) ++r;
  return r;
}

/// Runs the forward half as a chain of stages; a stage ends with an op whose values wait for the backward half.
class Revolver {
 public:
  Revolver(const Problem& problem, const Forward& forward, int slots)
      : problem_(problem), forward_(forward), slots_(slots), emit_(problem, forward.choice) {
    stage_of_.assign(problem.buffers.size(), -1);
    std::size_t begin = 0;
    for (std::size_t i = 0; i < forward.ops.size(); ++i) {
      if (forward.waiting[i].empty() && i + 1 < forward.ops.size()) continue;
      for (BufferId b : forward.waiting[i]) stage_of_[b.index()] = static_cast<int>(stages_.size());
      stages_.push_back({begin, i + 1});
      begin = i + 1;
    }
  }

  std::vector<Step> run() {
    const int last = static_cast<int>(stages_.size()) - 1;
    if (last < 0 || !advance_to(last, {})) return {};
    for (OpId op : forward_.backward) {
      if (!reverse(op)) return {};
    }
    if (!emit_.finish()) return {};
    return with_frees(problem_, emit_.take());
  }

 private:
  struct Stage {
    std::size_t begin, end;  // in forward.ops
  };

  /// The values from which stage + 1 starts, but for those about to be read; -1 is the start of the chain, which costs
  /// nothing to keep.
  void drop_stage(int stage, const std::vector<BufferId>& reads) {
    for (std::size_t i = stages_[static_cast<std::size_t>(stage)].begin;
         i < stages_[static_cast<std::size_t>(stage)].end; ++i) {
      const OpId op = forward_.ops[i];
      const int k = forward_.choice[op];
      for (BufferId b : problem_.ops[op].impls[static_cast<std::size_t>(k)].writes) {
        const bool read = std::find(reads.begin(), reads.end(), b) != reads.end();
        if (forward_.uses.droppable[b] && forward_.uses.writer[b] == op && !read) emit_.drop(b);
      }
    }
  }

  bool run_stage(int stage) {
    const Stage& s = stages_[static_cast<std::size_t>(stage)];
    for (std::size_t i = s.begin; i < s.end; ++i) {
      if (!emit_.run_again(forward_.ops[i])) return false;
    }
    return true;
  }

  /// From the nearest stored state to the end of `stage`, leaving stored states on the way where Revolve puts them, and
  /// what the next op reads (its layer's input and output, where Revolve knows only one state).
  bool advance_to(int stage, const std::vector<BufferId>& reads) {
    while (!stored_.empty() && stored_.back() > stage) stored_.pop_back();
    int at = stored_.empty() ? -1 : stored_.back();
    int next_store = store_after(at, stage);
    for (int s = at + 1; s <= stage; ++s) {
      if (!run_stage(s)) return false;
      if (s - 1 >= 0 && s - 1 != at) drop_stage(s - 1, reads);
      if (s != next_store) continue;
      stored_.push_back(s);
      at = s;
      next_store = store_after(at, stage);
    }
    return true;
  }

  int store_after(int at, int stage) const {
    const int steps = stage - at + 1, free_slots = slots_ - static_cast<int>(stored_.size());
    if (steps < 2 || free_slots < 1) return stage + 1;
    return at + revolve_advance(steps, free_slots);
  }

  /// Runs one op of the backward half, with the last state that it reads made again when it is not there.
  bool reverse(OpId op) {
    int wanted = -1;
    const int k = forward_.choice[op];
    const std::vector<BufferId>& reads = problem_.ops[op].impls[static_cast<std::size_t>(k)].reads;
    for (BufferId b : reads) {
      if (stage_of_[b.index()] >= 0 && !emit_.resident(b)) wanted = std::max(wanted, stage_of_[b.index()]);
    }
    if (wanted >= 0 && !advance_to(wanted, reads)) return false;
    return emit_.run(op);
  }

  const Problem& problem_;
  const Forward& forward_;
  int slots_;
  Emitter emit_;
  std::vector<Stage> stages_;
  std::vector<int> stage_of_;  // by buffer
  std::vector<int> stored_;    // stages whose values stay, ascending
};

}  // namespace

int revolve_advance(int steps, int slots) {
  const int stored = slots + 1;  // with the state from which the steps start
  const int r = repetitions(steps, stored);
  // Every split is optimal that leaves reach(s, r-2) .. reach(s, r-1) steps before the checkpoint and
  // reach(s-1, r-1) .. reach(s-1, r) after it; the longest first part is taken.
  const long long least = std::max(steps - reach(stored - 1, r), r >= 2 ? reach(stored, r - 2) : 1);
  const long long most = std::min(reach(stored, r - 1), steps - reach(stored - 1, r - 1));
  return static_cast<int>(std::clamp<long long>(std::max(least, most), 1, steps - 1));
}

long long revolve_cost(int steps, int slots) {
  if (steps <= 1) return 0;
  if (slots <= 0) return static_cast<long long>(steps) * (steps - 1) / 2;
  const int k = revolve_advance(steps, slots);
  return k + revolve_cost(steps - k, slots - 1) + revolve_cost(k, slots);
}

Plan run_griewank(const Problem& problem, const Options& options) {
  check_switches(options, "griewank", {"slots"});
  const std::optional<int> given = switch_count(options, "slots", 0, 1'000'000);
  const Forward forward = forward_of(problem);
  const int n = static_cast<int>(forward.ops.size());
  BestPlan best(problem);
  const auto fits = [&](int slots) {
    if (revolve_cost(n, slots) > kMostSteps) return true;  // too long to be of use; more slots are shorter
    std::vector<Step> steps = Revolver(problem, forward, slots).run();
    const bool good = !steps.empty() && overflow(problem, simulate(problem, steps).peak) == 0;
    best.offer(std::move(steps));
    return good;
  };
  if (given) {
    fits(std::min(*given, n));
    return std::move(best).plan();
  }
  // More slots, less time: the most that fit, found by doubling and bisection.
  int low = 0, high = 1;
  if (fits(0)) {
    while (high <= n && !options.interrupted() && fits(high)) {
      low = high;
      high *= 2;
    }
  }
  high = std::min(high, n + 1);
  while (high - low > 1 && !options.interrupted()) {
    const int middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return std::move(best).plan();
}

}  // namespace neaptide::plan
