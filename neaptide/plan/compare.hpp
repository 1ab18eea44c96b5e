// Two plans of one problem, side by side: what they cost, what they need, and what one does that the other does not.
//
//   const plan::Comparison c = plan::compare(problem, a, b);
//   c.b.seconds - c.a.seconds;   c.ops;   c.same();
#pragma once

#include <string>
#include <vector>

#include "neaptide/plan/plan.hpp"

namespace neaptide::plan {

/// What a replay of one plan shows.
struct Totals {
  Seconds seconds = 0, overlapped = 0;
  IdVector<DeviceTag, Bytes> peak;
  int computes = 0;
  int again = 0;              // runs of an op beyond its first
  Seconds again_seconds = 0;  // the sum of those runs
  int copies = 0;
  Bytes copied = 0;  // bytes moved by copies
  Seconds copy_seconds = 0;
  int in_place = 0;  // runs that write in place
  friend bool operator==(const Totals&, const Totals&) = default;
};
Totals totals(const Problem& problem, const Plan& plan);

/// An op that the plans run differently: the implementations of its runs, in order.
struct OpDifference {
  OpId op;
  std::vector<int> a, b;
  Seconds a_seconds = 0, b_seconds = 0;
  friend bool operator==(const OpDifference&, const OpDifference&) = default;
};

/// A buffer that the plans copy differently often.
struct CopyDifference {
  BufferId buffer;
  int a = 0, b = 0;
  friend bool operator==(const CopyDifference&, const CopyDifference&) = default;
};

struct Comparison {
  Totals a, b;
  std::vector<OpDifference> ops;       // by difference in seconds, largest first
  std::vector<BufferId> a_keeps;       // made less often by a than by b; largest first
  std::vector<BufferId> b_keeps;       // the other way round
  std::vector<CopyDifference> copies;  // largest buffer first
  std::vector<OpId> moved;             // the fewest ops whose first runs must move to turn one order into the other
  /// Nothing above differs.
  bool same() const { return a == b && ops.empty() && copies.empty() && moved.empty(); }
};

/// UserError naming the plan ("the first", "the second") and what it breaks, when a replay does not accept it.
Comparison compare(const Problem& problem, const Plan& a, const Plan& b);

std::string to_json(const Problem& problem, const Comparison& comparison);

}  // namespace neaptide::plan
