// Several instants: the leaves of a tree over the columns of cuts_model.hpp, each with multipliers of its rows. For
// multipliers y >= 0 of rows a x >= b every 0/1 solution costs at least  sum y b + sum of min(0, cost - sum y a), so
// the multipliers prove themselves once every row is seen to hold for all plans. Columns that no row touches cost at
// least nothing and are never looked at.
#include <algorithm>
#include <compare>

#include "neaptide/plan/certify_view.hpp"

namespace neaptide::plan::certificate {
namespace {

constexpr std::size_t kDeepestTree = 5000;

struct Column {
  enum Kind : char { kHeld, kRun, kFirst, kBack, kAway, kCarried } kind;
  Value value{-1, -1};
  int a = -1, b = -1, c = -1;
  friend auto operator<=>(const Column&, const Column&) = default;
};

struct Row {
  Exact least = 0;
  std::vector<std::pair<Column, Exact>> terms;
  bool bytes = false;
};

Exact times(Exact a, Exact b) {
  Exact out = 0;
  require(!__builtin_mul_overflow(a, b, &out), "one of its numbers is too large");
  return out;
}

Exact plus(Exact a, Exact b) {
  Exact out = 0;
  require(!__builtin_add_overflow(a, b, &out), "one of its numbers is too large");
  return out;
}

class CutsChecker : public View {
 public:
  using View::View;

  Exact check(const Json& json) {
    const JsonReader r(json, "certificate");
    find_device(r.string("device"));
    const std::string scope = r.string("scope");
    require(scope == "this order" || scope == "any order", "its scope is neither this order nor any order");
    price_log2_ = static_cast<int>(r.integer("price_log2", -50));
    require(price_log2_ <= 0, "its price is not a fraction of a unit");
    read_instants(r, scope == "any order");
    read_representatives(r);
    read_covers(r);
    std::vector<Leaf> leaves;
    for (const JsonReader& leaf : r.items("leaves")) leaves.push_back(read_leaf(leaf));
    std::vector<const Leaf*> all;
    for (const Leaf& leaf : leaves) all.push_back(&leaf);
    require_complete(all, 0);
    std::optional<Exact> least;
    for (const Leaf& leaf : leaves) {
      const Exact proved = prove(leaf);
      if (!least || proved < *least) least = proved;
    }
    return floor() + *least;
  }

 private:
  struct Leaf {
    std::vector<std::pair<Column, bool>> fixed;
    std::vector<std::pair<Row, std::int64_t>> rows;
  };

  // ----- what the certificate is about

  void read_instants(const JsonReader& r, bool any_order) {
    first_.assign(ops_.size(), {0, 0});
    for (const JsonReader& name : r.items("cuts")) cuts_.push_back(find_op(name.string()));
    const int n = static_cast<int>(cuts_.size());
    require(n > 0, "it names no instant");
    for (auto& range : first_) range.second = n;
    std::vector<int> position(ops_.size());
    for (std::size_t i = 0; i < p_.order.size(); ++i) position[p_.order[i].index()] = static_cast<int>(i);
    for (int k = 0; k < n; ++k) {
      const std::size_t tau = cuts_[k];
      require(ops_[tau].necessary && ops_[tau].here, "one of its ops need not run, or need not run on its device");
      const std::vector<bool> later = any_order ? followers(tau) : std::vector<bool>{};
      const std::vector<bool> earlier = any_order ? ancestors(tau) : std::vector<bool>{};
      if (k + 1 < n) {
        const std::size_t next = cuts_[k + 1];
        require(next != tau && (any_order ? later[next] : position[tau] < position[next]),
                "its instants are out of order");
      }
      for (std::size_t o = 0; o < ops_.size(); ++o) {
        const bool after = any_order ? later[o] && o != tau : position[o] > position[tau];
        const bool before = any_order ? earlier[o] : !after;
        if (after) first_[o].first = k + 1;
        if (before) first_[o].second = std::min(first_[o].second, k);
      }
    }
  }

  std::set<Value> impl_values(std::size_t op, std::size_t impl, bool reads) const {
    std::set<Value> out;
    const Impl& one = p_.ops[OpId(op)].impls[impl];
    const auto& list = reads ? one.reads : one.writes;
    for (std::size_t k = 0; k < list.size(); ++k) {
      const int version = (reads ? versions_.read : versions_.write)[op][impl][k];
      if (version < 0 || (reads && !ops_[op].here)) continue;
      const Value v{list[k].value, version};
      if (size(v) > 0) out.insert(v);
    }
    return out;
  }

