// Branch and bound on a CutsModel. Relaxations come from the solver in floating point; every bound is then recomputed
// from the rounded multipliers in exact integers, so that nobody has to trust the solver: for multipliers y >= 0 of
// rows a x >= b, every 0/1 solution costs at least  sum y b + sum over columns of min(0, cost - sum y a).
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
#include "neaptide/plan/cuts_model.hpp"

namespace neaptide::plan {

/// Weights of what takes room at instant `cut` add up to at most `most`: whatever weighs more takes more than there is.
struct CutsCover {
  int cut = 0;
  std::vector<std::pair<int, std::int64_t>> weights;  // kHeld or kFirst column, weight above 0
  std::int64_t most = 0;
};

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
  /// May be called again, with another target or more work: iterations of the simplex method times columns, about.
  End run(Wide target, std::int64_t work, const std::function<bool()>& stop);

  Wide bound() const;
  /// Values of the columns.
  const std::vector<char>& relaxed() const { return relaxed_; }
  std::int64_t work() const { return (lp_.iterations() + kPerNode * n_nodes_) * n_columns(); }
  int n_nodes() const { return n_nodes_; }

  struct Leaf {
    std::vector<std::pair<int, char>> fixed;                // column, value: the branches that lead here
    std::vector<std::pair<int, std::int64_t>> multipliers;  // row (covers follow the model's rows), above 0
    Wide units = 0;                                         // what they prove, floor included
  };
  /// They cover every 0/1 solution.
  std::vector<Leaf> leaves() const;
  const std::vector<CutsCover>& covers() const { return covers_; }
  /// A kRoom multiplier m stands for m x 2^price_log2 units per byte.
  int price_log2() const { return price_log2_; }

 private:
  static constexpr std::int64_t kPerNode = 20;  // iterations that the rest of a node takes as long as
  std::int64_t n_columns() const { return static_cast<std::int64_t>(now_.size()) + 1; }
  struct Node {
    Leaf leaf;
    double estimate = 0;  // of the relaxation, in its scale
    bool integral = false;
    std::vector<std::pair<double, int>> candidates;  // score, column: what to branch on
  };
  void fix(const std::vector<std::pair<int, char>>& fixed);
  Node evaluate(Leaf inherited, Wide target);
  void choose_candidates(Node* node) const;
  void choose_largest(Node* node) const;
  void multipliers_of(const std::vector<double>& duals, double scale, Leaf* leaf) const;
  Wide prove(const Leaf& leaf) const;
  Bytes room_taken(int column) const;
  int separate(double least_violation);
  int cover(int cut, double least_violation);
  void branch(const Node& node, Wide target);
  const std::vector<std::pair<int, std::int64_t>>& terms_of(int row, std::int64_t* least, bool* bytes) const;

  const CutsModel& m_;
  milp::Relaxation lp_;
  std::vector<Node> open_;
  std::vector<char> now_;  // by column: 2 free, 0 or 1 fixed in lp_
  std::vector<char> relaxed_;
  std::vector<CutsCover> covers_;
  std::vector<std::vector<std::pair<int, std::int64_t>>> cover_terms_;
  std::vector<std::vector<int>> held_;  // by instant: the columns that take its room
  std::vector<int> room_row_;           // by instant
  int price_log2_ = 0;
  int n_nodes_ = 0;
  std::int64_t end_ = 0;  // of the work
  std::size_t kept_ = 0;  // multipliers in all leaves

  std::vector<Node> done_;
};

}  // namespace neaptide::plan
