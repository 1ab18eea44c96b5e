#include "neaptide/plan/cuts_model.hpp"

#include <algorithm>
#include <cmath>

#include "neaptide/base/errors.hpp"

namespace neaptide::plan {
CutsModel::CutsModel(const CutsFrame& f, std::vector<OpId> list, const std::set<OpId>& inside, std::set<OpId> about)
    : frame(f),
      cuts(std::move(list)),
      in_place(std::move(about)),
      first(f.first_runs(cuts)),
      floor_units(f.facts.floor_units) {
  if (floor_units > 0) cost_scale = static_cast<double>(floor_units) / 100;
  byte_scale = std::max<double>(1, static_cast<double>(*f.problem.devices[f.device].budget));
  find_needed();
  add_columns();
  const int n_ops = static_cast<int>(f.problem.ops.size());
  for (int j = 1; j < n_intervals(); ++j) {
    for (int o = 0; o < n_ops; ++o) add_run_rows(o, j);
  }
  for (int k = 0; k < static_cast<int>(cuts.size()); ++k) add_instant(k);
  for (int k = 1; k < static_cast<int>(cuts.size()); ++k) {
    if (inside.count(cuts[k])) add_inside(k);
  }
  if (!in_place.empty()) readers_.resize(f.size.size());
  for (int o = 0; o < n_ops && !in_place.empty(); ++o) {
    std::set<int> reads;
    for (const auto& some : f.impl_reads[o]) reads.insert(some.begin(), some.end());
    for (const int v : reads) readers_[v].push_back(o);
  }
  for (int j = 1; j < n_intervals(); ++j) {
    for (const OpId o : in_place) add_in_place(o.value, j);
  }
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const int away = columns[c].kind == CutsKey::kBack ? column({CutsKey::kAway, columns[c].a}) : -1;
    if (away < 0) continue;
    add_row({{CutsKey::kAway, columns[c].a, columns[c].b}, 0, {{away, 1}, {static_cast<int>(c), -1}}});
  }
  const int last = n_intervals() - 1;
  for (std::size_t v = 0; v < f.size.size(); ++v) {
    const int value = static_cast<int>(v);
    if (f.size[v] == 0 || !f.needed_at_end[v] || made_anyway(value, last)) continue;
    add_row({{CutsKey::kEnd, value}, 1, made(value, last)});
  }
}

int CutsModel::column(const CutsKey& key) const {
  const auto it = index_.find(key);
  return it == index_.end() ? -1 : it->second;
}

int CutsModel::add(const CutsKey& key, Units units) {
  const int index = static_cast<int>(columns.size());
  index_.emplace(key, index);
  columns.push_back(key);
  cost.push_back(units);
  return index;
}

void CutsModel::add_row(CutsRow row) {
  std::sort(row.terms.begin(), row.terms.end());
  rows.push_back(std::move(row));
}

// What somebody may still read, latest interval first.
void CutsModel::find_needed() {
  const std::size_t n_values = frame.size.size(), n_ops = frame.problem.ops.size();
  needed_.assign(n_intervals() + 1, std::vector<char>(n_values, 0));
  std::vector<int> open;
  for (int j = n_intervals() - 1; j >= 1; --j) {
    needed_[j] = needed_[j + 1];
    const auto need = [&](int v) {
      if (needed_[j][v]) return;
      needed_[j][v] = 1;
      open.push_back(v);
    };
    const auto need_reads = [&](std::size_t o) {
      for (const auto& reads : frame.impl_reads[o]) {
        for (const int v : reads) need(v);
      }
    };
    for (std::size_t o = 0; o < n_ops; ++o) {
      if (frame.facts.necessary[o] && first[o][0] <= j && j <= first[o][1]) need_reads(o);
    }
    for (std::size_t v = 0; v < n_values && j == n_intervals() - 1; ++v) {
      if (frame.needed_at_end[v] && frame.size[v] > 0) need(static_cast<int>(v));
    }
    for (std::size_t v = 0; v < n_values; ++v) {
      if (needed_[j][v] && needed_[j + 1][v]) open.push_back(static_cast<int>(v));  // its makers may run here too
    }
    while (!open.empty()) {
      const int v = open.back();
      open.pop_back();
      for (const OpId m : frame.facts.values[v].makers) {
        const bool may_run = first[m.index()][0] <= j && (!frame.problem.ops[m].once || j <= first[m.index()][1]);
        if (may_run) need_reads(m.index());
      }
    }
  }
}

