#include "neaptide/plan/bounds.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/json.hpp"
#include "neaptide/plan/cuts_frame.hpp"
#include "neaptide/plan/min_cut.hpp"
#include "neaptide/plan/possible.hpp"
#include "neaptide/plan/simulate.hpp"

namespace neaptide::plan {
namespace {

std::string floor_certificate() {
  Json j;
  j["kind"] = "floor";
  return j.dump();
}

struct WhatCanRun {
  const Possible can;
};

}  // namespace

LowerBound floor_bound(const Problem& problem) {
  const Possible can = possible_implementations(problem);
  const Facts facts(can.problem);
  LowerBound b;
  b.seconds = seconds_down(facts.floor_units, facts.unit_log2);
  b.valid_for = BoundScope::kAnyOrder;
  b.certificate = floor_certificate();
  return b;
}

// One device, one scope. Nodes of the flow: 0 source, 1 sink, 2 + op, then one per value, then one maker per value that
// has no maker or several.
struct CutBounds::Frame : WhatCanRun, CutsFrame {
  Frame(const Problem& p, DeviceId d, BoundScope s)
      : WhatCanRun{possible_implementations(p)}, CutsFrame(can.problem, d, s), given(p) {
    prepare();
  }
  const Problem& given;

  enum class Side { kBefore, kAfter, kEither };
  struct Arcs {  // of one network; -1: not there
    std::vector<int> run, keep, make, need;
    std::vector<std::vector<int>> read;  // [op][position in reads]
  };
  struct Instant {
    int op = -1;
    std::vector<Side> side;    // by op
    std::vector<char> held;    // by value: tau reads it, so it is there
    std::vector<char> needed;  // by value: needed on the device afterwards
    Bytes room = 0;            // bytes left for everything else
  };
  struct Proof {  // a flow, where it is not zero
    Units mu = 0;
    std::vector<std::pair<std::int64_t, Units>> run, keep, make, need;
    std::vector<std::array<std::int64_t, 3>> read;  // value, op, flow
  };
  void prepare();
  void set_instant(OpId op);
  void build(Units mu);
  Units keep_capacity(int value, Units mu) const;
  Wide solve(Units mu, Bytes* kept);
  Wide maximise(Units mu_start, Units* mu_best);
  Proof proof(Units mu);
  std::string certificate() const;
  Seconds best_seconds() const { return seconds_down(facts.floor_units + best_units, facts.unit_log2); }
  bool single(int value) const { return sole_maker(value) >= 0; }
  /// Seconds of leaving and coming back.
  Units copy_back(int value) const { return back[value] == kNoLimit ? kNoLimit : back[value] + away[value]; }

