#include "neaptide/plan/placement_bound.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <string>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/json.hpp"
#include "neaptide/plan/cuts_frame.hpp"
#include "neaptide/plan/forced.hpp"
#include "neaptide/plan/min_cut.hpp"
#include "neaptide/plan/possible.hpp"

namespace neaptide::plan {
namespace {

constexpr Seconds kNever = std::numeric_limits<double>::infinity();
constexpr int kMostParts = 8;                    // steps are kept sizes divided by 1, 2, ...
constexpr std::size_t kMostSizes = 4;            // of that many sizes
constexpr std::size_t kMostInstants = 6;         // beside the end
constexpr std::int64_t kMostLooks = 20'000'000;  // ops times ops, to choose them
constexpr int kMostPrices = 40;                  // per step

/// An op on one side: its fastest implementation there and what all of them read. Seconds of kNever: it cannot.
struct Way {
  Seconds seconds = kNever;
  std::vector<int> reads;
};

/// The arcs by kind; the certificate names them by the same words.
enum Kind { kHere, kElsewhere, kCover, kOnce, kRun, kNeed, kUse, kIn, kOut, kKeep, kHome, kKinds };
constexpr const char* kNames[kKinds] = {"here", "elsewhere", "cover", "once", "run", "need",
                                        "use",  "in",        "out",   "keep", "home"};

/// What must have room on the device at one instant.
struct Instant {
  OpId op;                  // its first run; invalid: the end
  std::vector<Bytes> size;  // by value: 0 where it does not count
  Bytes own = 0;            // of the op, if it runs here
  Bytes room = 0;
  Bytes most() const { return std::accumulate(size.begin(), size.end(), own); }
};

struct Arc {
  Kind kind;
  int op = -1, value = -1;
  int arc = -1;  // of the flow
};

}  // namespace

// Nodes of the flow: source, sink, per op "here" and "not elsewhere", per value "here" and "not elsewhere".
struct PlacementBound::Network {
  Network(const Problem& p, DeviceId d);

  struct Line {  // the bound as a function of the price, near one
    Units mu = 0;
    Wide at_zero = 0;  // of the minimum cut
    Bytes slope = 0;   // kept by the cut
  };
  Way way(std::size_t op, bool on_device) const;
  bool fits(OpId op, const Impl& impl) const;
  Units capacity(Seconds s) const;
  Units keep_price(int value, Units mu, Bytes step) const;
  void build(Units mu, Bytes step);
  void add(Kind kind, int op, int value, int from, int to, Units capacity);
  Line solve(Units mu, Bytes step);
  void maximise(Bytes step);
  std::vector<Bytes> steps() const;
  Instant end() const;
  Instant first_run(OpId op) const;
  std::vector<Instant> instants() const;
  Choice choice() const;
  void remember(const Choice& c);
  std::string certificate() const;

  int op_here(int o) const { return 2 + 2 * o; }
  int op_only_here(int o) const { return 3 + 2 * o; }
  int value_here(int v) const { return 2 + 2 * n_ops + 2 * v; }
  int value_only_here(int v) const { return 3 + 2 * n_ops + 2 * v; }
  /// Nodes of what makes the value; of a home: the terminals.
  std::array<int, 2> maker(int v) const;
  Seconds bound(Wide units) const { return seconds_down(units, unit_log2); }

  const Possible can;
  const Problem& problem;
  CutsFrame frame;
  const Facts& facts;
  DeviceId device;
  int n_ops, n_values;
  std::vector<Way> here, elsewhere;        // by op
  std::vector<Seconds> copy_in, copy_out;  // by value
  Instant now;
  int unit_log2 = 0;
  Flow flow;
  std::vector<Arc> arcs;
  std::function<bool()> stop;
  std::int64_t most_work = 0;
  Units last_price = 1;  // per byte