void CutsModel::add_columns() {
  const Problem& p = frame.problem;
  const int n_values = static_cast<int>(frame.size.size());
  for (int k = 0; k < static_cast<int>(cuts.size()); ++k) {
    const std::size_t tau = cuts[k].index();
    std::vector<char> wanted = needed_[k + 1];
    for (const auto& reads : frame.impl_reads[tau]) {
      for (const int v : reads) wanted[v] = 1;
    }
    for (int v = 0; v < n_values; ++v) {
      if (!wanted[v] || frame.size[v] == 0 || has(frame.common_reads(cuts[k]), v)) continue;
      const auto& makers = frame.facts.values[v].makers;
      const bool exists =
          frame.homed[v] || std::any_of(makers.begin(), makers.end(), [&](OpId m) { return first[m.index()][0] <= k; });
      if (exists && !written_by_all(cuts[k], v)) add({CutsKey::kHeld, v, k}, 0);
    }
    const auto& impls = p.ops[cuts[k]].impls;
    const bool one_class = std::all_of(frame.stands_for[tau].begin(), frame.stands_for[tau].end(),
                                       [&](int i) { return i == frame.stands_for[tau][0]; });
    for (std::size_t i = 0; i < impls.size() && impls.size() > 1; ++i) {
      if (!frame.facts.may_be_first[tau][i]) continue;
      const int stands = frame.stands_for[tau][i];
      const Seconds base =
          k == 0 || one_class ? frame.facts.least_first[tau] : impls[static_cast<std::size_t>(stands)].seconds;
      add({CutsKey::kFirst, k, static_cast<int>(i)}, frame.facts.units(impls[i].seconds) - frame.facts.units(base));
    }
  }
  std::vector<char> goes_away(frame.size.size(), 0);
  for (int j = 1; j < n_intervals(); ++j) {
    for (int v = 0; v < n_values; ++v) {
      if (!needed_[j][v] || frame.size[v] == 0 || frame.back[v] == kNoLimit) continue;
      add({CutsKey::kBack, v, j}, frame.back[v]);
      if (frame.away[v] > 0 && !goes_away[v]) add({CutsKey::kAway, v}, frame.away[v]);
      if (frame.away[v] > 0) goes_away[v] = 1;
    }
    for (std::size_t o = 0; o < p.ops.size(); ++o) {
      const Op& op = p.ops[OpId(o)];
      if (first[o][0] > j || (op.once && j > first[o][1])) continue;
      const bool certain = definite(static_cast<int>(o), j);
      std::vector<int> classes;
      for (std::size_t i = 0; i < op.impls.size(); ++i) {
        if (frame.stands_for[o][i] == static_cast<int>(i)) classes.push_back(static_cast<int>(i));
      }
      if (certain && (classes.size() == 1 || !frame.here[o])) continue;  // certain: no decision
      const bool useful = certain || std::any_of(frame.facts.writes[o].begin(), frame.facts.writes[o].end(),
                                                 [&](int v) { return frame.size[v] > 0 && needed_[j][v]; });
      if (!useful) continue;
      const bool may_be_first = frame.facts.necessary[o] && j <= first[o][1];
      for (const int i : classes) {
        const Seconds seconds = op.impls[static_cast<std::size_t>(i)].seconds;
        const bool first_run = may_be_first && frame.facts.may_be_first[o][static_cast<std::size_t>(i)];
        const Units in_floor = first_run ? frame.facts.units(frame.facts.least_first[o]) : 0;
        add({CutsKey::kRun, static_cast<int>(o), j, i}, frame.facts.units(seconds) - in_floor);
      }
    }
  }
}

bool CutsModel::definite(int o, int j) const {
  return frame.facts.necessary[o] && first[o][0] == j && first[o][1] == j;
}

