// Several instants: the leaves of a tree over the columns of cuts_model.hpp, each with multipliers of its rows. For
// multipliers y >= 0 of rows a x >= b every 0/1 solution costs at least  sum y b + sum of min(0, cost - sum y a), so
// the multipliers prove themselves once every row is seen to hold for all plans. Columns that no row touches cost at
// least nothing and are never looked at.
#include <algorithm>

#include "neaptide/plan/certify_cuts_rows.hpp"

namespace neaptide::plan::certificate {
namespace {

constexpr std::size_t kDeepestTree = 5000;

class CutsChecker : public CutsRows {
 public:
  using CutsRows::CutsRows;

  Exact check(const Json& json) {
    const JsonReader r(json, "certificate");
    price_log2_ = static_cast<int>(r.integer("price_log2", -50));
    require(price_log2_ <= 0, "its price is not a fraction of a unit");
    than_ = r.integer("than", 0);
    floor_ = floor();
    read_frame(r);
    for (const JsonReader& key : r.items("columns")) named_.push_back(column_of(key));
    for (const JsonReader& row : r.items("rows")) rows_.push_back(read_row(row));
    std::vector<Leaf> leaves;
    for (const JsonReader& leaf : r.items("leaves")) leaves.push_back(read_leaf(leaf));
    std::vector<const Leaf*> all;
    for (const Leaf& leaf : leaves) all.push_back(&leaf);
    require_complete(all, 0);
    Exact least = than_;
    for (const Leaf& leaf : leaves) least = std::min(least, prove(leaf));
    return least;
  }

 private:
  struct Implied {
    std::size_t row;
    int column;  // below 0: nothing meets the row
    bool one;
  };
  struct Leaf {
    std::vector<std::pair<int, bool>> fixed;  // column
    std::vector<Implied> implied;
    std::vector<std::pair<std::size_t, std::int64_t>> rows;
  };

  int named(const JsonReader& r) const {
    const auto i = static_cast<std::size_t>(r.integer(0));
    require(i < named_.size(), "it refers to a column that it does not name");
    return named_[i];
  }

  /// A row of the model, or an inequality, which may come of rows before it.
  Row read_row(const JsonReader& r) {
    if (r.value().is_array()) return row_of(r);
    if (r.has("cut")) return cover_of(r);
    if (r.has("cheaper")) return cheaper(r);
    return r.has("path") ? path_of(r) : rounded(r);
  }

  std::size_t row_number(const JsonReader& r) const {
    const auto row = static_cast<std::size_t>(r.integer(0));
    require(row < rows_.size(), "it refers to a row that it does not give before");
    return row;
  }

  std::vector<std::pair<std::size_t, std::int64_t>> read_multipliers(const JsonReader& list, bool signs) const {
    std::vector<std::pair<std::size_t, std::int64_t>> out;
    for (const JsonReader& item : list.items()) {
      const auto parts = item.items();
      require(parts.size() == 2, "one of its multipliers is not [row, multiplier]");
      out.emplace_back(row_number(parts[0]), parts[1].integer(signs ? INT64_MIN : 0));
    }
    return out;
  }

  // ----- rounding

  /// sum g x >= least over 0/1 values.
  struct Dense {
    std::vector<Exact> g;
    Exact least = 0;
  };

  void combine(const Row& row, Exact times_row, Dense* sum) const {
    sum->least = plus(sum->least, times(times_row, row.least));
    for (const auto& [c, factor] : row.terms) {
      Exact& g = sum->g[static_cast<std::size_t>(c)];
      g = plus(g, times(times_row, factor));
    }
  }

