// Lower bounds from a handful of instants at once, chosen as they are needed: the cheapest 0/1 solution of a small
// CutsModel is played back as a schedule, and where that holds too much, the op that runs there becomes an instant too.
// Either some solution plays back within the budget (then it is optimal), or the bound has grown.
//
//   MultiCut cuts(problem, device, BoundScope::kThisOrder);
//   MultiCut::Ways ways;
//   ways.improve = [&](const std::vector<Compute>& relaxed) { ...make it fit...; return best_seconds; };
//   const LowerBound b = cuts.prove(op_of_the_best_single_cut, best_seconds, ways);
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "neaptide/plan/cuts_model.hpp"
#include "neaptide/plan/cuts_tree.hpp"
#include "neaptide/plan/plan.hpp"
#include "neaptide/plan/possible.hpp"

namespace neaptide::plan {

class MultiCut {
 public:
  /// The problem must be sound and outlive this; the device needs a budget.
  MultiCut(const Problem& problem, DeviceId device, BoundScope scope)
      : can_(possible_implementations(problem)), frame_(can_.problem, device, scope) {}
  MultiCut(const MultiCut&) = delete;

  struct Ways {
    std::int64_t work = 20'000'000;     // see CutsTree::run; all together
    std::size_t most_columns = 12'000;  // of one model
    int most_instants = 64;
    std::function<bool()> stop = [] { return false; };
    std::function<bool()> beside = [] { return false; };  // see CutsTree::run
    /// Is shown the runs of a relaxed solution, which may hold too much; returns the best seconds known by then.
    std::function<Seconds(const std::vector<Compute>&)> improve;
  };

  /// A bound with its certificate; at least the floor. Ends once it reaches `known`, the seconds of the best plan.
  LowerBound prove(OpId first, Seconds known, const Ways& ways);

  /// How the last call went.
  int instants() const { return instants_; }
  int nodes() const { return nodes_; }
  std::int64_t work() const { return work_; }

 private:
  Wide target(Seconds known) const;
  struct Grown {
    std::vector<OpId> cuts;
    std::set<OpId> inside;
    std::set<OpId> in_place;
    bool operator==(const Grown&) const = default;
  };
  /// With the instants where the schedule holds too much, and the intervals.
  Grown grow(const std::vector<Compute>& runs, const Grown& now) const;
  Wide units_of(const std::vector<Compute>& runs) const;
  /// All that take something over, where these are many of them; none otherwise.
  std::set<OpId> all_if_many(const std::set<OpId>& ops) const;
  struct Stage;  // a model and its tree
  Grown work_on(Stage* stage, int nodes_at_once, Seconds* known, const Ways& ways);
  std::vector<OpId> with(std::vector<OpId> cuts, const std::vector<OpId>& more) const;
  std::vector<OpId> with_beginning(std::vector<OpId> cuts) const;
  bool comparable(OpId op, const std::vector<OpId>& cuts) const;

  const Possible can_;
  const CutsFrame frame_;
  int instants_ = 0, nodes_ = 0;
  std::int64_t work_ = 0;
};

}  // namespace neaptide::plan