  std::vector<Units> maker_cost;           // by value without a single maker
  std::vector<std::vector<OpId>> readers;  // by value: ops that must read it
  Instant now;
  Flow flow;
  Arcs arcs;
  bool infeasible_here = false;
  Units last_mu = 1;
  // the best so far
  Wide best_units = 0;
  OpId best_op;
  bool infeasible = false;
  Proof best_proof;
};

void CutBounds::Frame::prepare() {
  const Problem& p = problem;
  readers.resize(facts.values.size());
  for (std::size_t o = 0; o < p.ops.size(); ++o) {
    if (!here[o]) continue;
    for (const int v : facts.reads[o]) readers[v].push_back(OpId(o));
  }
  for (std::size_t v = 0; v < facts.values.size(); ++v) {
    // Several ways: none may be charged twice, so the value has a cost of its own only when its makers make nothing
    // else.
    Units cost = kNoLimit;
    for (const OpId o : facts.values[v].makers) {
      if (single(static_cast<int>(v))) break;
      const bool alone = facts.writes[o.index()].size() == 1 && !p.ops[o].once && !homed[v];
      cost = std::min(cost, alone && !facts.necessary[o.index()] ? facts.units(facts.least[o.index()]) : 0);
    }
    maker_cost.push_back(cost);
  }
}

// Where every op first runs relative to the instant, and what is needed after it.
void CutBounds::Frame::set_instant(OpId op) {
  const std::size_t n = problem.ops.size();
  now = {};
  now.op = op.value;
  now.side.assign(n, Side::kEither);
  if (scope == BoundScope::kThisOrder) {
    for (std::size_t o = 0; o < n; ++o) {
      now.side[o] = facts.position[o] <= facts.position[op.index()] ? Side::kBefore : Side::kAfter;
    }
  } else {
    const std::vector<char> before = reach(op, false), after = reach(op, true);
    for (std::size_t o = 0; o < n; ++o) {
      if (after[o]) now.side[o] = Side::kAfter;
      if (before[o]) now.side[o] = Side::kBefore;
    }
  }
  now.held.assign(facts.values.size(), 0);
  now.needed.assign(facts.values.size(), 0);
  const Bytes budget = *problem.devices[device].budget;
  now.room = budget - fixed_bytes - least_extra(op);
  for (const int v : facts.reads[op.index()]) {
    now.held[v] = 1;
    now.room -= size[v];
  }
  for (std::size_t v = 0; v < facts.values.size(); ++v) {
    if (needed_at_end[v]) now.needed[v] = 1;
    for (const OpId r : readers[v]) {
      if (now.side[r.index()] == Side::kAfter && facts.necessary[r.index()]) now.needed[v] = 1;
    }
  }
}

Units CutBounds::Frame::keep_capacity(int value, Units mu) const {
  const Wide price = static_cast<Wide>(mu) * size[value];
  return static_cast<Units>(std::min<Wide>(std::min<Wide>(price, kNoLimit), copy_back(value)));
}

void CutBounds::Frame::build(Units mu) {
  const int n_ops = static_cast<int>(problem.ops.size()), n_values = static_cast<int>(facts.values.size());
  flow.reset(2 + n_ops + 2 * n_values);
  arcs.run.assign(n_ops, -1);
  arcs.keep.assign(n_values, -1);
  arcs.make.assign(n_values, -1);
  arcs.need.assign(n_values, -1);
  arcs.read.assign(n_ops, {});
  const auto op_node = [](int o) { return 2 + o; };
  const auto value_node = [&](int v) { return 2 + n_ops + v; };
  const auto maker_node = [&](int v) { return 2 + n_ops + n_values + v; };
  // Only what reaches a needed value matters; the flow finds that by itself.
  const auto done = [&](int o) {  // first runs at or after the instant: its outputs cost nothing
    return o == now.op || (now.side[o] == Side::kAfter && facts.necessary[o]);
  };
  for (int o = 0; o < n_ops; ++o) {
    if (done(o)) continue;
    Units cost = 0;
    if (now.side[o] == Side::kBefore || !facts.necessary[o]) {
      cost = problem.ops[OpId(o)].once ? kNoLimit : facts.units(facts.least[o]);
    }
    if (cost > 0) arcs.run[o] = flow.add(0, op_node(o), cost);
    arcs.read[o].assign(facts.reads[o].size(), -1);
    if (!here[o]) continue;
    for (std::size_t r = 0; r < facts.reads[o].size(); ++r) {
      const int v = facts.reads[o][r];
      if (!now.held[v]) arcs.read[o][r] = flow.add(value_node(v), op_node(o), kNoLimit);
    }
  }
  for (int v = 0; v < n_values; ++v) {
    if (now.held[v] || size[v] == 0) continue;
    const Units capacity = keep_capacity(v, mu);
    if (now.needed[v]) arcs.need[v] = flow.add(value_node(v), 1, kNoLimit);
    if (capacity == 0) continue;
    if (single(v)) {
      const int o = facts.values[v].makers[0].value;
      if (!done(o)) arcs.keep[v] = flow.add(op_node(o), value_node(v), capacity);
      continue;
    }
    const bool may_come_for_nothing = std::any_of(facts.values[v].makers.begin(), facts.values[v].makers.end(),
                                                  [&](OpId o) { return done(o.value); });
    if (may_come_for_nothing) continue;
    arcs.keep[v] = flow.add(maker_node(v), value_node(v), capacity);
    if (maker_cost[v] > 0) arcs.make[v] = flow.add(0, maker_node(v), maker_cost[v]);
  }
}

// Minimum cut at a price; `kept`: the bytes that the cut keeps.
Wide CutBounds::Frame::solve(Units mu, Bytes* kept) {
  build(mu);
  const Wide value = flow.run(0, 1);
  const int n_ops = static_cast<int>(problem.ops.size()), n_values = static_cast<int>(facts.values.size());
  *kept = 0;
  for (int v = 0; v < n_values; ++v) {
    if (arcs.keep[v] < 0) continue;
    const int from = single(v) ? 2 + facts.values[v].makers[0].value : 2 + n_ops + n_values + v;
    if (!flow.reached(from) || flow.reached(2 + n_ops + v)) continue;
    if (static_cast<Wide>(mu) * size[v] > copy_back(v)) continue;
    *kept += size[v];
  }
  return value;
}

// The best price by intersecting the tangents on both sides of the maximum. Returns the bound in units beyond the
// floor; `infeasible_here`: no price is high enough.
Wide CutBounds::Frame::maximise(Units mu_start, Units* mu_best) {
  *mu_best = 0;
  Wide best = 0;
  Bytes all = 0;
  for (std::size_t v = 0; v < size.size(); ++v) {
    if (now.needed[v] && !now.held[v]) all += size[v];
  }
  const Bytes room = now.room;
  if (all <= room) return 0;
  struct Line {
    Units mu;
    Wide at_zero;
    Bytes slope;
  };
  const auto line = [&](Units mu) {
    Bytes kept = 0;
    const Wide value = solve(mu, &kept);
    const Wide bound = value - static_cast<Wide>(mu) * room;
    if (bound > best) {
      best = bound;
      *mu_best = mu;
    }
    return Line{mu, value - static_cast<Wide>(mu) * kept, kept};
  };
  Line low = line(0);
  low.slope = std::max(low.slope, all);
  Units mu = std::max<Units>(1, mu_start);
  Line high = line(mu);
  Wide hopeless = Wide{1} << 59;  // above the sum of all costs
  for (std::size_t v = 0; v < size.size(); ++v)
    hopeless += copy_back(static_cast<int>(v)) < kNoLimit ? copy_back(static_cast<int>(v)) : 0;
  while (high.slope > room) {
    low = high;
    infeasible_here = best > hopeless;
    if (infeasible_here || mu > kNoLimit / 16) return best;
    mu *= 8;
    high = line(mu);
  }
  for (int k = 0; k < 40; ++k) {
    if (low.slope <= high.slope) break;
    const Wide next = (high.at_zero - low.at_zero) / (low.slope - high.slope);
    if (next <= low.mu || next >= high.mu) break;
    const Line middle = line(static_cast<Units>(next));
    if (middle.slope > room) {
      low = middle;
    } else {
      high = middle;
    }
    if (middle.slope == room) break;
  }
  return best;
}

CutBounds::Frame::Proof CutBounds::Frame::proof(Units mu) {
  Proof out;
  out.mu = mu;
  build(mu);
  flow.run(0, 1);
  const auto put = [&](const std::vector<int>& list, auto* to) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i] >= 0 && flow.flow(list[i]) > 0) to->push_back({static_cast<std::int64_t>(i), flow.flow(list[i])});
    }
  };
  put(arcs.run, &out.run);
  put(arcs.keep, &out.keep);
  put(arcs.make, &out.make);
  put(arcs.need, &out.need);
  for (std::size_t o = 0; o < arcs.read.size(); ++o) {
    for (std::size_t r = 0; r < arcs.read[o].size(); ++r) {
      const int arc = arcs.read[o][r];
      if (arc >= 0 && flow.flow(arc) > 0) {
        out.read.push_back({facts.reads[o][r], static_cast<std::int64_t>(o), flow.flow(arc)});
      }
    }
  }
  return out;
}