  /// What Gomory's rounding makes of a combination of rows whose slacks are integers >= 0.
  Dense gomory(const JsonReader& r) {
    const auto multipliers = read_multipliers(r.at("rounded"), true);
    const Exact divisor = r.integer("divisor", 2);
    Dense sum{std::vector<Exact>(n_columns())};
    for (const auto& [row, multiplier] : multipliers) combine(rows_[row], multiplier, &sum);
    std::vector<bool> upper(n_columns());
    for (const JsonReader& item : r.items("upper")) {
      const auto c = static_cast<std::size_t>(named(item));
      require(!upper[c], "a rounding turns a column twice");
      upper[c] = true;
      sum.least = plus(sum.least, -sum.g[c]);
      sum.g[c] = -sum.g[c];
    }
    const auto remainder = [&](Exact x) { return ((x % divisor) + divisor) % divisor; };
    const Exact part = remainder(sum.least);
    require(part == r.integer("part", 1), "a rounding's remainder is another one");
    const auto rounded_factor = [&](Exact x) {
      const Exact rest = remainder(x);
      return rest <= part ? times(rest, divisor - part) : times(part, divisor - rest);
    };
    Dense out{std::vector<Exact>(n_columns()), times(part, divisor - part)};
    for (std::size_t c = 0; c < n_columns(); ++c) {
      const Exact g = sum.g[c] == 0 ? Exact{0} : rounded_factor(sum.g[c]);
      out.g[c] = upper[c] ? -g : g;
      if (upper[c]) out.least = plus(out.least, -g);
    }
    for (const auto& [row, multiplier] : multipliers) combine(rows_[row], rounded_factor(-Exact{multiplier}), &out);
    return out;
  }

  /// What it is made coarse to. Where a factor alone reaches what is asked for, a solution that takes it needs no
  /// proof; for all others, `step` times the coarse sum is at least the exact sum less what single columns fall short
  /// by.
  Row rounded(const JsonReader& r) {
    const Dense exact = gomory(r);
    const std::int64_t log2 = r.integer("step_log2", 0);
    require(log2 <= 100, "one of its numbers is too large");
    const Exact step = Exact{1} << log2;
    Row row;
    row.least = r.integer("least", INT64_MIN);
    std::vector<Exact> q(n_columns());
    Exact asked = row.least;  // of what is 1 in the factor's sense
    for (const JsonReader& item : r.items("terms")) {
      const auto parts = item.items();
      require(parts.size() == 2, "one of its terms is not [column, factor]");
      const auto c = static_cast<std::size_t>(named(parts[0]));
      require(q[c] == 0, "a rounding names a column twice");
      q[c] = parts[1].integer(INT64_MIN);
      require(q[c] != 0, "a term without a factor");
      if (q[c] < 0) asked -= q[c];
      row.terms.emplace_back(static_cast<int>(c), q[c]);
    }
    Exact reached = exact.least;
    for (std::size_t c = 0; c < n_columns(); ++c) {
      const Exact beyond = plus(times(step, q[c]), -exact.g[c]);
      const bool alone = q[c] != 0 && (q[c] < 0 ? -q[c] : q[c]) >= asked;
      if (alone ? q[c] < 0 : beyond < 0) reached = plus(reached, beyond);
    }
    require(times(step, row.least - 1) < reached, "a rounding is made to say too much");
    return row;
  }

  // ----- what may not cost more

  /// Sum of multiplier x row, in steps of 2^price_log2 units.
  Dense priced(const std::vector<std::pair<std::size_t, std::int64_t>>& multipliers) const {
    Dense sum{std::vector<Exact>(n_columns())};
    for (const auto& [row, multiplier] : multipliers) {
      combine(rows_[row], rows_[row].bytes ? Exact{multiplier} : times(multiplier, fine()), &sum);
    }
    return sum;
  }

  /// A solution that costs less than `than`:  sum (cost - taken) x  is at most what is left beyond what the rows take.
  Row cheaper(const JsonReader& r) const {
    const Dense taken = priced(read_multipliers(r.at("cheaper"), false));
    const Exact than = r.integer("than", 0);
    require(than >= than_, "a row holds for less than the certificate speaks of");
    Row row;
    row.least = plus(taken.least, -times(than - 1 - floor_, fine()));
    for (std::size_t c = 0; c < n_columns(); ++c) {
      const Exact left = plus(times(cost(static_cast<int>(c)), fine()), -taken.g[c]);
      if (left != 0) row.terms.emplace_back(static_cast<int>(c), -left);
    }
    return row;
  }

  // ----- the tree

  static bool bit(const JsonReader& r) {
    const std::int64_t value = r.integer(0);
    require(value <= 1, "one of its branches or steps is neither 0 nor 1");
    return value == 1;
  }

