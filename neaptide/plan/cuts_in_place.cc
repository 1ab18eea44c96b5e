// Rows of a CutsModel about runs that take over the block of a value they read. A value v that only op m makes, taken
// over by some implementation of op o: in an interval in which o runs,
//
//   there after the last instant + runs of m + runs of o that leave v alone  >=  1 + wanted afterwards
//
// since each run of o that takes v over needs an instance of its own. Wanted afterwards: at the next instant, at the
// end, or by a first run which certainly comes after that of o.
#include <algorithm>

#include "neaptide/plan/cuts_model.hpp"

namespace neaptide::plan {
struct CutsModel::Taken {
  int o, v, j;
  Terms there;             // after the last instant, and what was made since
  std::int64_t n_there;    // of that what is certain
  std::vector<int> impls;  // representatives of o that may run; one without a column: it certainly runs
};

// Columns of runs by the class that leave the value alone; false: each of its runs may.
bool CutsModel::spare(int o, int j, int impl, int v, Terms* terms) {
  for (const auto& [way, c] : ways(o, j, impl)) {
    if (has(frame.impl_takes[o][way], v)) continue;
    if (c < 0) return false;
    terms->emplace_back(c, 1);
  }
  return true;
}

void CutsModel::add_in_place(int o, int j) {
  const bool last = j + 1 == n_intervals();
  if (!last && cuts[j].value == o) return;  // runs at the instant only: see after()
  std::vector<int> values;
  for (const auto& takes : frame.impl_takes[o]) values.insert(values.end(), takes.begin(), takes.end());
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  for (const int v : values) {
    const int m = frame.sole_maker(v);
    if (m < 0 || m == o || frame.back[v] != kNoLimit || !frame.here[m] || (!last && cuts[j].value == m)) continue;
    Taken t{o, v, j, {}, 0, {}};
    for (std::size_t i = 0; i < frame.stands_for[o].size(); ++i) {
      const int impl = static_cast<int>(i);
      const bool runs = column({CutsKey::kRun, o, j, impl}) >= 0;
      if (frame.stands_for[o][i] == impl && (runs || (definite(o, j) && frame.here[o]))) t.impls.push_back(impl);
    }
    if (t.impls.empty()) continue;
    bool certain = false;
    t.there = after(v, j - 1, &certain);
    t.n_there = certain ? 1 : 0;
    bool counted = false;  // the runs of m
    for (std::size_t i = 0; i < frame.impl_writes[m].size(); ++i) {
      const int run = column({CutsKey::kRun, m, j, static_cast<int>(i)});
      if (run < 0) continue;
      counted = true;
      if (has(frame.impl_writes[m][i], v)) t.there.emplace_back(run, 1);
    }
    if (definite(m, j) && !counted) ++t.n_there;
    if (t.n_there > 1) continue;
    const bool made_here = first[m][0] <= j && !frame.problem.ops[OpId(m)].once;
    if (made_here && (counted || definite(m, j))) {
      const CutsKey again{CutsKey::kAgain, m, j};
      const Units units = frame.facts.units(frame.facts.least[m]);
      t.there.emplace_back(column(again) >= 0 ? column(again) : add(again, units), 1);
    }
    const int held = last ? -1 : column({CutsKey::kHeld, v, j});
    const bool wanted = last ? frame.needed_at_end[v] != 0 : has(frame.common_reads(cuts[j]), v);
    for (const int impl : t.impls) {
      if (!wanted && held < 0) break;
      const int run = column({CutsKey::kRun, o, j, impl});
      Terms more;
      if (!spare(o, j, impl, v, &more)) continue;
      if (std::count(more.begin(), more.end(), std::pair<int, std::int64_t>(run, 1)) > 0) continue;  // always may
      if (run >= 0) more.emplace_back(run, -1);
      if (!wanted) more.emplace_back(held, -1);
      add_outlive(t, {CutsKey::kOutlive, o, v, j, impl}, std::move(more), (run < 0 ? 1 : 0) + (wanted ? 1 : 0));
    }
    add_readers(t);
  }
}

void CutsModel::add_outlive(const Taken& t, const CutsKey& key, Terms more, std::int64_t least) {
  std::map<int, std::int64_t> sum;
  for (const Terms* list : std::initializer_list<const Terms*>{&t.there, &more}) {
    for (const auto& [c, factor] : *list) sum[c] += factor;
  }
  CutsRow row{key, least - t.n_there, {}};
  std::int64_t fewest = 0;
  for (const auto& [c, factor] : sum) {
    if (factor != 0) row.terms.emplace_back(c, factor);
    fewest += std::min<std::int64_t>(factor, 0);
  }
  if (fewest < row.least) add_row(std::move(row));
}

// Of first runs: in any order only where one reads what the other makes.
bool CutsModel::surely_before(int a, int b) const {
  if (frame.scope == BoundScope::kThisOrder) return frame.facts.position[a] < frame.facts.position[b];
  const auto& reads = frame.common_reads(OpId(b));
  return a != b && std::any_of(reads.begin(), reads.end(), [&](int v) { return frame.sole_maker(v) == a; });
}

/// A first run that reads what only o makes: by every implementation (-1), or by one.
struct CutsModel::Through {
  int op, value, impl;
  Terms there;  // of the value, after the last instant
};

std::vector<CutsModel::Through> CutsModel::find_through(const Taken& t) const {
  std::vector<Through> through;
  for (const int u : frame.facts.writes[t.o]) {
    bool certain = frame.size[u] == 0 || frame.sole_maker(u) != t.o || frame.back[u] != kNoLimit;
    if (certain) continue;
    const Terms there = after(u, t.j - 1, &certain);
    for (const int w : certain ? std::vector<int>{} : readers_[u]) {
      if (w == t.o || !definite(w, t.j)) continue;
      const bool common = has(frame.common_reads(OpId(w)), u);
      if (common) through.push_back({w, u, -1, there});
      for (std::size_t i = 0; i < frame.impl_reads[w].size() && !common; ++i) {
        const bool runs = column({CutsKey::kRun, w, t.j, static_cast<int>(i)}) >= 0;
        if (runs && has(frame.impl_reads[w][i], u)) through.push_back({w, u, static_cast<int>(i), there});
      }
    }
  }
  std::stable_partition(through.begin(), through.end(), [](const Through& one) { return one.impl < 0; });
  return through;
}

// First runs of the interval that read the value after o has run: because o certainly ran first, or because they or
// something before them read what only o makes.
void CutsModel::add_readers(const Taken& t) {
  Terms spares;
  for (const int impl : t.impls) {
    if (!spare(t.o, t.j, impl, t.v, &spares)) return;
  }
  const std::vector<Through> through = find_through(t);
  for (const int r : readers_[t.v]) {
    if (r == t.o || !definite(r, t.j)) continue;
    if (definite(t.o, t.j) && surely_before(t.o, r)) {
      add_reader(t, r, {CutsKey::kOutlive, t.o, t.v, t.j, -1, r}, spares, 1);
      continue;
    }
    for (const Through& w : through) {
      if (w.op != r && !surely_before(w.op, r)) continue;
      Terms more = spares;
      more.insert(more.end(), w.there.begin(), w.there.end());
      for (int i = 0; i < static_cast<int>(frame.impl_reads[w.op].size()) && w.impl >= 0; ++i) {
        const int run = column({CutsKey::kRun, w.op, t.j, i});  // by another one it may first run without o
        if (run >= 0) more.emplace_back(run, i == w.impl ? -1 : 1);
      }
      add_reader(t, r, {CutsKey::kOutlive, t.o, t.v, t.j, w.op, r, -1, w.value, w.impl}, more, w.impl < 0 ? 1 : 0);
      if (w.impl < 0) break;  // certain: the others say less
    }
  }
}

void CutsModel::add_reader(const Taken& t, int r, CutsKey key, const Terms& more, std::int64_t least) {
  if (has(frame.common_reads(OpId(r)), t.v)) {
    add_outlive(t, key, more, least + 1);
    return;
  }
  for (std::size_t i = 0; i < frame.impl_reads[r].size(); ++i) {
    key.f = static_cast<int>(i);
    const int run = column({CutsKey::kRun, r, t.j, key.f});
    if (run < 0 || !has(frame.impl_reads[r][i], t.v)) continue;
    Terms all = more;
    all.emplace_back(run, -1);
    add_outlive(t, key, std::move(all), least);
  }
}

}  // namespace neaptide::plan
