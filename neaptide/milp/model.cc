#include "neaptide/milp/model.hpp"

#include <algorithm>
#include <cmath>

#include "neaptide/base/errors.hpp"

namespace neaptide::milp {

void Model::add_row(std::string row_name, double lower, double upper, std::vector<Term> terms) {
  std::sort(terms.begin(), terms.end(), [](const Term& a, const Term& b) { return a.var < b.var; });
  std::vector<Term> merged;
  for (const Term& t : terms) {
    if (!merged.empty() && merged.back().var == t.var) {
      merged.back().factor += t.factor;
    } else {
      merged.push_back(t);
    }
  }
  std::erase_if(merged, [](const Term& t) { return t.factor == 0; });
  if (merged.empty()) {
    if (lower > 0 || upper < 0) throw InternalError("row '{}' has no terms and cannot hold", row_name);
    return;
  }
  rows.push_back({std::move(row_name), lower, upper, std::move(merged)});
}

double violation(const Model& model, const std::vector<double>& values) {
  double worst = 0;
  const auto check = [&](double value, double lower, double upper) {
    worst = std::max({worst, lower - value, value - upper});
  };
  for (std::size_t j = 0; j < model.columns.size(); ++j) {
    const Column& c = model.columns[j];
    check(values[j], c.lower, c.upper);
    if (c.integer) worst = std::max(worst, std::abs(values[j] - std::round(values[j])));
  }
  for (const Row& row : model.rows) {
    double sum = 0;
    for (const Term& t : row.terms) sum += t.factor * values[static_cast<std::size_t>(t.var.index)];
    check(sum, row.lower, row.upper);
  }
  return worst;
}

double objective(const Model& model, const std::vector<double>& values) {
  double sum = model.offset;
  for (std::size_t j = 0; j < model.columns.size(); ++j) sum += model.columns[j].cost * values[j];
  return sum;
}

}  // namespace neaptide::milp
