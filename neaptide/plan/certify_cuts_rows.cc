#include "neaptide/plan/certify_cuts_rows.hpp"

#include <algorithm>

namespace neaptide::plan::certificate {

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

int CutsRows::number(const Column& column) {
  const auto [it, fresh] = numbers_.emplace(column, static_cast<int>(cost_.size()));
  if (fresh) cost_.push_back(cost_of(column));
  return it->second;
}

void CutsRows::add(const Column& column, Exact factor, Row* row) { row->terms.emplace_back(number(column), factor); }

void CutsRows::read_frame(const JsonReader& r) {
  find_device(r.string("device"));
  const Bytes budget = r.integer("budget", 0);
  require(budget >= budget_, "it is about a smaller budget");
  budget_ = budget;  // what bounds the plans of a larger one bounds these
  const std::string scope = r.string("scope");
  require(scope == "this order" || scope == "any order", "its scope is neither this order nor any order");
  any_order_ = scope == "any order";
  read_instants(r, any_order_);
  read_representatives(r);
  in_place_.assign(ops_.size(), false);
  if (!r.has("in_place")) return;
  for (const JsonReader& item : r.items("in_place")) in_place_[op_of(item)] = true;
}

// ----- what the certificate is about

void CutsRows::read_instants(const JsonReader& r, bool any_order) {
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

std::set<Value> CutsRows::impl_values(std::size_t op, std::size_t impl, bool reads) const {
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

void CutsRows::read_representatives(const JsonReader& r) {
  for (std::size_t o = 0; o < ops_.size(); ++o) {
    const std::size_t n = p_.ops[OpId(o)].impls.size();
    stands_.emplace_back();
    reads_.emplace_back();
    writes_.emplace_back();
    takes_.emplace_back();
    for (std::size_t i = 0; i < n; ++i) {
      stands_[o].push_back(static_cast<int>(i));
      reads_[o].push_back(impl_values(o, i, true));
      writes_[o].push_back(impl_values(o, i, false));
      takes_[o].push_back(reads_[o][i]);
      std::erase_if(takes_[o][i], [&](const Value& v) {
        const auto& pairs = p_.ops[OpId(o)].impls[i].in_place;
        return std::none_of(pairs.begin(), pairs.end(), [&](const InPlace& one) { return one.in.value == v.first; });
      });
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
    const auto i = static_cast<std::size_t>(impl_of(o, parts[1])), by = static_cast<std::size_t>(impl_of(o, parts[2]));
    const auto& impls = p_.ops[OpId(o)].impls;
    const bool dominated =
        ops_[o].here && (may_be_first(o, static_cast<int>(by)) || !may_be_first(o, static_cast<int>(i))) &&
        impls[by].seconds <= impls[i].seconds &&
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
CutsRows::Row CutsRows::cover_of(const JsonReader& r) {
  constexpr std::int64_t kMostWeight = 100'000;
  Row row;
  const int k = instant_of(r.at("cut"));
  const Bytes free = room_beside_common(k) - least_extra(k);
  std::vector<std::pair<std::int64_t, Bytes>> items;
  std::set<Column> seen;
  std::int64_t all = 0;
  for (const JsonReader& pair : r.items("held")) {  // a value, or an implementation beyond the leanest
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
    add(column, -weight, &row);
  }
  const std::int64_t most = r.integer("most", 0);
  std::vector<Exact> fewest(static_cast<std::size_t>(all) + 1, Exact{1} << 100);
  fewest[0] = 0;
  for (const auto& [weight, bytes] : items) {
    for (std::int64_t w = all; w >= weight; --w) fewest[w] = std::min(fewest[w], fewest[w - weight] + bytes);
  }
  for (std::int64_t w = most + 1; w <= all; ++w) require(fewest[w] > free, "what a cover rules out fits");
  row.least = -most;
  return row;
}

/// The last value is read for certain in interval `to`. Each value was held at instant `from`, or came back since, or
/// was made since by a run that read the one before it.
CutsRows::Row CutsRows::path_of(const JsonReader& r) {
  const int from = instant_of(r.at("from")), to = interval_of(r.at("to"));
  require(from < to, "a path ends before it begins");
  Row row;
  row.least = 1;
  std::optional<Value> last;
  for (const JsonReader& item : r.items("path")) {
    const Value v = known_value(item);
    const auto maker = sole_maker(v);
    require(maker.has_value() && has_held(v, from), "a path leads through a value that is there anyway");
    require(!definite(*maker) || first_[*maker].first <= from || first_[*maker].first > to,
            "a path leads through a value that is made anyway");
    require(!last || common_[*maker].count(*last) == 1, "a path leads to a value not made from the one before");
    for (int j = from + 1; j <= to; ++j) {
      if (has_back(v)) add(Column{Column::kBack, v, j}, 1, &row);
      for (std::size_t i = 0; i < stands_[*maker].size() && !last; ++i) {
        const Column run{Column::kRun, {-1, -1}, static_cast<int>(*maker), j, static_cast<int>(i)};
        if (writes_[*maker][i].count(v) && exists(run)) add(run, 1, &row);
      }
    }
    add(Column{Column::kHeld, v, from}, 1, &row);
    last = v;
  }
  require(last.has_value(), "a path leads through no value");
  if (r.has("reader")) {
    const std::size_t o = op_of(r.at("reader"));
    require(definite(o) && first_[o].first == to && common_[o].count(*last), "a path's last value need not be read");
  } else {
    require(needed_at_end(*last) && to == static_cast<int>(cuts_.size()), "a path's last value may be gone by then");
  }
  return row;
}

// ----- indices

int CutsRows::instant_of(const JsonReader& r) const {
  const std::int64_t k = r.integer(0);
  require(k < static_cast<std::int64_t>(cuts_.size()), "it names an instant that is not there");
  return static_cast<int>(k);
}
int CutsRows::interval_of(const JsonReader& r) const {  // the first one is not modelled
  const std::int64_t j = r.integer(1);
  require(j <= static_cast<std::int64_t>(cuts_.size()), "it names an interval that is not there");
  return static_cast<int>(j);
}
std::size_t CutsRows::op_of(const JsonReader& r) const {
  const auto o = static_cast<std::size_t>(r.integer(0));
  require(o < ops_.size(), "it names an op that is not there");
  return o;
}
int CutsRows::impl_of(std::size_t op, const JsonReader& r) const {
  const std::int64_t i = r.integer(0);
  require(i < static_cast<std::int64_t>(p_.ops[OpId(op)].impls.size()), "it names no implementation of its op");
  return static_cast<int>(i);
}
Value CutsRows::known_value(const JsonReader& r) const {
  const Value v = value_of(r);
  require(makers_.count(v) == 1 && size(v) > 0, "it names an unknown value, or one that takes no room");
  return v;
}

// ----- columns

bool CutsRows::one_class(std::size_t o) const {
  return std::all_of(stands_[o].begin(), stands_[o].end(), [&](int i) { return i == stands_[o][0]; });
}
bool CutsRows::has_held(const Value& v, int k) const {
  const std::size_t tau = cuts_[k];
  if (size(v) == 0 || common_[tau].count(v) || always_[tau].count(v)) return false;
  const auto& makers = makers_.at(v);
  return homed(v) || std::any_of(makers.begin(), makers.end(), [&](std::size_t m) { return first_[m].first <= k; });
}
/// Whether it takes room at the instant beside what tau itself adds.
bool CutsRows::counts_at(const Value& v, int k) const {
  return makers_.count(v) == 1 && has_held(v, k) && ops_[cuts_[k]].writes.count(v) == 0;
}
bool CutsRows::has_run(std::size_t o, int j, int impl) const {
  if (first_[o].first > j || (p_.ops[OpId(o)].once && j > first_[o].second)) return false;
  if (definite(o) && j == first_[o].first && (!ops_[o].here || one_class(o))) return false;  // certain
  return stands_[o][impl] == impl;
}

bool CutsRows::exists(const Column& c) const {
  switch (c.kind) {
    case Column::kHeld:
      return has_held(c.value, c.a);
    case Column::kRun:
      return has_run(static_cast<std::size_t>(c.a), c.b, c.c);
    case Column::kFirst:
      return p_.ops[OpId(cuts_[c.a])].impls.size() > 1 && may_be_first(cuts_[c.a], c.b);
    case Column::kBack:
      return has_back(c.value);
    case Column::kAway:
      return has_back(c.value) && copy_out(c.value) > 0;
    case Column::kCarried:
      return true;
    case Column::kBy: {
      const auto o = static_cast<std::size_t>(c.a);
      const int by = stands_[o][static_cast<std::size_t>(c.c)];
      const std::vector<int> list = ways(o, c.b, by);
      const bool at_instant = c.b < static_cast<int>(cuts_.size()) && cuts_[c.b] == o;
      return ops_[o].here && !at_instant && (has_run(o, c.b, by) || (definite(o) && first_[o].first == c.b)) &&
             list.size() > 1 && std::count(list.begin(), list.end(), c.c) == 1;
    }
    case Column::kAgain:
      return true;  // only rows in which it may be give it a meaning
  }
  return false;
}

Exact CutsRows::cost_of(const Column& c) const {
  if (c.kind == Column::kBack) return copy_in(c.value);
  if (c.kind == Column::kAway) return copy_out(c.value);
  if (c.kind == Column::kRun) {
    const auto o = static_cast<std::size_t>(c.a);
    const bool in_floor = ops_[o].necessary && c.b <= first_[o].second && may_be_first(o, c.c);
    return units(seconds(o, c.c)) - (in_floor ? units(ops_[o].least_first) : Exact{0});
  }
  if (c.kind == Column::kBy) {
    const auto o = static_cast<std::size_t>(c.a);
    const int by = stands_[o][static_cast<std::size_t>(c.c)];
    return units(seconds(o, c.c)) - units(has_run(o, c.b, by) ? seconds(o, by) : ops_[o].least_first);
  }
  if (c.kind == Column::kAgain) {
    const auto& impls = p_.ops[OpId(c.a)].impls;
    Seconds least = impls[0].seconds;
    for (const Impl& one : impls) least = std::min(least, one.seconds);
    return units(least);
  }
  if (c.kind == Column::kFirst) {
    const std::size_t tau = cuts_[c.a];
    const bool paid_by_run = c.a > 0 && !one_class(tau);
    return units(seconds(tau, c.b)) - units(paid_by_run ? seconds(tau, stands_[tau][c.b]) : ops_[tau].least_first);
  }
  return 0;
}
Seconds CutsRows::seconds(std::size_t o, int impl) const {
  return p_.ops[OpId(o)].impls[static_cast<std::size_t>(impl)].seconds;
}

// ----- rows

/// Whether a read in interval j certainly finds the value: no row may claim that it needs anything.
bool CutsRows::made_anyway(const Value& v, int j) const {
  for (const std::size_t m : makers_.at(v)) {
    const bool by_all = std::all_of(stands_[m].begin(), stands_[m].end(),
                                    [&](int by) { return writes_[m][static_cast<std::size_t>(by)].count(v) > 0; });
    if (definite(m) && first_[m].first == j && by_all) return true;
  }
  return !may_be_gone(v, j - 1);
}

void CutsRows::add_runs(const Value& v, int j, Row* row) {
  for (const std::size_t m : makers_.at(v)) {
    for (std::size_t i = 0; i < stands_[m].size(); ++i) {
      const Column run{Column::kRun, {-1, -1}, static_cast<int>(m), j, static_cast<int>(i)};
      if (writes_[m][i].count(v) && exists(run)) add(run, 1, row);
    }
  }
  if (has_back(v)) add(Column{Column::kBack, v, j}, 1, row);
}

/// held or made >= 1 (or >= the column asked for).
CutsRows::Row CutsRows::available(const Value& v, int j) {
  require(!made_anyway(v, j), "one of its rows asks for what is there anyway");
  Row row;
  still_there(v, j - 1, &row);
  add_runs(v, j, &row);
  return row;
}

Bytes CutsRows::room_beside_common(int k) const {
  Bytes left = room();
  for (const Value& v : common_[cuts_[k]]) left -= size(v);
  return left;
}
Bytes CutsRows::least_extra(int k) const {
  Bytes least = extra(cuts_[k], 0);
  for (std::size_t i = 1; i < stands_[cuts_[k]].size(); ++i) least = std::min(least, extra(cuts_[k], i));
  return least;
}

CutsRows::Row CutsRows::room_row(int k) {
  Row row;
  row.bytes = true;
  Bytes left = room_beside_common(k);
  for (const auto& [v, makers] : makers_) {
    if (counts_at(v, k)) add(Column{Column::kHeld, v, k}, -size(v), &row);
  }
  const std::size_t n = stands_[cuts_[k]].size();
  if (n == 1) left -= extra(cuts_[k], 0);
  for (std::size_t i = 0; i < n && n > 1; ++i) {
    const Column chosen{Column::kFirst, {-1, -1}, k, static_cast<int>(i)};
    if (exists(chosen)) add(chosen, -extra(cuts_[k], i), &row);
  }
  row.least = -left;
  return row;
}

/// Whether the value may lie there all through the interval that ends at instant k.
bool CutsRows::may_carry(const Value& v, int k) const {
  const auto possible = [&](int at) { return there(v, at, k) || has_held(v, at); };
  if (k == 0 || !possible(k - 1) || !possible(k)) return false;
  const auto& makers = makers_.at(v);  // a first run that is certain has no column
  return std::none_of(makers.begin(), makers.end(), [&](std::size_t m) { return definite(m) && first_[m].first == k; });
}
/// Whether the value is certain to be there after instant `at` = k - 1, or until the instant `at` = k.
bool CutsRows::there(const Value& v, int at, int k) const {
  return common_[cuts_[at]].count(v) == 1 || (at < k && always_[cuts_[at]].count(v) == 1);
}

CutsRows::Row CutsRows::carry_row(const Value& v, int k) {
  require(may_carry(v, k), "it carries a value that cannot lie there");
  Row row;
  row.least = -1;
  for (const int at : {k - 1, k}) {
    if (there(v, at, k)) {
      row.least += 1;
    } else {
      add(Column{Column::kHeld, v, at}, -1, &row);
    }
  }
  add_runs(v, k, &row);
  add(Column{Column::kCarried, v, k}, 1, &row);
  return row;
}

CutsRows::Row CutsRows::inside_row(std::size_t o, int k, int impl) {
  const int by = stands_[o][static_cast<std::size_t>(impl)];
  const std::vector<int> list = ways(o, k, by);
  const bool one = list.size() == 1;
  const Column run{one ? Column::kRun : Column::kBy, {-1, -1}, static_cast<int>(o), k, one ? by : impl};
  require(k > 0 && k < static_cast<int>(cuts_.size()) && cuts_[k] != o && ops_[o].here && has_run(o, k, by) &&
              exists(run) && std::count(list.begin(), list.end(), impl) == 1,
          "it gives room to no run");
  Row row;
  row.bytes = true;
  row.least = -room();
  const std::set<Value>& reads = reads_[o][static_cast<std::size_t>(impl)];
  Bytes working_set = beside_reads(o, impl);
  for (const Value& v : reads) working_set += size(v);
  add(run, -working_set, &row);
  for (const auto& [v, makers] : makers_) {
    const bool own = reads.count(v) || ops_[o].writes.count(v);
    if (size(v) > 0 && !own && may_carry(v, k)) add(Column{Column::kCarried, v, k}, -size(v), &row);
  }
  return row;
}

CutsRows::Row CutsRows::row_of(const JsonReader& r) {
  const auto k = r.items();
  require(k.size() >= 2, "a row has no indices");
  const std::string kind = k[0].string();
  const auto size_is = [&](std::size_t n) { require(k.size() == n, "a row has another number of indices"); };
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
      if (exists(run) && may_be_first(o, static_cast<int>(i))) add(run, 1, &row);
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
    add(run, -1, &row);
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
    add(Column{Column::kHeld, v, at}, -1, &row);
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
    for (int i = 0; i < n; ++i) {
      if (may_be_first(cuts_[at], i)) add(Column{Column::kFirst, {-1, -1}, at, i}, 1, &row);
    }
    row.least = 1;
  } else if (kind == "needs") {
    size_is(4);
    const int at = instant_of(k[1]), impl = impl_of(cuts_[at], k[2]);
    const Value v = known_value(k[3]);
    require(reads_[cuts_[at]][static_cast<std::size_t>(impl)].count(v) && has_held(v, at), "a need that is none");
    require(exists(Column{Column::kFirst, {-1, -1}, at, impl}), "a first run that is no choice");
    add(Column{Column::kHeld, v, at}, 1, &row);
    add(Column{Column::kFirst, {-1, -1}, at, impl}, -1, &row);
  } else if (kind == "does") {
    size_is(3);
    const int at = instant_of(k[1]), impl = impl_of(cuts_[at], k[2]);
    const Column run{
        Column::kRun, {-1, -1}, static_cast<int>(cuts_[at]), at, stands_[cuts_[at]][static_cast<std::size_t>(impl)]};
    require(at > 0 && exists(run) && exists(Column{Column::kFirst, {-1, -1}, at, impl}),
            "a first run that is no choice");
    add(run, 1, &row);
    add(Column{Column::kFirst, {-1, -1}, at, impl}, -1, &row);
  } else if (kind == "only") {
    const int at = instant_of(k[1]);
    const auto n = static_cast<int>(stands_[cuts_[at]].size());
    for (int i = 0; i < n; ++i) {
      const bool counts = k.size() == 2 || stands_[cuts_[at]][static_cast<std::size_t>(i)] == impl_of(cuts_[at], k[2]);
      const Column chosen{Column::kFirst, {-1, -1}, at, i};
      if (counts && exists(chosen)) add(chosen, k.size() == 2 ? -1 : 1, &row);
    }
    if (k.size() == 2) {
      row.least = -1;
    } else {
      size_is(3);
      const Column run{Column::kRun, {-1, -1}, static_cast<int>(cuts_[at]), at, impl_of(cuts_[at], k[2])};
      require(at > 0 && exists(run), "a first run that is no choice");
      add(run, -1, &row);
    }
  } else if (kind == "away") {
    size_is(3);
    const Value v = known_value(k[1]);
    const Column away{Column::kAway, v}, back{Column::kBack, v, interval_of(k[2])};
    require(exists(away), "a copy back that needs no copy away");
    add(away, 1, &row);
    add(back, -1, &row);
  } else if (kind == "carry") {
    size_is(3);
    row = carry_row(known_value(k[1]), instant_of(k[2]));
  } else if (kind == "by" && k.size() == 5) {  // no way without a run
    const std::size_t o = op_of(k[1]);
    const int j = interval_of(k[2]), impl = impl_of(o, k[3]), way = impl_of(o, k[4]);
    const Column by{Column::kBy, {-1, -1}, static_cast<int>(o), j, way};
    require(has_run(o, j, impl) && stands_[o][static_cast<std::size_t>(way)] == impl && exists(by),
            "a run has one way only, or is at an instant");
    add({Column::kRun, {-1, -1}, static_cast<int>(o), j, impl}, 1, &row);
    add(by, -1, &row);
  } else if (kind == "by") {
    size_is(4);
    const std::size_t o = op_of(k[1]);
    row = by_row(o, interval_of(k[2]), impl_of(o, k[3]));
  } else if (kind == "outlive") {
    row = outlive_row(k);
  } else if (kind == "inside") {
    size_is(4);
    const std::size_t o = op_of(k[1]);
    row = inside_row(o, instant_of(k[2]), impl_of(o, k[3]));
  } else {
    throw UserError("a row of kind '{}' is unknown", kind);
  }
  return row;
}

int CutsRows::column_of(const JsonReader& r) {
  const auto k = r.items();
  require(k.size() >= 2, "a column has no indices");
  const std::string kind = k[0].string();
  const auto size_is = [&](std::size_t n) { require(k.size() == n, "a column has another number of indices"); };
  Column c{Column::kHeld};
  if (kind == "held" || kind == "carried") {
    size_is(3);
    c = {kind == "held" ? Column::kHeld : Column::kCarried, known_value(k[1]), instant_of(k[2])};
  } else if (kind == "run" || kind == "by") {
    size_is(4);
    const std::size_t o = op_of(k[1]);
    c = {
        kind == "run" ? Column::kRun : Column::kBy, {-1, -1}, static_cast<int>(o), interval_of(k[2]), impl_of(o, k[3])};
  } else if (kind == "first") {
    size_is(3);
    const int at = instant_of(k[1]);
    c = {Column::kFirst, {-1, -1}, at, impl_of(cuts_[at], k[2])};
  } else if (kind == "again") {
    size_is(3);
    c = {Column::kAgain, {-1, -1}, static_cast<int>(op_of(k[1])), interval_of(k[2])};
  } else if (kind == "back") {
    size_is(3);
    c = {Column::kBack, known_value(k[1]), interval_of(k[2])};
  } else if (kind == "away") {
    size_is(2);
    c = {Column::kAway, known_value(k[1])};
  } else {
    throw UserError("a column of kind '{}' is unknown", kind);
  }
  require(exists(c), "it names a column that is not there");
  return number(c);
}

}  // namespace neaptide::plan::certificate
