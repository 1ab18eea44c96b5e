// In which of several ways a run is done, and values that outlive a run which may take over their block.
#include <algorithm>

#include "neaptide/plan/certify_cuts_rows.hpp"

namespace neaptide::plan::certificate {

/// Workspace, and outputs that need blocks of their own.
Bytes CutsRows::beside_reads(std::size_t o, int impl) const {
  const Impl& one = p_.ops[OpId(o)].impls[static_cast<std::size_t>(impl)];
  Bytes sum = p_.rounded(one.workspace, device_);
  for (const Value& v : writes_[o][static_cast<std::size_t>(impl)]) {
    const BufferId b(v.first);
    bool reuses = std::find(one.reads.begin(), one.reads.end(), b) != one.reads.end();
    for (const InPlace& pair : one.in_place) reuses = reuses || pair.out == b;
    if (!reuses) sum += size(v);
  }
  return sum;
}

/// Implementations that `impl` stands for, less those to which another of them is preferable in everything. Where the
/// run has no column it certainly happens, and is a first one.
std::vector<int> CutsRows::ways(std::size_t o, int j, int impl) const {
  std::vector<int> members, out;
  for (int i = 0; i < static_cast<int>(stands_[o].size()); ++i) {
    const bool may = has_run(o, j, impl) || may_be_first(o, i);
    if (may && stands_[o][static_cast<std::size_t>(i)] == impl) members.push_back(i);
  }
  const auto within = [&](const std::vector<std::set<Value>>& sets, int a, int b) {
    const auto &less = sets[static_cast<std::size_t>(a)], &more = sets[static_cast<std::size_t>(b)];
    return std::includes(more.begin(), more.end(), less.begin(), less.end());
  };
  const auto as_good = [&](int a, int b) {
    return seconds(o, a) <= seconds(o, b) && beside_reads(o, a) <= beside_reads(o, b) && within(reads_[o], a, b) &&
           (!in_place_[o] || within(takes_[o], a, b));
  };
  for (const int i : members) {
    const bool needless = std::any_of(members.begin(), members.end(), [&](int other) {
      return other != i && as_good(other, i) && (other < i || !as_good(i, other));
    });
    if (!needless) out.push_back(i);
  }
  return out;
}

/// What runs in the interval runs in one of the ways.
CutsRows::Row CutsRows::by_row(std::size_t o, int j, int impl) {
  const Column run{Column::kRun, {-1, -1}, static_cast<int>(o), j, impl};
  const bool choice = has_run(o, j, impl);
  require(choice || (definite(o) && first_[o].first == j && stands_[o][static_cast<std::size_t>(impl)] == impl),
          "ways of a run that is none");
  Row row;
  row.least = choice ? 0 : 1;
  if (choice) add(run, -1, &row);
  for (const int way : ways(o, j, impl)) {
    const Column by{Column::kBy, {-1, -1}, static_cast<int>(o), j, way};
    require(exists(by), "a run has one way only, or is at an instant");
    add(by, 1, &row);
  }
  return row;
}

/// Whether it is not certain that the value is there right after instant k.
bool CutsRows::may_be_gone(const Value& v, int k) const {
  const std::size_t tau = cuts_[k];
  if (always_[tau].count(v)) return false;
  const bool taken = std::any_of(takes_[tau].begin(), takes_[tau].end(), [&](const auto& t) { return t.count(v) > 0; });
  return taken || !common_[tau].count(v);
}

/// 1 where it is certain; else adds the columns of which one is 1 then.
std::optional<int> CutsRows::still_there(const Value& v, int k, Row* row) {
  if (!may_be_gone(v, k)) return 1;
  const std::size_t tau = cuts_[k];
  const bool common = common_[tau].count(v) > 0;
  if (has_held(v, k)) add(Column{Column::kHeld, v, k}, 1, row);
  if (!common && !has_held(v, k)) return std::nullopt;
  for (std::size_t i = 0; i < takes_[tau].size(); ++i) {
    const Column chosen{Column::kFirst, {-1, -1}, k, static_cast<int>(i)};
    if (!exists(chosen)) continue;
    if (common && !takes_[tau][i].count(v)) add(chosen, 1, row);
    if (!common && takes_[tau][i].count(v)) add(chosen, -1, row);
  }
  return std::nullopt;
}

/// Runs of the op by what `impl` stands for that do not take the value over.
void CutsRows::add_spares(std::size_t o, int j, int impl, const Value& v, Row* row) {
  const std::vector<int> list = ways(o, j, impl);
  for (const int way : list) {
    if (takes_[o][static_cast<std::size_t>(way)].count(v)) continue;
    const bool one = list.size() == 1;
    const Column by{one ? Column::kRun : Column::kBy, {-1, -1}, static_cast<int>(o), j, one ? impl : way};
    require(exists(by), "a value outlives a run that need not take it over");
    add(by, 1, row);
  }
}

/// Of two first runs of the same interval.
void CutsRows::require_earlier(std::size_t a, std::size_t b, bool same) const {
  if (a == b && same) return;
  bool earlier = false;
  if (any_order_) {
    earlier = a != b && followers(a)[b];
  } else {
    const auto at = [&](std::size_t o) { return std::find(p_.order.begin(), p_.order.end(), OpId(o)); };
    earlier = at(a) < at(b);
  }
  require(earlier, "a value outlives a run that may come later");
}

/// ["outlive", op, value, interval, implementation]: held at the interval's end, or wanted there.
/// ["outlive", op, value, interval, through, reader, implementation, what, by]: read after the op has run, which it has
/// since `through` reads what the op makes, at least by an implementation (or, through -1, since the op first runs in
/// the interval before the reader does).
CutsRows::Row CutsRows::outlive_row(const std::vector<JsonReader>& k) {
  require(k.size() == 5 || k.size() == 9, "a row has another number of indices");
  const std::size_t o = op_of(k[1]);
  const Value v = known_value(k[2]);
  const int j = interval_of(k[3]), n = static_cast<int>(cuts_.size());
  const auto maker = sole_maker(v);
  require(in_place_[o] && maker.has_value() && *maker != o && !has_back(v) && ops_[*maker].here && ops_[o].here,
          "a value that may come from elsewhere is said to outlive a run");
  const std::size_t m = *maker;
  require(j == n || (cuts_[j] != o && cuts_[j] != m), "a value outlives a run at an instant");
  const auto first_run = [&](std::size_t op) { return definite(op) && first_[op].first == j; };

  Row row;
  if (still_there(v, j - 1, &row)) row.least -= 1;
  bool counted = false;
  for (int i = 0; i < static_cast<int>(stands_[m].size()); ++i) {
    if (!has_run(m, j, i)) continue;
    counted = true;
    if (writes_[m][static_cast<std::size_t>(i)].count(v))
      add({Column::kRun, {-1, -1}, static_cast<int>(m), j, i}, 1, &row);
  }
  if (first_run(m) && !counted) row.least -= 1;
  if (first_[m].first <= j && !p_.ops[OpId(m)].once && (counted || first_run(m)))
    add({Column::kAgain, {-1, -1}, static_cast<int>(m), j}, 1, &row);

  if (k.size() == 5) {
    const int impl = impl_of(o, k[4]);
    require(stands_[o][static_cast<std::size_t>(impl)] == impl, "a value outlives a run that another stands for");
    add_spares(o, j, impl, v, &row);
    if (has_run(o, j, impl)) {
      add({Column::kRun, {-1, -1}, static_cast<int>(o), j, impl}, -1, &row);
    } else {
      require(first_run(o), "a value outlives a run that is none");
      row.least += 1;
    }
    const bool wanted = j == n ? needed_at_end(v) : common_[cuts_[j]].count(v) > 0;
    require(wanted || (j < n && has_held(v, j)), "a value outlives a run and need not");
    if (wanted) {
      row.least += 1;
    } else {
      add(Column{Column::kHeld, v, j}, -1, &row);
    }
    return row;
  }

  for (int i = 0; i < static_cast<int>(stands_[o].size()); ++i) {
    const bool may = has_run(o, j, i) || (first_run(o) && stands_[o][static_cast<std::size_t>(i)] == i);
    if (may) add_spares(o, j, i, v, &row);
  }
  const std::size_t r = op_of(k[5]);
  require(r != o && first_run(r) && ops_[r].here, "a reader that need not run");
  if (k[4].integer(-1) < 0) {
    require(first_run(o), "a value outlives a run that is none");
    require_earlier(o, r, false);
    row.least += 1;
  } else {
    const std::size_t w = op_of(k[4]);
    const Value u = known_value(k[7]);
    const auto by = sole_maker(u);
    require(w != o && first_run(w) && ops_[w].here && by == o && !has_back(u),
            "a run is needed for what it does not make");
    if (k[8].integer(-1) < 0) {
      require(common_[w].count(u) > 0, "a run is needed for what need not be read");
      row.least += 1;
    } else {
      const Column reads{Column::kRun, {-1, -1}, static_cast<int>(w), j, impl_of(w, k[8])};
      require(exists(reads) && reads_[w][static_cast<std::size_t>(reads.c)].count(u) > 0,
              "a run is needed for what is not read");
      for (int i = 0; i < static_cast<int>(stands_[w].size()); ++i) {  // first by another one: without the op
        if (has_run(w, j, i)) add({Column::kRun, {-1, -1}, static_cast<int>(w), j, i}, i == reads.c ? -1 : 1, &row);
      }
    }
    require_earlier(w, r, true);
    if (still_there(u, j - 1, &row)) row.least -= 1;
  }
  if (common_[r].count(v)) {
    row.least += 1;
    return row;
  }
  const int impl = impl_of(r, k[6]);
  const Column reading{Column::kRun, {-1, -1}, static_cast<int>(r), j, impl};
  require(exists(reading) && reads_[r][static_cast<std::size_t>(impl)].count(v), "a reader that does not read");
  add(reading, -1, &row);
  return row;
}

}  // namespace neaptide::plan::certificate
