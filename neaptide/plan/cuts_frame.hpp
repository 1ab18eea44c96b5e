// What bounds by instants need of a problem on one device, whichever the instants are: what takes room there, what
// comes back from elsewhere, which ops are certain to run before or after which.
//
//   const CutsFrame f(problem, device, BoundScope::kAnyOrder);
//   if (f.may_cut(op)) ... f.reach(op, true) ... f.least_extra(op) ...
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "neaptide/plan/facts.hpp"
#include "neaptide/plan/plan.hpp"

namespace neaptide::plan {

/// Whether the value is in one of the lists below, which are sorted.
inline bool has(const std::vector<int>& sorted, int v) { return std::binary_search(sorted.begin(), sorted.end(), v); }

class CutsFrame {
 public:
  /// The problem must be sound and outlive this; the device needs a budget.
  CutsFrame(const Problem& problem, DeviceId device, BoundScope scope);

  const Problem& problem;
  Facts facts;
  DeviceId device;
  BoundScope scope;
  std::vector<char> here;                    // by op: every implementation runs on the device
  std::vector<Bytes> size;                   // by value: 0 where it never counts
  std::vector<char> homed;                   // by value
  std::vector<char> needed_at_end;           // by value: on this device
  std::vector<Units> back, away;             // by value: seconds of the copies; kNoLimit: none
  std::vector<std::vector<int>> stands_for;  // [op][impl]: the implementation that dominates it, or itself
  std::vector<std::vector<std::vector<int>>> impl_reads, impl_writes;  // [op][impl]: values that count
  std::vector<std::vector<std::vector<int>>> impl_takes;  // of those read, the ones that a run in place ends
  Bytes fixed_bytes = 0;

  /// The op that alone can make the value; -1: none or several.
  int sole_maker(int value) const {
    const auto& makers = facts.values[value].makers;
    return makers.size() == 1 && !homed[value] ? makers[0].value : -1;
  }
  /// Ops that must have run before `op` may run, or (forwards) that may only run after it; itself included.
  std::vector<char> reach(OpId op, bool forwards) const;
  /// Whether an instant may be the first run of the op: no plan avoids it, and it always runs here.
  bool may_cut(OpId op) const { return facts.necessary[op.index()] && here[op.index()]; }
  /// Whether every plan of the scope first runs a before b.
  bool before(OpId a, OpId b) const;
  /// Intervals in which each op may first run, for instants in order; [op] -> {least, most}.
  std::vector<std::array<int, 2>> first_runs(const std::vector<OpId>& cuts) const;
  /// Bytes that tau's first run adds by an implementation beside what it reads.
  Bytes extra(OpId op, int impl) const;
  /// The least of these over its implementations.
  Bytes least_extra(OpId op) const;
  /// Bytes that a run by the implementation needs on the device: what it reads, workspace, outputs that take no block
  /// over.
  Bytes working_set(OpId op, int impl) const;
  /// Of those that `impl` stands for, itself included, the ones that no other undercuts in seconds, room and
  /// what is read, with `in_place` also in what is taken over. `first`: of those that may be a first run.
  std::vector<int> ways(OpId op, int impl, bool first, bool in_place) const;
  /// Every implementation's reads.
  const std::vector<int>& common_reads(OpId op) const { return common_[op.index()]; }

 private:
  Bytes beside_reads(OpId op, int impl) const;

  std::vector<std::vector<int>> common_;
  std::vector<std::vector<int>> followers_;  // by op: ops that must read what it alone makes
};

}  // namespace neaptide::plan
