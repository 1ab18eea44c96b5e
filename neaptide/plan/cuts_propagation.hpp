// What some decided columns of a CutsModel decide of others: where a row could not be met otherwise, a column must be 0
// or must be 1. Follows all rows, and inequalities found later, in exact integers.
//
//   CutsPropagation follow(model);
//   follow.add(inequality);
//   const std::vector<CutsImplied> steps = follow.from({{column, 1}});
#pragma once

#include <utility>
#include <vector>

#include "neaptide/plan/cuts_inequalities.hpp"

namespace neaptide::plan {

/// One step: by the row, given the branches and the steps before. A column below 0: nothing meets the row.
struct CutsImplied {
  int row = 0;  // of the model, then inequalities
  int column = -1;
  char value = 0;
  friend bool operator==(const CutsImplied&, const CutsImplied&) = default;
};

class CutsPropagation {
 public:
  explicit CutsPropagation(const CutsModel& model);

  /// A CutsCheaper that is followed below some node alone only gets its number.
  void add(const CutsInequality& inequality);
  /// In sequence, beginning with what needs no decision; ends at the first row that nothing meets. `priced`: steps by
  /// rows that are not followed, each of them sound once all before it have been taken.
  std::vector<CutsImplied> from(const std::vector<std::pair<int, char>>& decided,
                                const std::vector<CutsImplied>& priced = {});
  /// Those steps that decide one of the columns `wanted`, that find a row which nothing meets, or that such ones rest
  /// on. `all`: inequalities by number, also those that were not added yet.
  std::vector<CutsImplied> needed(const std::vector<CutsImplied>& steps, std::vector<char> wanted,
                                  const std::vector<CutsInequality>& all) const;

 private:
  struct Row {
    CutsTerms terms;
    Wide least = 0, most = 0;  // what its terms reach at most, as far as is decided
    std::int64_t largest = 0;  // factor
  };
  void add(CutsTerms terms, std::int64_t least);
  bool decide(int column, char value);
  bool follow(std::vector<CutsImplied>* out);
  bool take(const std::vector<CutsImplied>& priced, std::vector<CutsImplied>* out);
  void forget_pending();
  void visit(int row);

  const std::size_t n_model_rows_;
  std::vector<Row> rows_;
  std::vector<std::vector<std::pair<int, std::int64_t>>> of_column_;  // row, factor
  std::vector<char> value_;                                           // by column: 2 is open
  std::vector<CutsImplied> given_;                                    // what needs no decision
  std::vector<int> pending_;                                          // rows to look at
  std::vector<char> is_pending_;
  std::vector<std::pair<int, char>> decided_;  // to be taken back
};

}  // namespace neaptide::plan
