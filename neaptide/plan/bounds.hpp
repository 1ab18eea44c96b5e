// Lower bounds of the serial seconds of any plan, each with a certificate that plan::certify checks without trusting
// us.
//
//   plan::CutBounds cuts(problem, device, plan::BoundScope::kAnyOrder);
//   plan::LowerBound b = cuts.best(effort);       // b.seconds, b.certificate
//
// The single cut. Look at the instant at which op tau is first run on a device with budget M. Whatever is needed later
// was either there at that instant, so that all of it fits in what tau leaves free, or it is made again afterwards, at
// its cost. With a price mu per byte this is a minimum cut:
//
//   source -> op          seconds of running the op again       (no limit for once ops that have run)
//   op -> value           mu x bytes: kept                      (or the copy back, where there is another device)
//   value -> op           no limit: running the op again needs the value
//   value -> sink         no limit: something that first runs later reads the value, or it must be there at the end
//
//   every plan costs at least  (each necessary op once) + (minimum cut) - mu x (bytes free at the instant)
//
// It holds for every sequence of steps of its scope: "this order" fixes the order of the first runs, "any order" only
// what the dependencies fix (an op that may run on either side of the instant can be "made later" for nothing).
// A flow of that value, in exact integers, is the certificate. What integers and further instants add is in
// multi_cut.hpp.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "neaptide/plan/plan.hpp"

namespace neaptide::plan {

/// Every necessary op once, by the fastest implementation that may run first (one that reads what only the op itself
/// makes, as saved statistics, may not); any order.
LowerBound floor_bound(const Problem& problem);

class CutBounds {
 public:
  /// The problem must be sound and outlive this. The device needs a budget.
  CutBounds(const Problem& problem, DeviceId device, BoundScope scope);
  ~CutBounds();
  CutBounds(CutBounds&&) noexcept;

  struct Cut {
    OpId op;
    Seconds seconds = 0;      // the whole bound, floor included
    bool infeasible = false;  // nothing fits at this instant: no plan exists
  };
  /// The best Lagrangian bound at the instant of `op`.
  Cut evaluate(OpId op);
  /// Ops whose instant may bind, most promising first (working sets and the load without recomputation).
  std::vector<OpId> promising() const;
  /// The best of the promising instants; `effort` counts arcs of flow work. Stops at `enough`.
  LowerBound best(std::int64_t effort, Seconds enough);
  /// The certified bound of the best evaluation so far.
  LowerBound proved() const;
  /// The op of the best evaluation so far; invalid while that is the floor.
  OpId best_op() const;
  /// Whether some evaluated instant shows that no plan exists.
  bool infeasible() const;
  std::int64_t work() const;
  std::function<bool()> stop = [] { return false; };  // asked between evaluations

 private:
  struct Frame;
  std::unique_ptr<Frame> f_;
};

}  // namespace neaptide::plan