std::string CutBounds::Frame::certificate() const {
  Json j;
  j["kind"] = "cut";
  j["scope"] = scope == BoundScope::kThisOrder ? "this order" : "any order";
  j["device"] = problem.devices[device].name;
  j["op"] = problem.ops[best_op].name;
  j["unit_log2"] = facts.unit_log2;
  const auto value = [&](int v) { return Json::array({facts.values[v].buffer.value, facts.values[v].version}); };
  Json one;
  one["mu"] = best_proof.mu;
  Json run = Json::array(), keep = Json::array(), make = Json::array(), need = Json::array(), read = Json::array();
  for (const auto& [o, f] : best_proof.run) run.push_back(Json::array({o, f}));
  for (const auto& [v, f] : best_proof.keep) keep.push_back(Json::array({value(static_cast<int>(v)), f}));
  for (const auto& [v, f] : best_proof.make) make.push_back(Json::array({value(static_cast<int>(v)), f}));
  for (const auto& [v, f] : best_proof.need) need.push_back(Json::array({value(static_cast<int>(v)), f}));
  for (const auto& r : best_proof.read) read.push_back(Json::array({value(static_cast<int>(r[0])), r[1], r[2]}));
  one["run"] = std::move(run);
  one["keep"] = std::move(keep);
  one["make"] = std::move(make);
  one["need"] = std::move(need);
  one["read"] = std::move(read);
  j["flow"] = std::move(one);
  return j.dump();
}

