#include "neaptide/plan/cuts_propagation.hpp"

#include <algorithm>
#include <cstdlib>

namespace neaptide::plan {
namespace {

constexpr char kOpen = 2;

Wide most_of(std::int64_t factor, char value) {
  return value == kOpen ? std::max<std::int64_t>(factor, 0) : factor * value;
}

}  // namespace

CutsPropagation::CutsPropagation(const CutsModel& model)
    : n_model_rows_(model.rows.size()), of_column_(model.columns.size()), value_(model.columns.size(), kOpen) {
  for (const CutsRow& row : model.rows) add(row.terms, row.least);
}

void CutsPropagation::add(const CutsInequality& inequality) {
  const auto* cheaper = std::get_if<CutsCheaper>(&inequality.why);
  if (cheaper != nullptr && !cheaper->left.empty()) {
    add({}, 0);
  } else {
    add(inequality.terms, inequality.least);
  }
}

void CutsPropagation::add(CutsTerms terms, std::int64_t least) {
  const int index = static_cast<int>(rows_.size());
  Row row{std::move(terms), least};
  for (const auto& [c, factor] : row.terms) {
    row.most += most_of(factor, value_[c]);
    row.largest = std::max(row.largest, std::abs(factor));
    of_column_[c].emplace_back(index, factor);
  }
  rows_.push_back(std::move(row));
  is_pending_.push_back(0);
  visit(index);
}

void CutsPropagation::visit(int row) {
  const Row& r = rows_[row];
  if (is_pending_[row] || r.most - r.least >= r.largest) return;
  is_pending_[row] = 1;
  pending_.push_back(row);
}

/// False where it is decided otherwise.
bool CutsPropagation::decide(int column, char value) {
  if (value_[column] != kOpen) return value_[column] == value;
  value_[column] = value;
  decided_.emplace_back(column, value);
  for (const auto& [row, factor] : of_column_[column]) {
    const Wide change = most_of(factor, value) - most_of(factor, kOpen);
    if (change == 0) continue;
    rows_[row].most += change;
    visit(row);
  }
  return true;
}

/// Looks at rows until none decides anything; false when one cannot be met.
bool CutsPropagation::follow(std::vector<CutsImplied>* out) {
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    const int index = pending_[i];
    is_pending_[index] = 0;
    const Wide spare = rows_[index].most - rows_[index].least;
    if (spare < 0) {
      out->push_back({index});
      forget_pending();
      return false;
    }
    for (std::size_t t = 0; t < rows_[index].terms.size(); ++t) {
      const auto [c, factor] = rows_[index].terms[t];
      if (value_[c] != kOpen || std::abs(factor) <= spare) continue;
      const char value = factor > 0 ? 1 : 0;
      out->push_back({index, c, value});
      decide(c, value);
    }
  }
  pending_.clear();
  return true;
}

void CutsPropagation::forget_pending() {
  for (const int row : pending_) is_pending_[row] = 0;
  pending_.clear();
}

/// Before a step, all that was decided is followed, as it had been when the step was found.
bool CutsPropagation::take(const std::vector<CutsImplied>& priced, std::vector<CutsImplied>* out) {
  for (const CutsImplied& step : priced) {
    if (!follow(out)) return false;
    const bool open = value_[step.column] == kOpen;
    if (decide(step.column, step.value)) {
      if (open) out->push_back(step);
      continue;
    }
    out->push_back({step.row});  // cannot be met any more
    forget_pending();
    return false;
  }
  return follow(out);
}

std::vector<CutsImplied> CutsPropagation::from(const std::vector<std::pair<int, char>>& decided,
                                               const std::vector<CutsImplied>& priced) {
  const bool possible = given_.empty() || given_.back().column >= 0;
  if (possible && !pending_.empty()) {  // rows that came since
    follow(&given_);
    decided_.clear();  // for good
  }
  std::vector<CutsImplied> out = given_;
  if (!out.empty() && out.back().column < 0) return out;
  bool contradiction = false;
  for (const auto& [column, value] : decided) {
    const int c = column;  // Clang 14 captures no part of a pair
    const auto step = std::find_if(out.begin(), out.end(), [&](const CutsImplied& s) { return s.column == c; });
    contradiction = !decide(c, value);
    if (step != out.end() && !contradiction) out.erase(step);  // the branch says so itself
    if (!contradiction) continue;
    const int row = step->row;  // cannot be met with this branch
    out.erase(step, out.end());
    out.push_back({row});
    break;
  }
  if (contradiction) {
    forget_pending();
  } else {
    take(priced, &out);
  }
  for (const auto& [c, value] : decided_) {
    value_[c] = kOpen;
    for (const auto& [row, factor] : of_column_[c]) rows_[row].most += most_of(factor, kOpen) - most_of(factor, value);
  }
  decided_.clear();
  return out;
}

std::vector<CutsImplied> CutsPropagation::needed(const std::vector<CutsImplied>& steps, std::vector<char> wanted,
                                                 const std::vector<CutsInequality>& all) const {
  std::vector<CutsImplied> out;
  std::vector<char> implied(value_.size(), 0);
  const auto want = [&](std::size_t c, std::int64_t factor) {
    if (implied[c] != 0 && most_of(factor, static_cast<char>(implied[c] - 1)) < most_of(factor, kOpen)) wanted[c] = 1;
  };
  std::vector<char> looked_at(n_model_rows_ + all.size(), 0);  // an earlier step by the same row needs no more
  const auto want_for = [&](std::size_t row) {
    if (looked_at[row]) return;
    looked_at[row] = 1;
    if (row < n_model_rows_) {
      for (const auto& [c, factor] : rows_[row].terms) want(static_cast<std::size_t>(c), factor);
      return;
    }
    const CutsInequality& one = all[row - n_model_rows_];
    for (const auto& [c, factor] : one.terms) want(static_cast<std::size_t>(c), factor);
    const auto* cheaper = std::get_if<CutsCheaper>(&one.why);
    for (std::size_t c = 0; cheaper != nullptr && c < cheaper->left.size(); ++c) want(c, -cheaper->left[c]);
  };
  for (const CutsImplied& s : steps) {
    if (s.column >= 0) implied[s.column] = static_cast<char>(1 + s.value);
  }
  for (auto s = steps.rbegin(); s != steps.rend(); ++s) {
    if (s->column >= 0) implied[s->column] = 0;
    if (s->column >= 0 && !wanted[s->column]) continue;
    out.push_back(*s);
    want_for(static_cast<std::size_t>(s->row));
  }
  std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace neaptide::plan
