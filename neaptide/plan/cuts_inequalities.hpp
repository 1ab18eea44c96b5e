// Inequalities that every 0/1 solution of a CutsModel satisfies and its relaxation may not: what tightens the
// relaxation under a tree's root. Each carries what a checker needs to derive it again.
//
//   for (CutsInequality& i : find_covers(model, x)) ...      // x: the relaxation's solution
//
// Kinds:
//   cover    weights of what takes room at one instant add up to at most the most that fits can weigh (a knapsack's
//            dynamic programme)
//   path     along a chain of values, each made from the one before, the last read for certain in interval `to`: unless
//            one of them is held at instant `from`, the first is made in the intervals after `from` up to `to`. Between
//            neighbouring instants the rows say so already; across several, a relaxation halves what it holds.
//   cheaper  what a plan that costs less than the best known one may not do
//   rounded  a combination of rows, rounded (Gomory, "An algorithm for the mixed integer problem", 1960; Marchand and
//            Wolsey, "Aggregation and mixed integer rounding to solve MIPs", 2001), in exact integers
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "neaptide/plan/cuts_model.hpp"

namespace neaptide::plan {

using CutsTerms = std::vector<std::pair<int, std::int64_t>>;  // column, factor

struct CutsCover {
  int cut = 0;
  CutsTerms weights;  // kHeld or kFirst columns, above 0
  std::int64_t most = 0;
};

struct CutsPath {
  int from = 0, to = 0;     // instant; interval
  OpId reader;              // certain to read the last value in interval `to`; invalid: it is needed at the end
  std::vector<int> values;  // each one's only maker always reads the one before
};

/// Of the rows' combination  sum a x - sum multiplier x slack = b,  with 1 - x for x in the columns `upper`: with the
/// remainders r of division by `divisor`,  sum min(r_a (divisor - r_b), r_b (divisor - r_a)) x >= r_b (divisor - r_b).
/// Slacks are integers and treated alike, then replaced by what they are. Factors then become multiples of 2^step_log2,
/// at least as large, or go at the expense of the right-hand side; none need exceed that.
struct CutsRounded {
  std::vector<std::pair<int, std::int64_t>> rows;  // of the model, then inequalities; multiplier
  std::int64_t divisor = 1, part = 0;              // part: r_b
  std::vector<int> upper;
  int step_log2 = 0;
};

/// Solutions that cost less than `than`: what they cost beyond sum multiplier x (row - least). Never in a relaxation,
/// which it would say nothing new to; it decides columns that cost too much.
struct CutsCheaper {
  std::vector<std::pair<int, std::int64_t>> rows;  // of the model, then inequalities; multiplier as in CutsLeaf
  Wide than = 0;                                   // units, floor included
  /// By column: the sign of its cost less what the multipliers take of it. Only where these are of a node below the
  /// root: they are followed below that node alone (CutsLeaf::priced), and have no terms here.
  std::vector<signed char> left = {};
};

/// sum of terms >= least.
struct CutsInequality {
  std::variant<CutsCover, CutsPath, CutsRounded, CutsCheaper> why;
  CutsTerms terms;
  std::int64_t least = 0;
  double scale = 1;  // what a relaxation had better divide it by
};

/// How far a solution is from satisfying it, by the length of its terms.
double violation(const CutsInequality& inequality, const std::vector<double>& x);

/// `thorough`: from how many values' sizes weights are made; the work grows with it.
std::vector<CutsInequality> find_covers(const CutsModel& model, const std::vector<double>& x, std::size_t thorough);
std::vector<CutsInequality> find_paths(const CutsModel& model, const std::vector<double>& x);
/// `multipliers`: of rows as they are in the model, in inequalities found earlier, with any sign. Nothing comes of
/// many.
std::optional<CutsInequality> round_rows(const CutsModel& model, const std::vector<CutsInequality>& earlier,
                                         const std::vector<std::pair<int, double>>& multipliers,
                                         const std::vector<double>& x);

/// Bytes of its instant's room that a column takes: a value, or an implementation beyond the leanest one.
Bytes room_taken(const CutsModel& model, int column);
/// By instant: the columns that take its room.
std::vector<std::vector<int>> takers_of_room(const CutsModel& model);

}  // namespace neaptide::plan
