// Linear models with integer variables, always minimised. Names are for people: they appear in MPS files and messages.
//
//   milp::Model m;
//   const milp::Var x = m.add_binary("keep[3]", 2.0);
//   m.add_row("budget", -milp::kInfinity, 10, {{x, 4.0}, {y, 7.0}});
//   milp::Solution s = milp::solve(m, {});
#pragma once

#include <limits>
#include <string>
#include <vector>

namespace neaptide::milp {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Var {
  int index = -1;
  friend auto operator<=>(const Var&, const Var&) = default;
};

struct Column {
  std::string name;
  double lower = 0, upper = kInfinity;
  double cost = 0;
  bool integer = false;
  friend bool operator==(const Column&, const Column&) = default;
};

struct Term {
  Var var;
  double factor = 1;
  friend bool operator==(const Term&, const Term&) = default;
};

/// lower <= sum of terms <= upper.
struct Row {
  std::string name;
  double lower = -kInfinity, upper = kInfinity;
  std::vector<Term> terms = {};  // each variable at most once
  friend bool operator==(const Row&, const Row&) = default;
};

struct Model {
  std::string name = "model";
  double offset = 0;  // added to the objective
  std::vector<Column> columns;
  std::vector<Row> rows;
  friend bool operator==(const Model&, const Model&) = default;

  Var add(std::string column_name, double lower, double upper, double cost, bool integer) {
    columns.push_back({std::move(column_name), lower, upper, cost, integer});
    return {static_cast<int>(columns.size()) - 1};
  }
  Var add_binary(std::string column_name, double cost) { return add(std::move(column_name), 0, 1, cost, true); }

  /// Terms of one variable are added up; a row without terms is left out (it must then be satisfied by 0).
  void add_row(std::string row_name, double lower, double upper, std::vector<Term> terms);

  Column& at(Var v) { return columns[static_cast<std::size_t>(v.index)]; }
  const Column& at(Var v) const { return columns[static_cast<std::size_t>(v.index)]; }
};

/// Largest violation of a bound, a row or an integrality by these values; 0 when they are feasible. Written from the
/// definition: this is how solutions are judged.
double violation(const Model& model, const std::vector<double>& values);
double objective(const Model& model, const std::vector<double>& values);

}  // namespace neaptide::milp