  void read_representatives(const JsonReader& r) {
    for (std::size_t o = 0; o < ops_.size(); ++o) {
      const std::size_t n = p_.ops[OpId(o)].impls.size();
      stands_.emplace_back();
      reads_.emplace_back();
      writes_.emplace_back();
      for (std::size_t i = 0; i < n; ++i) {
        stands_[o].push_back(static_cast<int>(i));
        reads_[o].push_back(impl_values(o, i, true));
        writes_[o].push_back(impl_values(o, i, false));
      }
      common_.push_back(reads_[o][0]);
      always_.push_back(writes_[o][0]);
      for (std::size_t i = 1; i < n; ++i) {
        std::erase_if(common_[o], [&](const Value& v) { return reads_[o][i].count(v) == 0; });
        std::erase_if(always_[o], [&](const Value& v) { return writes_[o][i].count(v) == 0; });
      }
    }
    for (const JsonReader& item : r.items("stands_for")) {
      const auto parts = item.items();
      require(parts.size() == 3, "a representative is not [op, implementation, implementation]");
      const std::size_t o = op_of(parts[0]);
      const auto i = static_cast<std::size_t>(impl_of(o, parts[1])),
                 by = static_cast<std::size_t>(impl_of(o, parts[2]));
      const auto& impls = p_.ops[OpId(o)].impls;
      const bool dominated =
          ops_[o].here && impls[by].seconds <= impls[i].seconds &&
          std::includes(reads_[o][i].begin(), reads_[o][i].end(), reads_[o][by].begin(), reads_[o][by].end()) &&
          std::includes(writes_[o][by].begin(), writes_[o][by].end(), writes_[o][i].begin(), writes_[o][i].end());
      require(dominated, "an implementation stands for one that it does not dominate");
      stands_[o][i] = static_cast<int>(by);
    }
    for (const auto& list : stands_) {
      for (const int i : list) require(list[i] == i, "an implementation stands for another and is stood for");
    }
  }

  /// The fewest bytes for every weight tell the most weight that fits.
  void read_covers(const JsonReader& r) {
    constexpr std::int64_t kMostWeight = 100'000;
    for (const JsonReader& item : r.items("covers")) {
      Row row;
      const int k = instant_of(item.at("cut"));
      const Bytes free = room_beside_common(k) - least_extra(k);
      std::vector<std::pair<std::int64_t, Bytes>> items;
      std::set<Column> seen;
      std::int64_t all = 0;
      for (const JsonReader& pair : item.items("held")) {  // a value, or an implementation beyond the leanest
        const auto parts = pair.items();
        require(parts.size() == 2, "a cover's item is not [what, weight]");
        const std::int64_t weight = parts[1].integer(1);
        Column column{Column::kFirst, {-1, -1}, k};
        Bytes bytes = 0;
        if (parts[0].value().is_array()) {
          column = {Column::kHeld, value_of(parts[0]), k};
          require(counts_at(column.value, k), "a cover names a value that takes no room");
          bytes = size(column.value);
        } else {
          column.b = impl_of(cuts_[k], parts[0]);
          bytes = extra(cuts_[k], static_cast<std::size_t>(column.b)) - least_extra(k);
          require(exists(column), "a cover names a choice that is none");
        }
        require(seen.insert(column).second, "a cover names something twice");
        require(weight <= kMostWeight && all + weight <= kMostWeight, "a cover weighs too much");
        all += weight;
        items.emplace_back(weight, bytes);
        row.terms.emplace_back(column, -weight);
      }
      const std::int64_t most = item.integer("most", 0);
      std::vector<Exact> fewest(static_cast<std::size_t>(all) + 1, Exact{1} << 100);
      fewest[0] = 0;
      for (const auto& [weight, bytes] : items) {
        for (std::int64_t w = all; w >= weight; --w) fewest[w] = std::min(fewest[w], fewest[w - weight] + bytes);
      }
      for (std::int64_t w = most + 1; w <= all; ++w) require(fewest[w] > free, "what a cover rules out fits");
      row.least = -most;
      covers_.push_back(std::move(row));
    }
  }

  // ----- indices

