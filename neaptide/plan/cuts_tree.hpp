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

#include "neaptide/milp/relaxation.hpp"
#include "neaptide/plan/cuts_inequalities.hpp"
#include "neaptide/plan/cuts_model.hpp"
#include "neaptide/plan/cuts_propagation.hpp"

namespace neaptide::plan {

class CutsTree {
 public:
  /// The model must outlive it.
  explicit CutsTree(const CutsModel& model);
  ~CutsTree();

  enum class End {
    kReached,  // the bound is at least the target
    kRelaxed,  // the cheapest 0/1 solution costs less: see relaxed()
    kStopped,  // out of work, or told to stop
  };
  /// May be called again, with another target or more work: iterations of the simplex method times columns, about (see
  /// per_iteration).
  End run(Wide target, std::int64_t work, const std::function<bool()>& stop);

  Wide bound() const;
  /// Some 0/1 solution, not far from the relaxation's; none: the attempt failed. After run().
  std::optional<std::vector<char>> dive(const std::function<bool()>& stop);
  /// What a 0/1 solution costs, floor included.
  Wide units(const std::vector<char>& solution) const;
  /// Values of the columns.
  const std::vector<char>& relaxed() const { return relaxed_; }
  std::int64_t work() const { return (lp_.iterations() + extra_iterations_ + kPerNode * n_nodes_) * per_iteration(); }
  int n_nodes() const { return n_nodes_; }

  struct Leaf {
    std::vector<std::pair<int, char>> fixed;                // column, value: the branches that lead here
    std::vector<CutsImplied> implied;                       // what of their consequences the proof needs
    std::vector<std::pair<int, std::int64_t>> multipliers;  // row (inequalities follow the model's), above 0
    Wide units = 0;                                         // what they prove, floor included
    bool impossible() const { return !implied.empty() && implied.back().column < 0; }
  };
  /// The least target so far: nothing is claimed beyond it.
  Wide than() const { return than_; }
  /// They cover every 0/1 solution.
  std::vector<Leaf> leaves() const;
  /// All that were ever found: later ones may be made from earlier ones.
  const std::vector<CutsInequality>& inequalities() const { return inequalities_; }
  /// A kRoom multiplier m stands for m x 2^price_log2 units per byte.
  int price_log2() const { return price_log2_; }

 private:
  static constexpr std::int64_t kPerNode = 20;  // iterations that the rest of a node takes as long as
  /// What an iteration takes, about: on a large model longer than in proportion.
  std::int64_t per_iteration() const {
    const auto n = static_cast<std::int64_t>(now_.size()) + 1;
    return n + n * n / 4000;
  }
  struct Node {
    Leaf leaf;
    double estimate = 0;  // of the relaxation, in its scale
    bool integral = false, refined = false;
    std::vector<std::pair<double, int>> candidates;  // score, column: what to branch on
  };
  void fix(const std::vector<std::pair<int, char>>& branches, const std::vector<CutsImplied>& implied);
  std::size_t kept_by(const Leaf& leaf) const { return leaf.multipliers.size() + leaf.implied.size(); }
  void keep_cheaper();
  Node evaluate(Leaf inherited, Wide target);
  void choose_candidates(Node* node) const;
  void choose_largest(Node* node);
  void multipliers_of(const std::vector<double>& duals, double scale, Leaf* leaf) const;
  std::vector<Wide> left_by(const Leaf& leaf, Wide* sum) const;
  Leaf proved(const Leaf& leaf, const std::vector<CutsImplied>& implied) const;
  int row_id(int lp_row) const;
  double scale_of(int row) const;
  Node root(Wide target);
  int tighten(bool at_root);
  void find_rounded(std::size_t most, std::vector<CutsInequality>* found);
  void refine(Node* node, Wide target);
  void loosen();
  void branch(const Node& node, Wide target);
  const std::vector<std::pair<int, std::int64_t>>& terms_of(int row, std::int64_t* least, bool* bytes) const;

  const CutsModel& m_;
  milp::Relaxation lp_;
  CutsPropagation follow_;
  std::vector<Node> open_;
  std::vector<char> now_;  // by column: 2 free, 0 or 1 fixed in lp_
  std::vector<char> relaxed_;
  std::vector<CutsInequality> inequalities_;
  std::vector<int> live_;  // of these: in the relaxation, after the model's rows
  Wide than_ = Wide{1} << 62;
  Leaf root_;
  Wide cheaper_than_ = 0;      // of the last CutsCheaper; 0: none
  std::vector<int> room_row_;  // by instant
  int price_log2_ = 0;
  int n_nodes_ = 0;
  std::int64_t extra_iterations_ = 0;  // what finding inequalities takes as long as
  std::int64_t end_ = 0;               // of the work
  std::size_t kept_ = 0;               // multipliers in all leaves

  std::vector<Node> done_;
};

}  // namespace neaptide::plan
