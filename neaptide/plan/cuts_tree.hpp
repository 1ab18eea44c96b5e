// Branch and bound on a CutsModel. Relaxations come from the solver in floating point; every bound is then recomputed
// from the rounded multipliers in exact integers, so that nobody has to trust the solver: for multipliers y >= 0 of
// rows a x >= b, every 0/1 solution costs at least  sum y b + sum over columns of min(0, cost - sum y a). What a leaf's
// branches imply counts as decided there (cuts_propagation.hpp), also by the target: of what costs more nothing is
// said.
//
//   CutsTree tree(model);
//   tree.run(target, work, stop);        // target, bound: units, floor included
//   tree.bound();  tree.leaves();              // the open leaves and their multipliers: a certificate
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "neaptide/plan/cuts_worker.hpp"

namespace neaptide::plan {

class CutsTree {
 public:
  /// The model must outlive it.
  explicit CutsTree(const CutsModel& model);

  enum class End {
    kReached,  // the bound is at least the target
    kRelaxed,  // the cheapest 0/1 solution costs less: see relaxed()
    kStopped,  // out of work, or told to stop
  };
  /// May be called again, with another target or more work: iterations of the simplex method times columns, about.
  /// Two workers share a tree that has grown a while; `beside`: whether there is a thread for the second one just now,
  /// which makes no difference to what comes out.
  End run(
      Wide target, std::int64_t work, const std::function<bool()>& stop,
      const std::function<bool()>& beside = [] { return false; });

  Wide bound() const;
  /// Some 0/1 solution, not far from the relaxation's; none: the attempt failed. After run().
  std::optional<std::vector<char>> dive(const std::function<bool()>& stop);
  /// What a 0/1 solution costs, floor included.
  Wide units(const std::vector<char>& solution) const;
  /// Values of the columns.
  const std::vector<char>& relaxed() const { return relaxed_; }
  std::int64_t work() const;
  int n_nodes() const;

  /// The least target so far: nothing is claimed beyond it.
  Wide than() const { return than_; }
  /// They cover every 0/1 solution.
  std::vector<CutsLeaf> leaves() const;
  const std::vector<CutsInequality>& inequalities() const { return first_.inequalities(); }
  int price_log2() const { return first_.price_log2(); }

 private:
  void keep_cheaper();
  CutsNode root();
  bool take_solution(CutsNode* node);
  void work_alone();
  void work_together(bool beside);

  const CutsModel& m_;
  CutsWorker first_;
  std::unique_ptr<CutsWorker> second_;
  CutsNodes nodes_;
  std::vector<char> relaxed_;
  Wide target_ = 0, than_ = Wide{1} << 62;
  std::int64_t end_ = 0;  // of the work
  CutsLeaf root_;
  Wide cheaper_than_ = 0;  // of the last CutsCheaper; 0: none
};

}  // namespace neaptide::plan