  int instant_of(const JsonReader& r) const {
    const std::int64_t k = r.integer(0);
    require(k < static_cast<std::int64_t>(cuts_.size()), "it names an instant that is not there");
    return static_cast<int>(k);
  }
  int interval_of(const JsonReader& r) const {  // the first one is not modelled
    const std::int64_t j = r.integer(1);
    require(j <= static_cast<std::int64_t>(cuts_.size()), "it names an interval that is not there");
    return static_cast<int>(j);
  }
  std::size_t op_of(const JsonReader& r) const {
    const auto o = static_cast<std::size_t>(r.integer(0));
    require(o < ops_.size(), "it names an op that is not there");
    return o;
  }
  int impl_of(std::size_t op, const JsonReader& r) const {
    const std::int64_t i = r.integer(0);
    require(i < static_cast<std::int64_t>(p_.ops[OpId(op)].impls.size()), "it names no implementation of its op");
    return static_cast<int>(i);
  }
  Value known_value(const JsonReader& r) const {
    const Value v = value_of(r);
    require(makers_.count(v) == 1 && size(v) > 0, "it names an unknown value, or one that takes no room");
    return v;
  }

  // ----- columns

  bool definite(std::size_t o) const { return ops_[o].necessary && first_[o].first == first_[o].second; }
  bool one_class(std::size_t o) const {
    return std::all_of(stands_[o].begin(), stands_[o].end(), [&](int i) { return i == stands_[o][0]; });
  }
  bool has_held(const Value& v, int k) const {
    const std::size_t tau = cuts_[k];
    if (size(v) == 0 || common_[tau].count(v) || always_[tau].count(v)) return false;
    const auto& makers = makers_.at(v);
    return homed(v) || std::any_of(makers.begin(), makers.end(), [&](std::size_t m) { return first_[m].first <= k; });
  }
  /// Whether it takes room at the instant beside what tau itself adds.
  bool counts_at(const Value& v, int k) const {
    return makers_.count(v) == 1 && has_held(v, k) && ops_[cuts_[k]].writes.count(v) == 0;
  }
  bool has_run(std::size_t o, int j, int impl) const {
    if (first_[o].first > j || (p_.ops[OpId(o)].once && j > first_[o].second)) return false;
    if (definite(o) && j == first_[o].first && (!ops_[o].here || one_class(o))) return false;  // certain
    return stands_[o][impl] == impl;
  }
  bool has_back(const Value& v) const { return size(v) > 0 && copy_in(v) != kUnlimited; }

  bool exists(const Column& c) const {
    switch (c.kind) {
      case Column::kHeld:
        return has_held(c.value, c.a);
      case Column::kRun:
        return has_run(static_cast<std::size_t>(c.a), c.b, c.c);
      case Column::kFirst:
        return p_.ops[OpId(cuts_[c.a])].impls.size() > 1;
      case Column::kBack:
        return has_back(c.value);
      case Column::kAway:
        return has_back(c.value) && copy_out(c.value) > 0;
      case Column::kCarried:
        return true;
    }
    return false;
  }

  Exact cost(const Column& c) const {
    if (c.kind == Column::kBack) return copy_in(c.value);
    if (c.kind == Column::kAway) return copy_out(c.value);
    if (c.kind == Column::kRun) {
      const auto o = static_cast<std::size_t>(c.a);
      const bool in_floor = ops_[o].necessary && c.b <= first_[o].second;
      return units(seconds(o, c.c)) - (in_floor ? units(ops_[o].least) : Exact{0});
    }
    if (c.kind == Column::kFirst) {
      const std::size_t tau = cuts_[c.a];
      const bool paid_by_run = c.a > 0 && !one_class(tau);
      return units(seconds(tau, c.b)) - units(paid_by_run ? seconds(tau, stands_[tau][c.b]) : ops_[tau].least);
    }
    return 0;
  }
  Seconds seconds(std::size_t o, int impl) const {
    return p_.ops[OpId(o)].impls[static_cast<std::size_t>(impl)].seconds;
  }

  // ----- rows

  /// Whether a read in interval j certainly finds the value: no row may claim that it needs anything.
  bool made_anyway(const Value& v, int j) const {
    for (const std::size_t m : makers_.at(v)) {
      if (definite(m) && first_[m].first == j && always_[m].count(v)) return true;
    }
    const std::size_t tau = cuts_[j - 1];
    return common_[tau].count(v) || always_[tau].count(v);
  }

