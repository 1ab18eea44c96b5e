// One who works on a CutsTree: a relaxation of its own, what its branches imply, and the inequalities found so far.
// Several may work on different leaves of one tree at the same time and share what they have found in between.
//
//   CutsWorker first(model);
//   first.aim(target, than, work);
//   nodes.open.push_back(first.evaluate({}));
//   first.step(nodes.least(), &nodes);              // its children, or a round of inequalities
//   CutsWorker second(first);                       // knows what the first one knows
//   first.share(&second, &nodes_of_second);
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "neaptide/milp/relaxation.hpp"
#include "neaptide/plan/cuts_inequalities.hpp"
#include "neaptide/plan/cuts_model.hpp"
#include "neaptide/plan/cuts_propagation.hpp"

namespace neaptide::plan {

struct CutsLeaf {
  std::vector<std::pair<int, char>> fixed;                // column, value: the branches that lead here
  std::vector<CutsImplied> implied;                       // what of their consequences the proof needs
  std::vector<std::pair<int, std::int64_t>> multipliers;  // row (inequalities follow the model's), above 0
  std::vector<CutsImplied> priced;                        // decided by what ancestors' multipliers leave to be spent
  int spends = -1;                                        // row of the parent's multipliers, a CutsCheaper; -1: none
  Wide units = 0;                                         // what is proved, floor included
  bool impossible() const { return !implied.empty() && implied.back().column < 0; }
};

struct CutsNode {
  CutsLeaf leaf;
  double estimate = 0;  // of the relaxation, in its scale
  bool integral = false, refined = false;
  std::vector<std::pair<double, int>> candidates;  // score, column: what to branch on
};

/// Leaves of one tree, or the share of one worker.
struct CutsNodes {
  std::vector<CutsNode> open, done;  // done: with nothing to branch on

  /// Multipliers and steps in all leaves.
  std::size_t kept() const;
  /// The open one that bounds least; end() when there is none.
  std::vector<CutsNode>::iterator least();
};

class CutsWorker {
 public:
  /// The model must outlive it.
  explicit CutsWorker(const CutsModel& model);
  /// Another one for the same tree, who knows what this one knows.
  CutsWorker(const CutsWorker& known);
  CutsWorker& operator=(const CutsWorker&) = delete;

  /// Units that leaves are to reach; from which on nothing is claimed; work at most, of its own.
  void aim(Wide target, Wide than, std::int64_t work);
  bool at_end() const { return work() >= end_; }

  /// By the parent's multipliers, which hold at the leaf too, and by its own.
  CutsNode evaluate(CutsLeaf inherited);
  /// Whether the relaxation's solution is whole there and costs less than the target.
  bool is_solution(const CutsNode& node) const;
  /// A round of inequalities that the last solution violates; how many.
  int tighten(bool at_root);
  /// In place of an open node comes what becomes of it: itself with inequalities that its solution violated, or its
  /// children.
  void step(std::vector<CutsNode>::iterator at, CutsNodes* nodes);
  /// Fixes what the relaxation is nearly sure of, a few columns at a time: a 0/1 solution; none: the attempt failed.
  std::optional<std::vector<char>> dive(const CutsLeaf& from, const std::function<bool()>& stop);
  /// Of the last relaxation that was solved; by column.
  const std::vector<double>& values() const { return lp_.values(); }

  using Multipliers = std::vector<std::pair<int, std::int64_t>>;
  /// By column: the cost less what the multipliers take of it, in steps of 2^price_log2 units; and what these prove.
  std::vector<Wide> left_by(const Multipliers& multipliers, Wide* sum) const;
  /// Also one that is never in the relaxation.
  void add(CutsInequality inequality);
  /// What was found since is followed from now on.
  void settle();
  /// settle() for two who had the same before: the other's inequalities come after this one's; in the nodes that it
  /// made since they are called so.
  void share(CutsWorker* other, CutsNodes* theirs);
  /// All that were ever found: later ones may be made from earlier ones.
  const std::vector<CutsInequality>& inequalities() const { return inequalities_; }
  /// A kRoom multiplier m stands for m x 2^price_log2 units per byte.
  int price_log2() const { return price_log2_; }

  std::int64_t work() const { return (lp_.iterations() + extra_iterations_ + kPerNode * n_nodes_) * per_iteration(); }
  int n_nodes() const { return n_nodes_; }

 private:
  static constexpr std::int64_t kPerNode = 20;  // iterations that the rest of a node takes as long as
  /// What an iteration takes, about: on a large model longer than in proportion.
  std::int64_t per_iteration() const {
    const auto n = static_cast<std::int64_t>(now_.size()) + 1;
    return n + n * n / 4000;
  }
  std::int64_t iterations_left() const { return std::max<std::int64_t>(1, (end_ - work()) / per_iteration()); }
  void fix(const std::vector<std::pair<int, char>>& branches, const std::vector<CutsImplied>& implied);
  const CutsTerms& terms_of(int row, std::int64_t* least, bool* bytes) const;
  void multipliers_of(const std::vector<double>& duals, double scale, CutsLeaf* leaf) const;
  CutsLeaf proved(const CutsLeaf& leaf, const std::vector<CutsImplied>& implied) const;
  void spend(CutsLeaf* leaf, std::vector<CutsImplied>* implied);
  void leave_to_spend(CutsNode* node);
  const CutsCheaper& spent(const CutsLeaf& leaf) const;
  void choose_candidates(CutsNode* node) const;
  void choose_largest(CutsNode* node);
  int row_id(int lp_row) const;
  double scale_of(int row) const;
  void find_rounded(std::size_t most, std::vector<CutsInequality>* found);
  void relax_by(int inequality);
  void loosen();
  void refine(CutsNode* node);
  std::array<CutsNode, 2> branch(const CutsNode& node);

  const CutsModel& m_;
  milp::Relaxation lp_;
  CutsPropagation follow_;
  std::vector<char> now_;  // by column: 2 free, 0 or 1 fixed in lp_
  std::vector<CutsInequality> inequalities_;
  std::size_t n_followed_ = 0;  // of these
  std::vector<int> live_;       // of these: in the relaxation, after the model's rows
  std::vector<int> room_row_;   // by instant
  int price_log2_ = 0;
  Wide target_ = 0, than_ = 0;
  std::int64_t end_ = 0;  // of the work
  int n_nodes_ = 0;
  std::int64_t extra_iterations_ = 0;  // what finding inequalities takes as long as
};

}  // namespace neaptide::plan