CutBounds::CutBounds(const Problem& problem, DeviceId device, BoundScope scope)
    : f_(std::make_unique<Frame>(problem, device, scope)) {}
CutBounds::~CutBounds() = default;
CutBounds::CutBounds(CutBounds&&) noexcept = default;

CutBounds::Cut CutBounds::evaluate(OpId op) {
  Frame& f = *f_;
  Cut cut;
  cut.op = op;
  if (!f.here[op.index()] || !f.facts.necessary[op.index()]) {
    cut.seconds = seconds_down(f.facts.floor_units, f.facts.unit_log2);
    return cut;
  }
  f.set_instant(op);
  cut.infeasible = f.now.room < 0;
  Wide units = 0;
  if (!cut.infeasible) {
    Units mu = 0;
    f.infeasible_here = false;
    units = f.maximise(f.last_mu, &mu);
    cut.infeasible = f.infeasible_here;
    if (mu > 0 && !cut.infeasible) f.last_mu = mu;
    if (units > f.best_units && !cut.infeasible) {
      f.best_units = units;
      f.best_op = op;
      f.best_proof = f.proof(mu);
    }
  }
  if (cut.infeasible) f.infeasible = true;
  cut.seconds = seconds_down(f.facts.floor_units + units, f.facts.unit_log2);
  return cut;
}

LowerBound CutBounds::proved() const {
  const Frame& f = *f_;
  LowerBound b;
  b.valid_for = f.scope;
  b.seconds = seconds_down(f.facts.floor_units + f.best_units, f.facts.unit_log2);
  b.certificate = f.best_units > 0 ? f.certificate() : floor_certificate();
  if (f.best_units == 0) b.valid_for = BoundScope::kAnyOrder;
  return b;
}

OpId CutBounds::best_op() const { return f_->best_op; }
bool CutBounds::infeasible() const { return f_->infeasible; }
std::int64_t CutBounds::work() const { return f_->flow.work(); }

// Where the load without recomputation is above the budget, or one step alone takes more than half of it.
std::vector<OpId> CutBounds::promising() const {
  const Frame& f = *f_;
  const Problem& p = f.given;
  const std::vector<Step> steps = keep_all_steps(p);
  const Simulation sim = simulate(p, steps);
  const Bytes budget = *p.devices[f.device].budget;
  std::vector<std::pair<Bytes, int>> above;  // load, position
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto* c = std::get_if<Compute>(&steps[i]);
    if (c == nullptr || !f.here[c->op.index()] || !f.facts.necessary[c->op.index()]) continue;
    const Bytes load = sim.held[f.device.index()][i];
    if (load > budget) above.emplace_back(load, f.facts.position[c->op.index()]);
  }
  std::stable_sort(above.begin(), above.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<OpId> out;
  for (const auto& [load, position] : above) out.push_back(p.order[position]);
  return out;
}

LowerBound CutBounds::best(std::int64_t effort, Seconds enough) {
  Frame& f = *f_;
  std::vector<OpId> list = promising();
  if (list.empty()) return proved();
  std::sort(list.begin(), list.end(),
            [&](OpId a, OpId b) { return f.facts.position[a.index()] < f.facts.position[b.index()]; });
  const int n = static_cast<int>(list.size());
  const std::int64_t end = work() + effort;
  std::vector<Seconds> known(n, -1);
  const auto value = [&](int i) {
    if (known[i] < 0 && work() < end && f.best_seconds() < enough && !stop()) known[i] = evaluate(list[i]).seconds;
    return known[i];
  };
  // Evenly spread first, then around the best ones at halving distance.
  int stride = std::max(1, n / 12);
  for (int i = 0; i < n; i += stride) value(i);
  while (stride > 1 && work() < end) {
    stride = (stride + 1) / 2;
    std::vector<int> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return known[a] > known[b]; });
    const std::vector<int> centres(order.begin(), order.begin() + std::min(n, 4));
    for (const int c : centres) {
      if (known[c] < 0) continue;
      for (const int i : {c - stride, c + stride}) {
        if (i >= 0 && i < n) value(i);
      }
    }
  }
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return known[a] > known[b]; });
  if (n <= 64 || work() < end / 2) {
    for (const int i : order) value(i);  // what is left, while the effort lasts
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return known[a] > known[b]; });
  }
  return proved();
}

}  // namespace neaptide::plan