  void add_runs(const Value& v, int j, Row* row) const {
    for (const std::size_t m : makers_.at(v)) {
      for (std::size_t i = 0; i < stands_[m].size(); ++i) {
        const Column run{Column::kRun, {-1, -1}, static_cast<int>(m), j, static_cast<int>(i)};
        if (writes_[m][i].count(v) && exists(run)) row->terms.emplace_back(run, 1);
      }
    }
    if (has_back(v)) row->terms.emplace_back(Column{Column::kBack, v, j}, 1);
  }

  /// held or made >= 1 (or >= the column asked for).
  Row available(const Value& v, int j) const {
    require(!made_anyway(v, j), "one of its rows asks for what is there anyway");
    Row row;
    if (has_held(v, j - 1)) row.terms.emplace_back(Column{Column::kHeld, v, j - 1}, 1);
    add_runs(v, j, &row);
    return row;
  }

  Bytes room_beside_common(int k) const {
    Bytes left = room();
    for (const Value& v : common_[cuts_[k]]) left -= size(v);
    return left;
  }
  Bytes least_extra(int k) const {
    Bytes least = extra(cuts_[k], 0);
    for (std::size_t i = 1; i < stands_[cuts_[k]].size(); ++i) least = std::min(least, extra(cuts_[k], i));
    return least;
  }

  Row room_row(int k) const {
    Row row;
    row.bytes = true;
    Bytes left = room_beside_common(k);
    for (const auto& [v, makers] : makers_) {
      if (counts_at(v, k)) row.terms.emplace_back(Column{Column::kHeld, v, k}, -size(v));
    }
    const std::size_t n = stands_[cuts_[k]].size();
    if (n == 1) left -= extra(cuts_[k], 0);
    for (std::size_t i = 0; i < n && n > 1; ++i) {
      row.terms.emplace_back(Column{Column::kFirst, {-1, -1}, k, static_cast<int>(i)}, -extra(cuts_[k], i));
    }
    row.least = -left;
    return row;
  }

  /// Whether the value may lie there all through the interval that ends at instant k.
  bool may_carry(const Value& v, int k) const {
    const auto possible = [&](int at) { return common_[cuts_[at]].count(v) == 1 || has_held(v, at); };
    return k > 0 && possible(k - 1) && possible(k);
  }

  Row carry_row(const Value& v, int k) const {
    require(may_carry(v, k), "it carries a value that cannot lie there");
    Row row;
    row.least = -1;
    for (const int at : {k - 1, k}) {
      if (common_[cuts_[at]].count(v)) {
        row.least += 1;
      } else {
        row.terms.emplace_back(Column{Column::kHeld, v, at}, -1);
      }
    }
    add_runs(v, k, &row);
    row.terms.emplace_back(Column{Column::kCarried, v, k}, 1);
    return row;
  }

  Bytes working_set(std::size_t o, int impl) const {
    std::optional<Bytes> least;
    for (std::size_t i = 0; i < stands_[o].size(); ++i) {
      if (stands_[o][i] != impl) continue;
      const Impl& one = p_.ops[OpId(o)].impls[i];
      Bytes sum = p_.rounded(one.workspace, device_);
      for (const Value& v : writes_[o][i]) {
        const BufferId b(v.first);
        bool reuses = std::find(one.reads.begin(), one.reads.end(), b) != one.reads.end();
        for (const InPlace& pair : one.in_place) reuses = reuses || pair.out == b;
        if (!reuses) sum += size(v);
      }
      if (!least || sum < *least) least = sum;
    }
    for (const Value& v : reads_[o][static_cast<std::size_t>(impl)]) *least += size(v);
    return *least;
  }

  Row inside_row(std::size_t o, int k, int impl) const {
    const Column run{Column::kRun, {-1, -1}, static_cast<int>(o), k, impl};
    require(k > 0 && k < static_cast<int>(cuts_.size()) && ops_[o].here && exists(run), "it gives room to no run");
    Row row;
    row.bytes = true;
    row.least = -room();
    row.terms.emplace_back(run, -working_set(o, impl));
    for (const auto& [v, makers] : makers_) {
      const bool own = reads_[o][static_cast<std::size_t>(impl)].count(v) || ops_[o].writes.count(v);
      if (size(v) > 0 && !own && may_carry(v, k)) row.terms.emplace_back(Column{Column::kCarried, v, k}, -size(v));
    }
    return row;
  }

