// What the classic planners share: one implementation per op, and a writer of legal steps that recomputes on demand.
//
//   Choice choice = first_choice(problem);
//   Emitter emit(problem, choice);
//   for (OpId op : problem.order) if (choice[op] >= 0) { emit.run(op); emit.drop(some_value); }
//   steps = with_frees(problem, emit.take());
//
// Dropping says "recompute it when it is needed again"; the frees follow from the steps (with_frees).
#pragma once

#include <vector>

#include "neaptide/plan/plan.hpp"

namespace neaptide::plan {

/// The implementation of each op; -1: the op does not run.
using Choice = IdVector<OpTag, int>;

/// First implementations (the first one that can run where a saved output is missing or an input taken in place is
/// still needed); ops that bring nothing new, or that nothing needs, are left out.
Choice first_choice(const Problem& problem);

/// The one device that every chosen op and every home uses. UserError naming the planner when there are several.
DeviceId only_device(const Problem& problem, const Choice& choice, std::string_view planner);

/// Seconds of every chosen op once.
Seconds seconds_of(const Problem& problem, const Choice& choice);

/// The cheapest way for a buffer between two devices, over other devices if need be; empty when there is none.
std::vector<DeviceId> route(const Problem& problem, BufferId buffer, DeviceId from, DeviceId to);

/// For a fixed choice: who writes a buffer, when it is used, and whether it may be dropped and made again in time.
struct Uses {
  IdVector<BufferTag, OpId> writer;               // the first chosen op that writes version 0; invalid: none or a home
  IdVector<BufferTag, std::vector<int>> readers;  // positions in the order, ascending
  IdVector<BufferTag, bool> droppable;  // one version, not kept, and all its ways stay open until its last use
  IdVector<BufferTag, int> until;       // last position at which some run, a recomputation included, may want it
  IdVector<OpTag, int> position;        // in the order
};
Uses uses_of(const Problem& problem, const Choice& choice);

class Emitter {
 public:
  Emitter(const Problem& problem, const Choice& choice);

  /// Makes every read resident (by copies and recomputation), then computes the op. False: some read cannot be made
  /// again; the steps are then of no use.
  bool run(OpId op);
  /// As run(), for a stretch of ops that is gone through again: what may run only once, and has, is left out.
  bool run_again(OpId op) { return (problem_.ops[op].once && ran_[op.index()] != 0) || run(op); }
  bool ensure(BufferId buffer, DeviceId device);
  /// From now on the buffer counts as not resident anywhere. Homes stay.
  void drop(BufferId buffer);
  bool resident(BufferId buffer) const;
  /// Copies what must be kept to its home.
  bool finish();
  const std::vector<Step>& steps() const { return steps_; }
  std::vector<Step> take() { return std::move(steps_); }

 private:
  bool has(DeviceId d, BufferId b) const { return has_[d.index() * problem_.buffers.size() + b.index()] != 0; }
  void set(DeviceId d, BufferId b, bool value);
  bool copy_from_elsewhere(BufferId buffer, DeviceId device);
  bool collect(OpId op, std::vector<OpId>& out, std::vector<char>& seen) const;
  bool may_run(OpId op) const;
  bool compute(OpId op, int depth);
  bool make(OpId op, int depth);
  const Impl& impl(OpId op) const { return problem_.ops[op].impls[static_cast<std::size_t>(choice_[op])]; }

  const Problem& problem_;
  const Choice& choice_;
  Versions versions_;
  std::vector<int> position_;               // by op
  std::vector<std::vector<OpId>> writers_;  // by buffer: the chosen op that makes version k, or none
  std::vector<int> newest_;                 // by buffer
  std::vector<char> has_;                   // [device][buffer]: a value is there
  std::vector<int> n_holders_;              // by buffer
  std::vector<char> ran_;                   // by op
  std::vector<Step> steps_;
};

}  // namespace neaptide::plan