bool CutsModel::taken_by_some(OpId op, int v) const {
  const auto& takes = frame.impl_takes[op.index()];
  return std::any_of(takes.begin(), takes.end(), [&](const auto& list) { return has(list, v); });
}

// Whether the value is still there right after instant k: 1 if that is certain, else these columns.
CutsModel::Terms CutsModel::after(int v, int k, bool* certain) const {
  const OpId tau = cuts[k];
  const bool common = has(frame.common_reads(tau), v);
  *certain = written_by_all(tau, v) || (common && !taken_by_some(tau, v));
  Terms terms;
  if (*certain) return terms;
  const int held = column({CutsKey::kHeld, v, k});
  if (held >= 0) terms.emplace_back(held, 1);
  if (held < 0 && !common) return terms;
  for (std::size_t i = 0; i < frame.impl_takes[tau.index()].size(); ++i) {
    const int chosen = column({CutsKey::kFirst, k, static_cast<int>(i)});
    const bool takes = has(frame.impl_takes[tau.index()][i], v);
    if (chosen >= 0 && takes != common) terms.emplace_back(chosen, common ? 1 : -1);
  }
  return terms;
}

bool CutsModel::written_by_all(OpId tau, int v) const {
  const auto& writes = frame.impl_writes[tau.index()];
  return std::all_of(writes.begin(), writes.end(), [&](const auto& list) { return has(list, v); });
}

// Whether an op that certainly first runs in the interval may make the value then: a run that need not be a column.
bool CutsModel::first_made_in(int v, int j) const {
  const auto& makers = frame.facts.values[v].makers;
  return std::any_of(makers.begin(), makers.end(), [&](OpId m) { return definite(m.value, j); });
}

// Whether the value certainly appears in the interval, or was certainly held at the instant before it. A run counts as
// one by what stands for its implementation, which may write more.
bool CutsModel::made_anyway(int v, int j) const {
  for (const OpId m : frame.facts.values[v].makers) {
    if (!definite(m.value, j)) continue;
    const auto& stands = frame.stands_for[m.index()];
    const auto& writes = frame.impl_writes[m.index()];
    if (std::all_of(stands.begin(), stands.end(), [&](int i) { return has(writes[i], v); })) return true;
  }
  bool certain = false;
  after(v, j - 1, &certain);
  return certain;
}

// Everything that lets a run of interval j find the value.
CutsModel::Terms CutsModel::made(int v, int j) const {
  bool certain = false;
  Terms terms = after(v, j - 1, &certain);
  const auto put = [&](const CutsKey& key) {
    if (const int c = column(key); c >= 0) terms.emplace_back(c, 1);
  };
  put({CutsKey::kBack, v, j});
  for (const OpId m : frame.facts.values[v].makers) {
    const std::size_t o = m.index();
    for (std::size_t i = 0; i < frame.impl_writes[o].size(); ++i) {
      if (has(frame.impl_writes[o][i], v)) put({CutsKey::kRun, static_cast<int>(o), j, static_cast<int>(i)});
    }
  }
  return terms;
}

void CutsModel::add_run_rows(int o, int j) {
  const bool certain = definite(o, j);
  if (certain) {
    for (const int v : frame.common_reads(OpId(o))) {
      if (made_anyway(v, j)) continue;
      if (!used_.insert({v, j}).second) continue;
      add_row({{CutsKey::kUse, v, j, o}, 1, made(v, j)});
    }
  }
  CutsRow must{{CutsKey::kMust, o}, 1, {}};
  for (std::size_t i = 0; i < frame.impl_reads[o].size(); ++i) {
    const int impl = static_cast<int>(i);
    const int run = column({CutsKey::kRun, o, j, impl});
    if (run < 0) continue;
    if (frame.facts.may_be_first[o][i]) must.terms.emplace_back(run, 1);
    for (const int v : frame.impl_reads[o][i]) {
      if (made_anyway(v, j) || (certain && has(frame.common_reads(OpId(o)), v))) continue;
      CutsRow row{{CutsKey::kRead, o, j, impl, v}, 0, made(v, j)};
      row.terms.emplace_back(run, -1);
      add_row(std::move(row));
    }
  }
  if (certain && !must.terms.empty()) add_row(std::move(must));
}