  Row row_of(const JsonReader& r) const {
    const auto k = r.items();
    require(k.size() >= 2, "a row has no indices");
    const std::string kind = k[0].string();
    const auto size_is = [&](std::size_t n) { require(k.size() == n, "a row has another number of indices"); };
    if (kind == "cover") {
      size_is(2);
      const auto i = static_cast<std::size_t>(k[1].integer(0));
      require(i < covers_.size(), "it names a cover that is not there");
      return covers_[i];
    }
    if (kind == "room") {
      size_is(2);
      return room_row(instant_of(k[1]));
    }
    Row row;
    if (kind == "must") {
      size_is(2);
      const std::size_t o = op_of(k[1]);
      require(definite(o) && first_[o].first >= 1 && !one_class(o) && ops_[o].here,
              "an op that must run need not choose");
      for (std::size_t i = 0; i < stands_[o].size(); ++i) {
        const Column run{Column::kRun, {-1, -1}, static_cast<int>(o), first_[o].first, static_cast<int>(i)};
        if (exists(run)) row.terms.emplace_back(run, 1);
      }
      row.least = 1;
    } else if (kind == "read") {
      size_is(5);
      const std::size_t o = op_of(k[1]);
      const int j = interval_of(k[2]), impl = impl_of(o, k[3]);
      const Value v = known_value(k[4]);
      const Column run{Column::kRun, {-1, -1}, static_cast<int>(o), j, impl};
      require(exists(run) && reads_[o][static_cast<std::size_t>(impl)].count(v), "a read that no run makes");
      row = available(v, j);
      row.terms.emplace_back(run, -1);
    } else if (kind == "use") {
      size_is(4);
      const std::size_t o = op_of(k[3]);
      const int j = interval_of(k[2]);
      const Value v = known_value(k[1]);
      require(definite(o) && first_[o].first == j && common_[o].count(v), "a use that may be done without");
      row = available(v, j);
      row.least = 1;
    } else if (kind == "hold") {
      size_is(3);
      const Value v = known_value(k[1]);
      const int at = instant_of(k[2]);
      require(at >= 1 && has_held(v, at), "it holds what cannot be there");
      row = available(v, at);
      row.terms.emplace_back(Column{Column::kHeld, v, at}, -1);
    } else if (kind == "end") {
      size_is(2);
      const Value v = known_value(k[1]);
      require(needed_at_end(v), "an end that need not be");
      row = available(v, static_cast<int>(cuts_.size()));
      row.least = 1;
    } else if (kind == "one") {
      size_is(2);
      const int at = instant_of(k[1]);
      const auto n = static_cast<int>(stands_[cuts_[at]].size());
      require(n > 1, "an op with one implementation has no choice");
      for (int i = 0; i < n; ++i) row.terms.emplace_back(Column{Column::kFirst, {-1, -1}, at, i}, 1);
      row.least = 1;
    } else if (kind == "needs") {
      size_is(4);
      const int at = instant_of(k[1]), impl = impl_of(cuts_[at], k[2]);
      const Value v = known_value(k[3]);
      require(reads_[cuts_[at]][static_cast<std::size_t>(impl)].count(v) && has_held(v, at), "a need that is none");
      require(stands_[cuts_[at]].size() > 1, "an op with one implementation has no choice");
      row.terms = {{Column{Column::kHeld, v, at}, 1}, {Column{Column::kFirst, {-1, -1}, at, impl}, -1}};
    } else if (kind == "does") {
      size_is(3);
      const int at = instant_of(k[1]), impl = impl_of(cuts_[at], k[2]);
      const Column run{
          Column::kRun, {-1, -1}, static_cast<int>(cuts_[at]), at, stands_[cuts_[at]][static_cast<std::size_t>(impl)]};
      require(at > 0 && exists(run), "a first run that is no choice");
      row.terms = {{run, 1}, {Column{Column::kFirst, {-1, -1}, at, impl}, -1}};
    } else if (kind == "away") {
      size_is(3);
      const Value v = known_value(k[1]);
      const Column away{Column::kAway, v}, back{Column::kBack, v, interval_of(k[2])};
      require(exists(away), "a copy back that needs no copy away");
      row.terms = {{away, 1}, {back, -1}};
    } else if (kind == "carry") {
      size_is(3);
      row = carry_row(known_value(k[1]), instant_of(k[2]));
    } else if (kind == "inside") {
      size_is(4);
      const std::size_t o = op_of(k[1]);
      row = inside_row(o, instant_of(k[2]), impl_of(o, k[3]));
    } else {
      throw UserError("a row of kind '{}' is unknown", kind);
    }
    return row;
  }