  Wide best = 0;
  Units best_mu = 0;
  Bytes best_step = 1;
  OpId best_op;
  std::vector<std::pair<Arc, Units>> best_flow;
  std::vector<Choice> choices;
};

PlacementBound::Network::Network(const Problem& p, DeviceId d)
    : can(possible_implementations(p)),
      problem(can.problem),
      frame(problem, d, BoundScope::kAnyOrder),
      facts(frame.facts),
      device(d),
      n_ops(static_cast<int>(p.ops.size())),
      n_values(static_cast<int>(facts.values.size())) {
  double total = 0;  // what all ops take on the slower side
  for (std::size_t o = 0; o < p.ops.size(); ++o) {
    here.push_back(way(o, true));
    elsewhere.push_back(way(o, false));
    for (const Seconds s : {here[o].seconds, elsewhere[o].seconds}) total += s < kNever ? s : 0;
  }
  int exponent = 0;
  if (total > 0) std::frexp(total, &exponent);
  unit_log2 = exponent - 56;
  for (const ValueInfo& v : facts.values) {
    Seconds in = kNever, out = kNever;
    for (std::size_t e = 0; e < p.devices.size(); ++e) {
      if (DeviceId(e) == device) continue;
      in = std::min(in, copy_seconds(p, v.buffer, DeviceId(e), device).value_or(kNever));
      out = std::min(out, copy_seconds(p, v.buffer, device, DeviceId(e)).value_or(kNever));
    }
    copy_in.push_back(in);
    copy_out.push_back(out);
  }
}

/// Kept values without a home.
Instant PlacementBound::Network::end() const {
  Instant out;
  out.room = problem.devices[device].budget.value_or(std::numeric_limits<Bytes>::max());
  for (std::size_t b = 0; b < problem.buffers.size() && problem.devices[device].budget; ++b) {
    const Buffer& buffer = problem.buffers[BufferId(b)];
    if (buffer.home == device && (buffer.keep || !buffer.pageable)) out.room -= problem.size_on(BufferId(b), device);
  }
  out.room = std::max<Bytes>(out.room, 0);
  for (int v = 0; v < n_values; ++v) {
    const ValueInfo& info = facts.values[v];
    const bool counts = info.at_end && !problem.buffers[info.buffer].home && frame.sole_maker(v) >= 0;
    out.size.push_back(counts ? frame.size[v] : 0);
  }
  return out;
}

/// What certain ops have made before it and is kept without a home or read by certain ops after it.
Instant PlacementBound::Network::first_run(OpId op) const {
  Instant out;
  out.op = op;
  out.room = std::max<Bytes>(0, *problem.devices[device].budget - frame.fixed_bytes);
  out.size.assign(static_cast<std::size_t>(n_values), 0);
  const std::vector<char> before = frame.reach(op, false), after = frame.reach(op, true);
  std::vector<char> later(static_cast<std::size_t>(n_values), 0);
  for (int o = 0; o < n_ops; ++o) {
    if (o == op.value || after[o] == 0 || facts.necessary[o] == 0) continue;
    for (const int v : facts.reads[o]) later[v] = 1;
  }
  const auto& own_reads = here[op.index()].reads;
  for (int v = 0; v < n_values; ++v) {
    const ValueInfo& info = facts.values[v];
    const int m = frame.sole_maker(v);
    const bool needed = later[v] != 0 || (info.at_end && !problem.buffers[info.buffer].home);
    if (m < 0 || m == op.value || before[m] == 0 || facts.writes[m].size() != 1 || !needed) continue;
    if (!std::binary_search(own_reads.begin(), own_reads.end(), v)) out.size[v] = frame.size[v];
  }
  for (const int v : own_reads) out.own += frame.size[v];
  Bytes least = std::numeric_limits<Bytes>::max();
  const auto& impls = problem.ops[op].impls;
  for (std::size_t i = 0; i < impls.size(); ++i) {
    if (impls[i].device == device && fits(op, impls[i])) least = std::min(least, frame.extra(op, static_cast<int>(i)));
  }
  out.own += least == std::numeric_limits<Bytes>::max() ? 0 : least;
  return out;
}

/// The end, and the first runs at which most would have to lie here if everything were here.
std::vector<Instant> PlacementBound::Network::instants() const {
  std::vector<Instant> out{end()};
  if (!problem.devices[device].budget) return out;
  std::vector<std::pair<Bytes, OpId>> list;
  std::int64_t looks = 0;
  for (const OpId op : problem.order) {
    if (facts.necessary[op.index()] == 0 || (looks += n_ops) > kMostLooks) continue;
    const Instant one = first_run(op);
    if (one.most() > one.room) list.emplace_back(one.most(), op);
  }
  std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (std::size_t i = 0; i < std::min(kMostInstants, list.size()); ++i) out.push_back(first_run(list[i].second));
  return out;
}

bool PlacementBound::Network::fits(OpId op, const Impl& impl) const {
  const auto& budget = problem.devices[impl.device].budget;
  return !budget || working_set(problem, op, impl).bytes <= *budget;
}

/// What the value's bytes cost where it never is elsewhere: at a first run, it may be made again instead.
Units PlacementBound::Network::keep_price(int v, Units mu, Bytes step) const {
  const Wide price = std::min<Wide>(static_cast<Wide>(mu) * (now.size[v] / step), kNoLimit);
  const int m = frame.sole_maker(v);
  if (!now.op.valid() || m < 0 || problem.ops[OpId(m)].once) return static_cast<Units>(price);
  return static_cast<Units>(std::min<Wide>(price, capacity(here[m].seconds)));
}

Way PlacementBound::Network::way(std::size_t op, bool on_device) const {
  Way out;
  const auto& impls = problem.ops[OpId(op)].impls;
  bool first = true;
  for (std::size_t i = 0; i < impls.size(); ++i) {
    if ((impls[i].device == device) != on_device) continue;
    if (!fits(OpId(op), impls[i])) continue;
    std::vector<int> reads;
    for (std::size_t r = 0; r < impls[i].reads.size(); ++r) {
      const int version = facts.versions_.read[op][i][r];
      if (version >= 0) reads.push_back(facts.value_of[impls[i].reads[r].index()][version]);
    }
    std::sort(reads.begin(), reads.end());
    if (!first) {
      std::vector<int> both;
      std::set_intersection(reads.begin(), reads.end(), out.reads.begin(), out.reads.end(), std::back_inserter(both));
      reads = std::move(both);
    }
    out.reads = std::move(reads);
    out.seconds = std::min(out.seconds, impls[i].seconds);
    first = false;
  }
  return out;
}

Units PlacementBound::Network::capacity(Seconds s) const {
  if (s == kNever) return kNoLimit;
  const double units = std::floor(std::ldexp(s, -unit_log2));
  return static_cast<Units>(std::min(units, std::ldexp(1.0, 57)));  // longer than all ops: to charge less is valid
}

std::array<int, 2> PlacementBound::Network::maker(int v) const {
  const ValueInfo& info = facts.values[v];
  const auto& home = problem.buffers[info.buffer].home;
  if (info.version == 0 && home) return *home == device ? std::array{0, 0} : std::array{1, 1};
  if (info.makers.size() != 1) return {-1, -1};
  const int o = info.makers[0].value;
  return {op_here(o), op_only_here(o)};
}

void PlacementBound::Network::add(Kind kind, int op, int value, int from, int to, Units capacity) {
  if (from == to || from == 1 || to == 0 || capacity == 0) return;
  arcs.push_back({kind, op, value, flow.add(from, to, capacity)});
}

void PlacementBound::Network::build(Units mu, Bytes step) {
  flow.reset(2 + 2 * n_ops + 2 * n_values);
  arcs.clear();
  std::vector<char> used(static_cast<std::size_t>(n_values), 0);
  for (int o = 0; o < n_ops; ++o) {
    add(kHere, o, -1, op_here(o), 1, capacity(here[o].seconds));
    add(kElsewhere, o, -1, 0, op_only_here(o), capacity(elsewhere[o].seconds));
    if (facts.necessary[o] != 0) add(kCover, o, -1, op_only_here(o), op_here(o), kNoLimit);
    if (problem.ops[OpId(o)].once) add(kOnce, o, -1, op_here(o), op_only_here(o), kNoLimit);
    for (const int v : here[o].reads) add(kNeed, o, v, op_here(o), value_here(v), kNoLimit);
    for (const int v : elsewhere[o].reads) add(kUse, o, v, value_only_here(v), op_only_here(o), kNoLimit);
  }
  if (now.op.valid()) {
    const Wide price = std::min<Wide>(static_cast<Wide>(mu) * (now.own / step), kNoLimit);
    add(kRun, now.op.value, -1, op_only_here(now.op.value), 1, static_cast<Units>(price));
  }
  for (int v = 0; v < n_values; ++v) {
    const auto [made_here, only_here] = maker(v);
    if (made_here < 0) continue;
    add(kIn, -1, v, value_here(v), made_here, capacity(copy_in[v]));
    add(kOut, -1, v, only_here, value_only_here(v), capacity(copy_out[v]));
    const auto& home = problem.buffers[facts.values[v].buffer].home;
    if (now.size[v] > 0) add(kKeep, -1, v, value_only_here(v), 1, keep_price(v, mu, step));
    if (facts.values[v].at_end && home && *home == device) add(kHome, -1, v, 0, value_here(v), kNoLimit);
    if (facts.values[v].at_end && home && *home != device) add(kHome, -1, v, value_only_here(v), 1, kNoLimit);
  }
}

PlacementBound::Network::Line PlacementBound::Network::solve(Units mu, Bytes step) {
  build(mu, step);
  const Wide cut = flow.run(0, 1);
  Line line{mu, cut, 0};
  for (int v = 0; v < n_values; ++v) {
    if (now.size[v] == 0 || !flow.reached(value_only_here(v))) continue;
    if (static_cast<Wide>(mu) * (now.size[v] / step) <= keep_price(v, mu, step)) line.slope += now.size[v] / step;
  }
  if (now.op.valid() && flow.reached(op_only_here(now.op.value))) line.slope += now.own / step;
  line.at_zero = cut - static_cast<Wide>(mu) * line.slope;
  const Wide value = cut - static_cast<Wide>(mu) * (mu > 0 ? now.room / step : 0);
  if (value > best) {
    best = value;
    best_mu = mu;
    best_step = step;
    best_op = now.op;
    best_flow.clear();
    for (const Arc& a : arcs) {
      if (flow.flow(a.arc) > 0) best_flow.emplace_back(a, flow.flow(a.arc));
    }
  }
  return line;
}

// Tangents on both sides of the maximum meet nearer to it.
void PlacementBound::Network::maximise(Bytes step) {
  const Bytes least = now.room / step;
  Line low = solve(0, step);
  if (low.slope <= least) return remember(choice());
  Units mu = static_cast<Units>(std::clamp<Wide>(static_cast<Wide>(last_price) * step, 1, kNoLimit / 64));
  Line high = solve(mu, step);
  while (high.slope > least) {
    low = high;
    if (mu > kNoLimit / 64 || flow.work() > most_work || stop()) return;
    mu *= 8;
    high = solve(mu, step);
  }
  remember(choice());
  for (int k = 0; k < kMostPrices && flow.work() < most_work && !stop(); ++k) {
    if (low.slope <= high.slope) break;
    const Wide next = (high.at_zero - low.at_zero) / (low.slope - high.slope);
    if (next <= low.mu || next >= high.mu) break;
    const Line middle = solve(static_cast<Units>(next), step);
    remember(choice());
    (middle.slope > least ? low : high) = middle;
    if (middle.slope == least) break;
  }
  last_price = std::max<Units>(1, high.mu / step);
}

/// Single bytes, and steps that the larger kept values fill whole times.
std::vector<Bytes> PlacementBound::Network::steps() const {
  std::map<Bytes, Bytes> total;  // of the values of a size
  for (const Bytes b : now.size) {
    if (b > 0) total[b] += b;
  }
  std::vector<std::pair<Bytes, Bytes>> sizes;
  for (const auto& [size, sum] : total) sizes.emplace_back(sum, size);
  std::sort(sizes.rbegin(), sizes.rend());
  std::vector<Bytes> out{1};
  for (std::size_t i = 0; i < std::min(kMostSizes, sizes.size()); ++i) {
    for (int k = 1; k <= kMostParts; ++k) {
      const Bytes step = sizes[i].second / k;
      if (step > 1 && std::find(out.begin(), out.end(), step) == out.end()) out.push_back(step);
    }
  }
  return out;
}

PlacementBound::Choice PlacementBound::Network::choice() const {
  Choice c;
  for (int o = 0; o < n_ops; ++o) c.op_here.push_back(flow.reached(op_here(o)) ? 1 : 0);
  for (std::size_t b = 0; b < problem.buffers.size(); ++b) {
    const auto& values = facts.value_of[b];
    c.stays.push_back(!values.empty() && flow.reached(value_only_here(values.back())) ? 1 : 0);
  }
  return c;
}

void PlacementBound::Network::remember(const Choice& c) {
  if (std::find(choices.begin(), choices.end(), c) == choices.end()) choices.push_back(c);
}

std::string PlacementBound::Network::certificate() const {
  Json j;
  j["kind"] = "placement";
  j["device"] = problem.devices[device].name;
  j["unit_log2"] = unit_log2;
  if (best_op.valid()) j["op"] = problem.ops[best_op].name;
  j["step"] = best_step;
  j["mu"] = best_mu;
  std::array<Json, kKinds> lists;
  lists.fill(Json::array());
  for (const auto& [a, f] : best_flow) {
    Json entry = Json::array();
    if (a.op >= 0) entry.push_back(a.op);
    if (a.value >= 0) {
      const ValueInfo& v = facts.values[a.value];
      entry.push_back(Json::array({v.buffer.value, v.version}));
    }
    entry.push_back(f);
    lists[a.kind].push_back(std::move(entry));
  }
  for (int k = 0; k < kKinds; ++k) j["flow"][kNames[k]] = std::move(lists[static_cast<std::size_t>(k)]);
  return j.dump();
}

PlacementBound::PlacementBound(const Problem& problem, DeviceId device)
    : n_(std::make_unique<Network>(problem, device)) {
  ensure(problem.devices.size() > 1, "a placement is between devices");
}
PlacementBound::~PlacementBound() = default;
PlacementBound::PlacementBound(PlacementBound&&) noexcept = default;

LowerBound PlacementBound::best(std::int64_t effort, Seconds enough) {
  Network& n = *n_;
  n.stop = stop;
  n.most_work = n.flow.work() + effort;
  for (const Instant& instant : n.instants()) {
    n.now = instant;
    for (const Bytes step : n.steps()) {
      if (n.flow.work() > n.most_work || n.bound(n.best) >= enough || stop()) break;
      n.maximise(step);
    }
  }
  LowerBound b;
  b.valid_for = BoundScope::kAnyOrder;
  b.seconds = n.bound(n.best);
  b.certificate = n.certificate();
  return b;
}

const std::vector<PlacementBound::Choice>& PlacementBound::choices() const { return n_->choices; }

}  // namespace neaptide::plan