void CutsModel::add_instant(int k) {
  const OpId tau = cuts[k];
  const auto& impls = frame.problem.ops[tau].impls;
  Bytes left = *frame.problem.devices[frame.device].budget - frame.fixed_bytes;
  for (const int v : frame.common_reads(tau)) left -= frame.size[v];
  CutsRow load{{CutsKey::kRoom, k}, 0, {}};
  const int n_values = static_cast<int>(frame.size.size());
  for (int v = 0; v < n_values; ++v) {
    const int held = column({CutsKey::kHeld, v, k});
    if (held < 0) continue;
    const bool written = std::any_of(frame.impl_writes[tau.index()].begin(), frame.impl_writes[tau.index()].end(),
                                     [&](const auto& list) { return has(list, v); });
    if (!written) load.terms.emplace_back(held, -frame.size[v]);
    if (k == 0 || made_anyway(v, k)) continue;
    CutsRow hold{{CutsKey::kHold, v, k}, 0, made(v, k)};
    hold.terms.emplace_back(held, -1);
    add_row(std::move(hold));
  }
  const Bytes least_extra = frame.least_extra(tau);
  room.push_back(left - least_extra);
  if (impls.size() == 1) left -= least_extra;
  CutsRow one{{CutsKey::kOne, k}, 1, {}};
  for (std::size_t i = 0; i < impls.size() && impls.size() > 1; ++i) {
    const int impl = static_cast<int>(i);
    const int chosen = column({CutsKey::kFirst, k, impl});
    if (chosen < 0) continue;
    one.terms.emplace_back(chosen, 1);
    load.terms.emplace_back(chosen, -frame.extra(tau, impl));
    for (const int v : frame.impl_reads[tau.index()][i]) {
      const int held = column({CutsKey::kHeld, v, k});
      if (held >= 0) add_row({{CutsKey::kNeeds, k, impl, v}, 0, {{held, 1}, {chosen, -1}}});
    }
    const int run = k == 0 ? -1 : column({CutsKey::kRun, tau.value, k, frame.stands_for[tau.index()][i]});
    if (run >= 0) add_row({{CutsKey::kDoes, k, impl}, 0, {{run, 1}, {chosen, -1}}});
  }
  for (std::size_t i = 0; i < impls.size() && impls.size() > 1; ++i) {
    const int run = k == 0 ? -1 : column({CutsKey::kRun, tau.value, k, static_cast<int>(i)});
    if (run < 0) continue;
    CutsRow only{{CutsKey::kOnly, k, static_cast<int>(i)}, 0, {{run, -1}}};
    for (std::size_t c = 0; c < impls.size(); ++c) {
      const int chosen = column({CutsKey::kFirst, k, static_cast<int>(c)});
      if (chosen >= 0 && frame.stands_for[tau.index()][c] == static_cast<int>(i)) only.terms.emplace_back(chosen, 1);
    }
    add_row(std::move(only));
  }
  if (one.terms.size() > 1) {
    CutsRow only{{CutsKey::kOnly, k}, -1, one.terms};
    for (auto& [c, factor] : only.terms) factor = -1;
    add_row(std::move(only));
  }
  if (!one.terms.empty()) add_row(std::move(one));
  load.least = -left;
  add_row(std::move(load));
}