  Column column_of(const JsonReader& r) const {
    const auto k = r.items();
    require(k.size() >= 2, "a column has no indices");
    const std::string kind = k[0].string();
    const auto size_is = [&](std::size_t n) { require(k.size() == n, "a column has another number of indices"); };
    Column c{Column::kHeld};
    if (kind == "held" || kind == "carried") {
      size_is(3);
      c = {kind == "held" ? Column::kHeld : Column::kCarried, known_value(k[1]), instant_of(k[2])};
    } else if (kind == "run") {
      size_is(4);
      const std::size_t o = op_of(k[1]);
      c = {Column::kRun, {-1, -1}, static_cast<int>(o), interval_of(k[2]), impl_of(o, k[3])};
    } else if (kind == "first") {
      size_is(3);
      const int at = instant_of(k[1]);
      c = {Column::kFirst, {-1, -1}, at, impl_of(cuts_[at], k[2])};
    } else if (kind == "back") {
      size_is(3);
      c = {Column::kBack, known_value(k[1]), interval_of(k[2])};
    } else if (kind == "away") {
      size_is(2);
      c = {Column::kAway, known_value(k[1])};
    } else {
      throw UserError("a column of kind '{}' is unknown", kind);
    }
    require(exists(c), "it decides about a column that is not there");
    return c;
  }

  // ----- the tree

  Leaf read_leaf(const JsonReader& r) const {
    Leaf leaf;
    for (const JsonReader& f : r.items("fixed")) {
      const auto parts = f.items();
      require(parts.size() == 2, "one of its branches is not [column, value]");
      const std::int64_t value = parts[1].integer(0);
      require(value <= 1, "one of its branches is neither 0 nor 1");
      leaf.fixed.emplace_back(column_of(parts[0]), value == 1);
    }
    require(leaf.fixed.size() <= kDeepestTree, "its tree is too deep");
    for (const JsonReader& item : r.items("rows")) {
      const auto parts = item.items();
      require(parts.size() == 2, "one of its rows is not [row, multiplier]");
      leaf.rows.emplace_back(row_of(parts[0]), parts[1].integer(0));
    }
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

  /// Units beyond the floor.
  Exact prove(const Leaf& leaf) const {
    const Exact fine = Exact{1} << -price_log2_;
    std::map<Column, Exact> taken;  // sum of multiplier x factor
    Exact sum = 0;
    for (const auto& [row, multiplier] : leaf.rows) {
      const Exact y = row.bytes ? Exact{multiplier} : times(multiplier, fine);
      sum = plus(sum, times(y, row.least));
      for (const auto& [column, factor] : row.terms) {
        Exact& t = taken[column];
        t = plus(t, times(y, factor));
      }
    }
    for (const auto& [column, value] : leaf.fixed) taken[column];
    std::map<Column, bool> fixed;
    for (const auto& [column, value] : leaf.fixed) {
      const auto [it, fresh] = fixed.emplace(column, value);
      require(fresh || it->second == value, "a branch decides a column in two ways");
    }
    for (const auto& [column, t] : taken) {
      const Exact left = plus(times(cost(column), fine), -t);
      const auto it = fixed.find(column);
      if (it != fixed.end() ? it->second : left < 0) sum = plus(sum, left);
    }
    return sum >> -price_log2_;
  }

  std::vector<std::size_t> cuts_;
  std::vector<std::pair<int, int>> first_;  // by op: intervals in which it may first run
  std::vector<std::vector<int>> stands_;    // [op][impl]
  std::vector<std::vector<std::set<Value>>> reads_, writes_;
  std::vector<std::set<Value>> common_, always_;  // by op: read, written by every implementation
  std::vector<Row> covers_;
  int price_log2_ = 0;
};

}  // namespace

Exact check_cuts(const Problem& p, int unit_log2, const Json& certificate) {
  return CutsChecker(p, unit_log2).check(certificate);
}

}  // namespace neaptide::plan::certificate
