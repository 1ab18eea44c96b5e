#include "neaptide/plan/staged.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "neaptide/base/errors.hpp"
#include "neaptide/milp/solve.hpp"
#include "neaptide/plan/forced.hpp"
#include "neaptide/plan/simulate.hpp"

namespace neaptide::plan {
namespace {

constexpr double kLargestBudget = 1e6;  // budgets are scaled down to this, so that the solver's tolerance is below a
                                        // byte in a million
using milp::kInfinity;
using milp::Term;
using milp::Var;

bool has(const std::vector<BufferId>& list, BufferId b) { return std::find(list.begin(), list.end(), b) != list.end(); }

}  // namespace

void require_solver(std::string_view planner) {
  const std::string why = milp::why_not_built();
  if (!why.empty()) throw UserError("planner '{}' is not built, because {}", planner, why);
}

Staged::Staged(const Problem& problem, const StagedRules& rules, int turn)
    : problem_(problem), rules_(rules), turn_(turn), choice_(first_choice(problem)), versions_(versions(problem)) {
  model_.name = problem.name.empty() ? "staged" : problem.name;
  number_ops();
  list_values();
  find_until();
  Bytes largest = 1;
  for (const Device& d : problem.devices) largest = std::max(largest, d.budget.value_or(0));
  scale_ = std::min(1.0, kLargestBudget / static_cast<double>(largest));
  for (std::size_t d = 0; d < problem.devices.size(); ++d) {
    Bytes homes = 0;
    for (std::size_t b = 0; b < problem.buffers.size(); ++b) {
      if (is_fixed_home(BufferId(b), DeviceId(d))) homes += problem.size_on(BufferId(b), DeviceId(d));
    }
    const auto budget = problem.devices[DeviceId(d)].budget;
    limit_.push_back(budget ? scaled(*budget - homes) : kInfinity);
  }
  alive_.resize(values_.size() * problem.devices.size());
  level_.resize(problem.devices.size());
  for (std::size_t v = 0; v < values_.size(); ++v) {
    const Buffer& b = problem.buffers[values_[v].buffer];
    if (!b.home) continue;
    Alive& at_home = alive(v, *b.home);
    at_home.always = is_fixed_home(values_[v].buffer, *b.home);
    if (!at_home.always && values_[v].version == 0) {
      at_home.var = model_.add("home[" + b.name + "]", 1, 1, 0, false);
      change_level(0, -1, *b.home, {{*at_home.var, scaled(problem.size_on(values_[v].buffer, *b.home))}});
    }
  }
  for (int t = 0; t < static_cast<int>(ops_.size()); ++t) add_stage(t);
  add_end();
}

void Staged::number_ops() {
  const IdVector<OpTag, bool> needed = necessary_ops(problem_);
  const bool one_device = !rules_.copies_for_use && !rules_.paging;
  std::optional<DeviceId> only;
  for (OpId op : problem_.order) {
    if (choice_[op] >= 0 && !only) only = problem_.ops[op].impls[static_cast<std::size_t>(choice_[op])].device;
  }
  for (OpId op : problem_.order) {
    std::vector<std::size_t> allowed;
    for (std::size_t k = 0; k < problem_.ops[op].impls.size(); ++k) {
      const bool chosen = choice_[op] == static_cast<int>(k);
      const bool here = !one_device || problem_.ops[op].impls[k].device == *only;
      const bool fair = !leaves_home_stale(op, k) && !takes_home_over(op, k);
      if ((rules_.implementations ? here : chosen) && fair) allowed.push_back(k);
    }
    if (allowed.empty()) {
      if (needed[op])
        throw UserError("op '{}' of '{}' has no implementation that these rules allow", problem_.ops[op].name,
                        problem_.name);
      continue;
    }
    ops_.push_back(op);
    must_.push_back(rules_.implementations ? needed[op] : true);
    impls_.push_back(std::move(allowed));
  }
}

/// Without paging, what is at home stays there: nothing is written over it.
bool Staged::takes_home_over(OpId op, std::size_t k) const {
  const Impl& i = problem_.ops[op].impls[k];
  return std::any_of(i.in_place.begin(), i.in_place.end(), [&](const InPlace& pair) {
    return is_fixed_home(pair.in, i.device) || is_fixed_home(pair.out, i.device);
  });
}

/// The rules of the papers know no weights: an update runs where its weight is at home.
bool Staged::leaves_home_stale(OpId op, std::size_t k) const {
  const Impl& i = problem_.ops[op].impls[k];
  for (std::size_t j = 0; j < i.writes.size(); ++j) {
    const auto home = problem_.buffers[i.writes[j]].home;
    if (home && *home != i.device && versions_.write[op.index()][k][j] > 0) return true;
  }
  return false;
}

bool Staged::is_fixed_home(BufferId b, DeviceId d) const {
  return problem_.buffers[b].home == d && !(rules_.paging && problem_.buffers[b].pageable);
}

int Staged::value_of(BufferId b, int version) const {
  return value_index_[b.index()][static_cast<std::size_t>(std::max(0, version))];
}

void Staged::add_value_event(BufferId b, int version, int position) {
  std::vector<int>& index = value_index_[b.index()];
  const auto at = static_cast<std::size_t>(std::max(0, version));
  if (index.size() <= at) index.resize(at + 1, -1);
  if (index[at] < 0) {
    index[at] = static_cast<int>(values_.size());
    values_.push_back({.buffer = b, .version = static_cast<int>(at), .until = -1, .events = {}});
  }
  std::vector<int>& events = values_[static_cast<std::size_t>(index[at])].events;
  if (events.empty() || events.back() != position) events.push_back(position);
}

void Staged::list_values() {
  const int n = static_cast<int>(ops_.size());
  value_index_.resize(problem_.buffers.size());
  overwritten_.resize(problem_.buffers.size());
  for (int p = 0; p < n; ++p) {
    const auto op = ops_[static_cast<std::size_t>(p)].index();
    for (std::size_t k : impls_[static_cast<std::size_t>(p)]) {
      const Impl& i = impl(p, k);
      for (std::size_t j = 0; j < i.reads.size(); ++j) add_value_event(i.reads[j], versions_.read[op][k][j], p);
      for (std::size_t j = 0; j < i.writes.size(); ++j) add_value_event(i.writes[j], versions_.write[op][k][j], p);
    }
  }
  for (std::size_t b = 0; b < problem_.buffers.size(); ++b) {
    const BufferId id(b);
    if (problem_.buffers[id].keep && value_index_[b].empty() && problem_.buffers[id].home) {
      value_index_[b] = {static_cast<int>(values_.size())};
      values_.push_back({.buffer = id, .version = 0, .until = n, .events = {}});
    }
    overwritten_[b].assign(value_index_[b].size() + 1, n);
  }
  for (int p = n - 1; p >= 0; --p) {
    const OpId op = ops_[static_cast<std::size_t>(p)];
    if (!problem_.ops[op].once) continue;
    const std::size_t k = impls_[static_cast<std::size_t>(p)].front();
    const Impl& i = impl(p, k);
    for (std::size_t j = 0; j < i.writes.size(); ++j) {
      const int version = versions_.write[op.index()][k][j];
      if (version > 0) overwritten_[i.writes[j].index()][static_cast<std::size_t>(version) - 1] = p;
    }
  }
}

/// Backwards: an op that may run again may want its inputs as late as its outputs are wanted.
void Staged::find_until() {
  for (int p = static_cast<int>(ops_.size()) - 1; p >= 0; --p) {
    const OpId op = ops_[static_cast<std::size_t>(p)];
    int late = p;
    const bool again = !problem_.ops[op].once && !(rules_.backward_once && p > turn_);
    for (std::size_t k : impls_[static_cast<std::size_t>(p)]) {
      for (std::size_t j = 0; again && j < impl(p, k).writes.size(); ++j) {
        const int v = value_of(impl(p, k).writes[j], versions_.write[op.index()][k][j]);
        late = std::max(late, values_[static_cast<std::size_t>(v)].until);
      }
    }
    for (std::size_t k : impls_[static_cast<std::size_t>(p)]) {
      for (std::size_t j = 0; j < impl(p, k).reads.size(); ++j) {
        const int v = value_of(impl(p, k).reads[j], versions_.read[op.index()][k][j]);
        values_[static_cast<std::size_t>(v)].until = std::max(values_[static_cast<std::size_t>(v)].until, late);
      }
    }
  }
  for (Value& v : values_) {
    const bool last = versions_.last[v.buffer] == v.version;
    if (problem_.buffers[v.buffer].keep && last) v.until = static_cast<int>(ops_.size());
    v.until = std::min(v.until, overwritten_[v.buffer.index()][static_cast<std::size_t>(v.version)]);
  }
}

/// Whether the rules let op `position` run in this stage. Nothing is recomputed from, or into, an overwritten buffer.
bool Staged::may_run(int stage, int position, std::size_t k) const {
  const OpId op = ops_[static_cast<std::size_t>(position)];
  if (position == stage) return true;
  if (problem_.ops[op].once) return false;
  if (rules_.backward_once && (position > turn_ || stage <= turn_)) return false;
  const Impl& i = impl(position, k);
  for (std::size_t j = 0; j < i.reads.size(); ++j) {
    const auto version = static_cast<std::size_t>(std::max(0, versions_.read[op.index()][k][j]));
    if (overwritten_[i.reads[j].index()][version] < stage) return false;
  }
  for (std::size_t j = 0; j < i.writes.size(); ++j) {
    const auto version = static_cast<std::size_t>(versions_.write[op.index()][k][j]);
    if (overwritten_[i.writes[j].index()][version] < stage) return false;
  }
  return true;
}

bool Staged::is_wanted_after(const Value& value, int stage, int position) const {
  if (value.until > stage) return true;
  if (value.until < stage) return false;
  return !value.events.empty() && value.events.back() > position;
}

void Staged::add_stage(int stage) {
  if (rules_.paging && stage > 0) add_page_copies(stage);
  for (int p = 0; p <= stage; ++p) add_position(stage, p);
  ends_.emplace_back();
  for (std::size_t v = 0; v < values_.size(); ++v) {
    for (std::size_t d = 0; d < problem_.devices.size(); ++d) {
      const Alive& a = alive(v, DeviceId(d));
      if (!a.var) continue;
      model_.at(*a.var).integer = true;
      ends_.back().emplace_back(static_cast<int>(v), *a.var);
    }
  }
}

/// bytes alive after = before + change; the variable's upper bound is the budget.
void Staged::change_level(int stage, int position, DeviceId d, std::vector<Term> change) {
  if (change.empty() || std::isinf(limit_[d.index()])) return;
  const std::string name = fmt::format("level[{},{},{}]", stage, position, problem_.devices[d].name);
  const Var now = model_.add(name, 0, std::max(0.0, limit_[d.index()]), 0, false);
  change.push_back({now, -1});
  if (level_[d.index()]) change.push_back({*level_[d.index()], 1});
  levels_.push_back({now, model_.rows.size()});
  model_.add_row(name, 0, 0, std::move(change));
  level_[d.index()] = now;
}

void Staged::note_alive(int stage, int position, std::size_t value, DeviceId d, Var var) {
  instants_.push_back({stage, position, value, d, var});
}

/// C[t,v,from,to] <= A[t-1,v,last,from]; A[t,v,0,to] <= A[t-1,v,last,to] + the copies to it.
void Staged::add_page_copies(int stage) {
  std::vector<Alive> next = alive_;
  std::vector<std::vector<Term>> change(problem_.devices.size());
  for (std::size_t v = 0; v < values_.size(); ++v) {
    const BufferId b = values_[v].buffer;
    if (!is_wanted_after(values_[v], stage, -1)) continue;
    for (std::size_t e = 0; e < problem_.devices.size(); ++e) {
      const DeviceId to(e);
      if (alive(v, to).always) continue;
      std::vector<Term> sources;
      for (std::size_t d = 0; d < problem_.devices.size(); ++d) {
        const DeviceId from(d);
        const Alive& source = alive(v, from);
        if (from == to || (!source.var && !source.always) || !copy_seconds(problem_, b, from, to)) continue;
        const Var c = model_.add_binary(fmt::format("page[{},{},{},{}]", stage, problem_.buffers[b].name,
                                                    problem_.devices[from].name, problem_.devices[to].name),
                                        copy_seconds(problem_, b, from, to).value_or(0));
        if (source.var) model_.add_row(model_.at(c).name, -kInfinity, 0, {{c, 1}, {*source.var, -1}});
        sources.push_back({c, -1});
        moves_.push_back({stage, -1, b, from, to, c});
      }
      if (sources.empty()) continue;
      const Var a =
          model_.add(fmt::format("alive[{},{},start,{}]", stage, problem_.buffers[b].name, problem_.devices[to].name),
                     0, 1, 0, false);
      sources.push_back({a, 1});
      if (alive(v, to).var) sources.push_back({*alive(v, to).var, -1});
      model_.add_row(model_.at(a).name, -kInfinity, 0, std::move(sources));
      const double bytes = scaled(problem_.size_on(b, to));
      change[e].push_back({a, bytes});
      if (alive(v, to).var) change[e].push_back({*alive(v, to).var, -bytes});
      note_alive(stage, -1, v, to, a);
      next[v * problem_.devices.size() + e].var = a;
    }
  }
  alive_ = std::move(next);
  for (std::size_t d = 0; d < problem_.devices.size(); ++d) change_level(stage, -1, DeviceId(d), std::move(change[d]));
}

void Staged::add_position(int stage, int position) {
  const OpId op = ops_[static_cast<std::size_t>(position)];
  std::vector<std::pair<std::size_t, Var>> runs;
  std::vector<Term> sum;
  for (std::size_t k : impls_[static_cast<std::size_t>(position)]) {
    if (!may_run(stage, position, k)) continue;
    const Impl& i = impl(position, k);
    const Var r = model_.add_binary(fmt::format("run[{},{},{}]", stage, problem_.ops[op].name, i.name), i.seconds);
    runs.emplace_back(k, r);
    runs_.push_back({stage, position, static_cast<int>(k), r});
    sum.push_back({r, 1});
  }
  if (runs.empty()) return add_afterwards(stage, position, runs);
  const bool first = position == stage && must_[static_cast<std::size_t>(position)];
  if (first || sum.size() > 1)
    model_.add_row(fmt::format("one[{},{}]", stage, problem_.ops[op].name), first ? 1 : -kInfinity, 1, std::move(sum));
  std::vector<std::vector<Term>> extra(problem_.devices.size());
  add_reads(stage, position, runs, extra);
  add_loads(stage, position, runs, extra);
  add_afterwards(stage, position, runs);
}

/// R[t,p,k] <= A before p (on its device, or a copy for this use), for all that k reads.
void Staged::add_reads(int stage, int position, const std::vector<std::pair<std::size_t, Var>>& runs,
                       std::vector<std::vector<Term>>& extra) {
  const OpId op = ops_[static_cast<std::size_t>(position)];
  std::map<std::pair<int, DeviceId>, std::vector<Term>> wanted;  // (value, device): the runs that read it there
  for (const auto& [k, r] : runs) {
    const Impl& i = impl(position, k);
    for (std::size_t j = 0; j < i.reads.size(); ++j)
      wanted[{value_of(i.reads[j], versions_.read[op.index()][k][j]), i.device}].push_back({r, 1});
  }
  for (auto& [key, terms] : wanted) {
    const auto v = static_cast<std::size_t>(key.first);
    const BufferId b = values_[v].buffer;
    const DeviceId d = key.second;
    if (alive(v, d).always) continue;
    if (alive(v, d).var) terms.push_back({*alive(v, d).var, -1});
    for (std::size_t e = 0; e < problem_.devices.size() && rules_.copies_for_use; ++e) {
      const DeviceId from(e);
      const Alive& source = alive(v, from);
      if (from == d || (!source.var && !source.always) || !copy_seconds(problem_, b, from, d)) continue;
      const Var c =
          model_.add_binary(fmt::format("copy[{},{},{},{},{}]", stage, problem_.ops[op].name, problem_.buffers[b].name,
                                        problem_.devices[from].name, problem_.devices[d].name),
                            copy_seconds(problem_, b, from, d).value_or(0));
      if (source.var) model_.add_row(model_.at(c).name, -kInfinity, 0, {{c, 1}, {*source.var, -1}});
      terms.push_back({c, -1});
      extra[d.index()].push_back({c, scaled(problem_.size_on(b, d))});
      moves_.push_back({stage, position, b, from, d, c});
    }
    model_.add_row(fmt::format("read[{},{},{},{}]", stage, problem_.ops[op].name, problem_.buffers[b].name,
                               problem_.devices[d].name),
                   -kInfinity, 0, std::move(terms));
  }
}

/// What a run adds while it runs: results that have no block yet, and the workspace.
double Staged::fresh_bytes(int position, std::size_t k) const {
  const Impl& i = impl(position, k);
  const auto op = ops_[static_cast<std::size_t>(position)].index();
  double sum = scaled(problem_.rounded(i.workspace, i.device));
  for (std::size_t j = 0; j < i.writes.size(); ++j) {
    const BufferId b = i.writes[j];
    const bool in_place =
        std::any_of(i.in_place.begin(), i.in_place.end(), [&](const InPlace& pair) { return pair.out == b; });
    const bool over_itself = versions_.write[op][k][j] > 0 && has(i.reads, b);
    if (!in_place && !over_itself && !is_fixed_home(b, i.device)) sum += scaled(problem_.size_on(b, i.device));
  }
  return sum;
}

void Staged::add_loads(int stage, int position, const std::vector<std::pair<std::size_t, Var>>& runs,
                       const std::vector<std::vector<Term>>& extra) {
  for (std::size_t d = 0; d < problem_.devices.size(); ++d) {
    if (std::isinf(limit_[d])) continue;
    std::vector<Term> terms = extra[d];
    for (const auto& [k, r] : runs) {
      if (impl(position, k).device == DeviceId(d)) terms.push_back({r, fresh_bytes(position, k)});
    }
    if (terms.empty()) continue;
    if (level_[d]) terms.push_back({*level_[d], 1});
    model_.add_row(fmt::format("load[{},{},{}]", stage, position, problem_.devices[DeviceId(d)].name), -kInfinity,
                   limit_[d], std::move(terms));
  }
}

/// A after p <= A before p + the runs that write v; an input taken in place is gone, and its output was not there.
void Staged::add_afterwards(int stage, int position, const std::vector<std::pair<std::size_t, Var>>& runs) {
  const OpId op = ops_[static_cast<std::size_t>(position)];
  std::map<std::pair<int, DeviceId>, std::vector<Term>> made, taken;
  std::set<int> touched;
  for (std::size_t k : impls_[static_cast<std::size_t>(position)]) {
    const Impl& i = impl(position, k);
    for (std::size_t j = 0; j < i.reads.size(); ++j)
      touched.insert(value_of(i.reads[j], versions_.read[op.index()][k][j]));
    for (std::size_t j = 0; j < i.writes.size(); ++j)
      touched.insert(value_of(i.writes[j], versions_.write[op.index()][k][j]));
  }
  for (const auto& [k, r] : runs) {
    const Impl& i = impl(position, k);
    for (std::size_t j = 0; j < i.writes.size(); ++j)
      made[{value_of(i.writes[j], versions_.write[op.index()][k][j]), i.device}].push_back({r, -1});
    for (const InPlace& pair : i.in_place) {
      const auto in = std::find(i.reads.begin(), i.reads.end(), pair.in) - i.reads.begin();
      const auto out = std::find(i.writes.begin(), i.writes.end(), pair.out) - i.writes.begin();
      taken[{value_of(pair.in, versions_.read[op.index()][k][static_cast<std::size_t>(in)]), i.device}].push_back(
          {r, 1});
      const int o = value_of(pair.out, versions_.write[op.index()][k][static_cast<std::size_t>(out)]);
      const Alive& before = alive(static_cast<std::size_t>(o), i.device);
      if (before.var)
        model_.add_row(fmt::format("in_place[{},{}]", stage, problem_.ops[op].name), -kInfinity, 1,
                       {{*before.var, 1}, {r, 1}});
    }
  }
  std::vector<std::vector<Term>> change(problem_.devices.size());
  for (int v : touched) {
    for (std::size_t d = 0; d < problem_.devices.size(); ++d) {
      Alive& a = alive(static_cast<std::size_t>(v), DeviceId(d));
      const auto writers = made.find({v, DeviceId(d)});
      if (a.always || (!a.var && writers == made.end())) continue;
      const Value& value = values_[static_cast<std::size_t>(v)];
      const double bytes = scaled(problem_.size_on(value.buffer, DeviceId(d)));
      if (a.var) change[d].push_back({*a.var, -bytes});
      if (!is_wanted_after(value, stage, position)) {
        a.var.reset();
        continue;
      }
      if (runs.empty()) {
        if (a.var) change[d].pop_back();
        continue;
      }
      const Var now = model_.add(fmt::format("alive[{},{},{},{}]", stage, problem_.buffers[value.buffer].name, position,
                                             problem_.devices[DeviceId(d)].name),
                                 0, 1, 0, false);
      std::vector<Term> terms{{now, 1}};
      if (a.var) terms.push_back({*a.var, -1});
      if (writers != made.end()) terms.insert(terms.end(), writers->second.begin(), writers->second.end());
      model_.add_row(model_.at(now).name, -kInfinity, 0, std::move(terms));
      const auto takers = taken.find({v, DeviceId(d)});
      if (takers != taken.end()) {
        std::vector<Term> gone = takers->second;
        gone.push_back({now, 1});
        model_.add_row("taken" + model_.at(now).name, -kInfinity, 1, std::move(gone));
      }
      change[d].push_back({now, bytes});
      note_alive(stage, position, static_cast<std::size_t>(v), DeviceId(d), now);
      a.var = now;
    }
  }
  for (std::size_t d = 0; d < problem_.devices.size(); ++d)
    change_level(stage, position, DeviceId(d), std::move(change[d]));
}

/// Every `keep` buffer is there in its last version: on its home, or anywhere.
void Staged::add_end() {
  for (std::size_t i = 0; i < problem_.buffers.size(); ++i) {
    const BufferId b(i);
    if (!problem_.buffers[b].keep) continue;
    const auto v = static_cast<std::size_t>(value_of(b, versions_.last[b]));
    std::vector<Term> terms;
    bool always = false;
    for (std::size_t d = 0; d < problem_.devices.size(); ++d) {
      if (problem_.buffers[b].home && problem_.buffers[b].home != DeviceId(d)) continue;
      always |= alive(v, DeviceId(d)).always;
      if (alive(v, DeviceId(d)).var) terms.push_back({*alive(v, DeviceId(d)).var, 1});
    }
    if (always) continue;
    if (terms.empty())  // cannot be had by these rules: an impossible row over some variable
      terms.push_back({runs_.front().var, 0.25});
    model_.add_row("keep[" + problem_.buffers[b].name + "]", 1, kInfinity, std::move(terms));
  }
}

std::vector<Step> Staged::steps(const std::vector<double>& values) const {
  const auto on = [&](Var v) { return values[static_cast<std::size_t>(v.index)] > 0.5; };
  struct Timed {
    int stage, position, kind;  // copies before the run
    std::size_t budget_rank;    // copies away from a limited device come first
    Step step;
  };
  std::vector<Timed> all;
  for (const Move& m : moves_) {
    const bool limited = problem_.devices[m.from].budget.has_value();
    if (on(m.var)) all.push_back({m.stage, m.position, 0, limited ? 0u : 1u, Copy{m.buffer, m.from, m.to}});
  }
  for (const Run& r : runs_) {
    if (on(r.var))
      all.push_back({r.stage, r.position, 1, 0, Compute{ops_[static_cast<std::size_t>(r.position)], r.impl}});
  }
  std::stable_sort(all.begin(), all.end(), [](const Timed& a, const Timed& b) {
    return std::tie(a.stage, a.position, a.kind, a.budget_rank) < std::tie(b.stage, b.position, b.kind, b.budget_rank);
  });
  std::vector<Step> out;
  for (const Timed& t : all) out.push_back(t.step);
  return with_frees(problem_, out);
}

/// Sets R for every computation, in the stage of the op that first runs next.
bool Staged::mark_runs(const std::vector<Step>& steps, std::vector<double>& x) const {
  std::vector<int> position(problem_.ops.size(), -1);
  for (std::size_t p = 0; p < ops_.size(); ++p) position[ops_[p].index()] = static_cast<int>(p);
  int stage = 0;
  for (const Step& step : steps) {
    if (std::holds_alternative<Free>(step)) continue;
    const auto* c = std::get_if<Compute>(&step);
    if (c == nullptr) {
      if (rules_.copies_for_use) continue;  // each use makes its own
      return false;
    }
    const int p = position[c->op.index()];
    for (; p > stage; ++stage) {
      if (must_[static_cast<std::size_t>(stage)]) return false;
    }
    auto run = std::lower_bound(runs_.begin(), runs_.end(), std::pair(stage, p),
                                [](const Run& r, const auto& at) { return std::pair(r.stage, r.position) < at; });
    while (run != runs_.end() && run->stage == stage && run->position == p && run->impl != c->impl) ++run;
    if (run == runs_.end() || run->stage != stage || run->position != p) return false;
    x[static_cast<std::size_t>(run->var.index)] = 1;
    if (p == stage) ++stage;
  }
  return true;
}

/// Forwards: where each run that is made finds what it reads. Sets C where that is another device.
std::vector<std::vector<Staged::Source>> Staged::mark_sources(std::vector<double>& x,
                                                              std::vector<DeviceId>& made_on) const {
  std::vector<std::vector<Source>> out(runs_.size());
  made_on.assign(values_.size(), DeviceId());
  for (std::size_t v = 0; v < values_.size(); ++v) {
    if (problem_.buffers[values_[v].buffer].home) made_on[v] = *problem_.buffers[values_[v].buffer].home;
  }
  for (std::size_t r = 0; r < runs_.size(); ++r) {
    const Run& run = runs_[r];
    if (x[static_cast<std::size_t>(run.var.index)] < 0.5) continue;
    const auto k = static_cast<std::size_t>(run.impl);
    const auto op = ops_[static_cast<std::size_t>(run.position)].index();
    const Impl& i = impl(run.position, k);
    for (std::size_t j = 0; j < i.reads.size(); ++j) {
      const auto v = static_cast<std::size_t>(value_of(i.reads[j], versions_.read[op][k][j]));
      const DeviceId from = made_on[v].valid() && rules_.copies_for_use ? made_on[v] : i.device;
      out[r].push_back({v, from});
      if (from == i.device) continue;
      for (const Move& m : moves_) {
        if (m.stage == run.stage && m.position == run.position && m.buffer == i.reads[j] && m.from == from &&
            m.to == i.device)
          x[static_cast<std::size_t>(m.var.index)] = 1;
      }
    }
    for (std::size_t j = 0; j < i.writes.size(); ++j)
      made_on[static_cast<std::size_t>(value_of(i.writes[j], versions_.write[op][k][j]))] = i.device;
  }
  return out;
}

/// Backwards: a value is alive from the run that makes it to the last one that reads it before it is made again.
void Staged::mark_alive(std::vector<double>& x) const {
  const std::size_t n_devices = problem_.devices.size();
  std::vector<DeviceId> made_on;
  const std::vector<std::vector<Source>> sources = mark_sources(x, made_on);
  std::vector<char> needed(values_.size() * n_devices, 0);
  const auto cell = [&](std::size_t v, DeviceId d) -> char& { return needed[v * n_devices + d.index()]; };
  for (std::size_t b = 0; b < problem_.buffers.size(); ++b) {
    if (!problem_.buffers[BufferId(b)].keep) continue;
    const auto v = static_cast<std::size_t>(value_of(BufferId(b), versions_.last[BufferId(b)]));
    if (made_on[v].valid()) cell(v, made_on[v]) = 1;
  }
  std::size_t run = runs_.size();
  const auto take_runs = [&](std::pair<int, int> at) {  // those at or after this position
    for (; run > 0 && std::pair(runs_[run - 1].stage, runs_[run - 1].position) >= at; --run) {
      const Run& r = runs_[run - 1];
      if (x[static_cast<std::size_t>(r.var.index)] < 0.5) continue;
      const auto k = static_cast<std::size_t>(r.impl);
      const Impl& i = impl(r.position, k);
      const auto op = ops_[static_cast<std::size_t>(r.position)].index();
      for (std::size_t j = 0; j < i.writes.size(); ++j)
        cell(static_cast<std::size_t>(value_of(i.writes[j], versions_.write[op][k][j])), i.device) = 0;
      for (const Source& s : sources[run - 1]) cell(s.value, s.device) = 1;
    }
  };
  for (auto it = instants_.rbegin(); it != instants_.rend(); ++it) {
    take_runs({it->stage, it->position + 1});
    x[static_cast<std::size_t>(it->var.index)] = cell(it->value, it->device);
  }
}

std::optional<std::vector<double>> Staged::values(const std::vector<Step>& steps) const {
  std::vector<double> x;
  for (const milp::Column& c : model_.columns) x.push_back(c.lower);
  if (!mark_runs(steps, x)) return std::nullopt;
  mark_alive(x);
  for (const Level& level : levels_) {
    double sum = 0;
    for (const Term& t : model_.rows[level.row].terms) {
      if (t.var != level.var) sum += t.factor * x[static_cast<std::size_t>(t.var.index)];
    }
    x[static_cast<std::size_t>(level.var.index)] = std::max(0.0, sum);
  }
  constexpr double kTolerance = 1e-6;
  if (milp::violation(model_, x) > kTolerance) return std::nullopt;
  return x;
}

std::vector<std::vector<double>> Staged::kept(const std::vector<double>& values) const {
  std::vector<std::vector<double>> out(ends_.size(), std::vector<double>(problem_.buffers.size(), 0));
  for (std::size_t t = 0; t < ends_.size(); ++t) {
    for (const auto& [v, var] : ends_[t]) {
      const Value& value = values_[static_cast<std::size_t>(v)];
      double& cell = out[t][value.buffer.index()];
      if (value.version == 0) cell = std::max(cell, values[static_cast<std::size_t>(var.index)]);
    }
  }
  return out;
}

}  // namespace neaptide::plan
