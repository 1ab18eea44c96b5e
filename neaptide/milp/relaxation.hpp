// A linear model that is solved again and again while bounds tighten and rows come: the relaxation under a branch and
// bound of one's own. Integrality is dropped. Each solve starts from the basis of the one before.
//
//   milp::Relaxation lp(model);
//   lp.bound(x, 1, 1);
//   if (lp.solve(10'000) == milp::Relaxation::Outcome::kOptimal) use(lp.values(), lp.row_duals());
//
// Duals are of rows `lower <= a x <= upper` of a minimisation: positive where `lower` binds, negative where `upper`
// does, so that cost - sum of dual x row is what a column still costs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "neaptide/milp/model.hpp"

namespace neaptide::milp {

class Relaxation {
 public:
  enum class Outcome { kOptimal, kInfeasible, kStopped };

  /// UserError ("... is not built, because ...") without a solver.
  explicit Relaxation(const Model& model);
  ~Relaxation();
  Relaxation(Relaxation&&) noexcept;

  void bound(Var var, double lower, double upper);
  /// Its dual follows those of the rows before it.
  void add_row(double lower, double upper, const std::vector<Term>& terms);
  /// Their indices, ascending; the rows after them move up.
  void remove_rows(const std::vector<int>& rows);
  /// The next solve starts from the basis of another one with the same columns and rows, if that has one.
  void start_from(const Relaxation& other);
  /// kStopped: the iteration limit, or numerical trouble; nothing may be concluded.
  Outcome solve(std::int64_t most_iterations);

  double objective() const { return objective_; }
  const std::vector<double>& values() const { return values_; }
  /// When optimal: duals. When infeasible: a combination of the rows that no values within the bounds satisfy; empty if
  /// the solver gives none.
  const std::vector<double>& row_duals() const { return duals_; }
  std::int64_t iterations() const { return iterations_; }
  /// When optimal after simplex iterations, for as many places as there are rows: the column that is basic there, -1
  /// for the slack of a row. Empty, and so is tableau_row, where the solver kept no basis matrix.
  std::vector<int> basic() const;
  /// When optimal: which rows are basic, that is, may go without the solution changing.
  std::vector<char> idle_rows() const;
  /// When optimal: the multipliers, row by row, whose combination of the rows is the simplex tableau's row of a place.
  std::vector<std::pair<int, double>> tableau_row(int place) const;

 private:
  struct Solver;
  std::unique_ptr<Solver> solver_;
  double objective_ = 0;
  std::vector<double> values_, duals_;
  std::int64_t iterations_ = 0;
};

}  // namespace neaptide::milp