  Leaf read_leaf(const JsonReader& r) const {
    Leaf leaf;
    for (const JsonReader& f : r.items("fixed")) {
      const auto parts = f.items();
      require(parts.size() == 2, "one of its branches is not [column, value]");
      leaf.fixed.emplace_back(named(parts[0]), bit(parts[1]));
    }
    require(leaf.fixed.size() <= kDeepestTree, "its tree is too deep");
    if (r.has("implied")) {
      for (const JsonReader& step : r.items("implied")) {
        const auto parts = step.items();
        require(parts.size() == 1 || parts.size() == 3, "one of its steps is not [row] or [row, column, value]");
        Implied implied{row_number(parts[0]), -1, false};
        if (parts.size() == 3) implied = {implied.row, named(parts[1]), bit(parts[2])};
        leaf.implied.push_back(implied);
      }
    }
    leaf.rows = read_multipliers(r.at("rows"), false);
    return leaf;
  }

  static void require_complete(const std::vector<const Leaf*>& leaves, std::size_t depth) {
    require(!leaves.empty(), "its tree lacks a branch");
    if (leaves.size() == 1 && leaves[0]->fixed.size() == depth) return;
    std::vector<const Leaf*> zero, one;
    for (const Leaf* leaf : leaves) {
      require(depth < leaf->fixed.size(), "its tree lacks a branch");
      require(leaf->fixed[depth].first == leaves[0]->fixed[depth].first, "its tree branches on two columns at once");
      (leaf->fixed[depth].second ? one : zero).push_back(leaf);
    }
    require_complete(zero, depth + 1);
    require_complete(one, depth + 1);
  }

  enum Decided : char { kOpen, kZero, kOne };

  Exact reached(const Row& row, const std::vector<Decided>& decided) const {
    Exact most = 0;
    for (const auto& [c, factor] : row.terms) {
      const Decided d = decided[static_cast<std::size_t>(c)];
      if (d == kOne || (d == kOpen && factor > 0)) most = plus(most, factor);
    }
    return most;
  }

  /// Repeats the steps: each column takes the value without which its row cannot be met. False: no value does.
  bool follow(const std::vector<Implied>& steps, std::vector<Decided>* decided) const {
    Exact most = 0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const Implied& step = steps[i];
      const Row& row = rows_[step.row];
      if (i == 0 || step.row != steps[i - 1].row) most = reached(row, *decided);  // a row's own step leaves it as it is
      Exact own = 0;
      for (const auto& [c, factor] : row.terms) own = c == step.column ? factor : own;
      if (step.column < 0) {
        require(most < row.least, "a row that it says nothing meets can be met");
        return false;
      }
      Decided& d = (*decided)[static_cast<std::size_t>(step.column)];
      require(d == kOpen, "a step decides a column again");
      require(own != 0 && (own > 0) == step.one, "a step turns a column against its row");
      require(most - (own < 0 ? -own : own) < row.least, "a step does not follow from its row");
      d = step.one ? kOne : kZero;
    }
    return true;
  }

  /// Units, floor included.
  Exact prove(const Leaf& leaf) const {
    std::vector<Decided> decided(n_columns(), kOpen);
    for (const auto& [column, one] : leaf.fixed) {
      Decided& d = decided[static_cast<std::size_t>(column)];
      require(d == kOpen || d == (one ? kOne : kZero), "a branch decides a column in two ways");
      d = one ? kOne : kZero;
    }
    if (!follow(leaf.implied, &decided)) return than_;
    const Dense taken = priced(leaf.rows);
    Exact sum = taken.least;
    for (std::size_t c = 0; c < n_columns(); ++c) {
      const Exact left = plus(times(cost(static_cast<int>(c)), fine()), -taken.g[c]);
      if (decided[c] == kOne || (decided[c] == kOpen && left < 0)) sum = plus(sum, left);
    }
    return floor_ + (sum >> -price_log2_);
  }

  Exact fine() const { return Exact{1} << -price_log2_; }

  std::vector<int> named_;  // columns that the certificate refers to
  std::vector<Row> rows_;
  int price_log2_ = 0;
  Exact floor_ = 0, than_ = 0;  // nothing is said of what costs as much
};

}  // namespace

Exact check_cuts(const Problem& p, int unit_log2, const Json& certificate) {
  return CutsChecker(p, unit_log2).check(certificate);
}

}  // namespace neaptide::plan::certificate