// The runs of the interval that ends at instant k, beside what lies there all through it.
void CutsModel::add_inside(int k) {
  std::vector<std::pair<int, int>> carried;  // value, column
  for (int v = 0; v < static_cast<int>(frame.size.size()); ++v) {
    if (frame.size[v] == 0) continue;
    const auto held = [&](int at) { return column({CutsKey::kHeld, v, at}); };
    const auto certain = [&](int at) {
      return has(frame.common_reads(cuts[at]), v) || (at == k - 1 && written_by_all(cuts[at], v));
    };
    if ((held(k - 1) < 0 && !certain(k - 1)) || (held(k) < 0 && !certain(k)) || first_made_in(v, k)) continue;
    CutsRow row{{CutsKey::kCarry, v, k}, -1, {}};
    for (const int at : {k - 1, k}) {
      if (certain(at)) {
        ++row.least;
      } else {
        row.terms.emplace_back(held(at), -1);
      }
    }
    for (const auto& [c, factor] : made(v, k)) {
      if (columns[c].kind == CutsKey::kRun || columns[c].kind == CutsKey::kBack) row.terms.emplace_back(c, 1);
    }
    const int c = add({CutsKey::kCarried, v, k}, 0);
    row.terms.emplace_back(c, 1);
    add_row(std::move(row));
    carried.emplace_back(v, c);
  }
  for (int o = 0; o < static_cast<int>(frame.problem.ops.size()); ++o) {
    if (!frame.here[o] || o == cuts[k].value) continue;
    for (int i = 0; i < static_cast<int>(frame.impl_reads[o].size()); ++i) {
      const int run = column({CutsKey::kRun, o, k, i});
      if (run < 0) continue;
      for (const auto& [way, c] : ways(o, k, i)) add_inside_row(o, k, way, c, carried);
    }
  }
}

// In which ways the class runs in the interval, and the columns that say so: its own where there is but one.
std::vector<std::pair<int, int>> CutsModel::ways(int o, int j, int impl) {
  const int run = column({CutsKey::kRun, o, j, impl});
  const bool takes_count = in_place.count(OpId(o)) > 0;
  const std::vector<int> list = frame.ways(OpId(o), impl, run < 0, takes_count);
  if (list.size() == 1) return {{list[0], run}};
  const auto& impls = frame.problem.ops[OpId(o)].impls;
  const auto units = [&](int i) { return frame.facts.units(impls[static_cast<std::size_t>(i)].seconds); };
  const Units base = run < 0 ? frame.facts.units(frame.facts.least_first[o]) : units(impl);
  std::vector<std::pair<int, int>> out;
  CutsRow by{{CutsKey::kBy, o, j, impl}, run < 0 ? 1 : 0, {}};
  if (run >= 0) by.terms.emplace_back(run, -1);
  for (const int way : list) {
    int c = column({CutsKey::kBy, o, j, way});
    const bool known = c >= 0;
    if (!known) c = add({CutsKey::kBy, o, j, way}, units(way) - base);
    out.emplace_back(way, c);
    if (known) continue;
    by.terms.emplace_back(c, 1);
    if (run >= 0) add_row({{CutsKey::kBy, o, j, impl, way}, 0, {{run, 1}, {c, -1}}});
  }
  if (by.terms.size() >= list.size()) add_row(std::move(by));
  return out;
}

void CutsModel::add_inside_row(int o, int k, int impl, int column, const std::vector<std::pair<int, int>>& carried) {
  const Bytes left = *frame.problem.devices[frame.device].budget - frame.fixed_bytes;
  CutsRow row{{CutsKey::kInside, o, k, impl}, -left, {{column, -frame.working_set(OpId(o), impl)}}};
  for (const auto& [v, c] : carried) {
    const auto& writes = frame.facts.writes[o];
    const bool own = has(frame.impl_reads[o][impl], v) || std::find(writes.begin(), writes.end(), v) != writes.end();
    if (!own) row.terms.emplace_back(c, -frame.size[v]);
  }
  add_row(std::move(row));
}

milp::Model CutsModel::relaxation() const {
  milp::Model m;
  m.name = "cuts";
  for (std::size_t c = 0; c < columns.size(); ++c) m.add({}, 0, 1, static_cast<double>(cost[c]) / cost_scale, false);
  for (const CutsRow& row : rows) {
    const double scale = row.in_bytes() ? byte_scale : 1;
    std::vector<milp::Term> terms;
    for (const auto& [c, factor] : row.terms) terms.push_back({milp::Var{c}, static_cast<double>(factor) / scale});
    m.rows.push_back({{}, static_cast<double>(row.least) / scale, milp::kInfinity, std::move(terms)});
  }
  return m;
}

}  // namespace neaptide::plan
