#include "neaptide/plan/explain.hpp"

#include <algorithm>
#include <cmath>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/json.hpp"
#include "neaptide/plan/forced.hpp"
#include "neaptide/plan/simulate.hpp"

namespace neaptide::plan {
namespace {

constexpr double kNear = 0.99;  // of the peak

/// A plan with everything that the stories ask of it.
struct Scene {
  Scene(const Problem& p, const Plan& plan)
      : problem(p),
        steps(plan.steps),
        past(history(p, plan.steps)),
        held(simulate(p, plan.steps).held),
        writers(p.buffers.size()) {
    for (std::size_t o = 0; o < p.ops.size(); ++o) {
      for (const Impl& i : p.ops[OpId(o)].impls) {
        for (const BufferId b : i.writes) {
          if (writers[b].empty() || writers[b].back() != OpId(o)) writers[b].emplace_back(o);
        }
      }
    }
  }

  const Impl& impl(const Compute& c) const { return problem.ops[c.op].impls[static_cast<std::size_t>(c.impl)]; }
  const Compute* compute(int step) const { return std::get_if<Compute>(&steps[static_cast<std::size_t>(step)]); }
  Bytes held_at(DeviceId d, int step) const { return held[d.index()][static_cast<std::size_t>(step)]; }

  /// Whether a buffer lies on a device just before a step.
  bool there_before(BufferId b, DeviceId d, int step) const {
    return std::any_of(past.of[b].begin(), past.of[b].end(), [&](int i) {
      const Residence& r = past.residences[static_cast<std::size_t>(i)];
      return r.device == d && r.begin < step && r.end >= step;
    });
  }

  /// Bytes that a run of `i` adds to what lay on its device before `step`.
  Bytes adds(const Impl& i, int step) const {
    Bytes sum = problem.rounded(i.workspace, i.device);
    for (const BufferId b : i.writes) {
      const bool takes_over =
          std::any_of(i.in_place.begin(), i.in_place.end(), [&](const InPlace& pair) { return pair.out == b; });
      if (!takes_over && !there_before(b, i.device, step)) sum += problem.size_on(b, i.device);
    }
    return sum;
  }

  /// What lies on a device before a step that computes `c`.
  Bytes before(DeviceId d, int step, const Compute& c) const {
    return held_at(d, step) - (impl(c).device == d ? adds(impl(c), step) : 0);
  }

  Seconds seconds(int step) const {
    if (const Compute* c = compute(step)) return impl(*c).seconds;
    const auto* k = std::get_if<Copy>(&steps[static_cast<std::size_t>(step)]);
    return k == nullptr ? 0 : copy_seconds(problem, k->buffer, k->from, k->to).value_or(0);
  }

  std::string name(int step) const {
    if (step < 0) return "the start";
    if (const Compute* c = compute(step)) return problem.ops[c->op].name;
    if (const auto* k = std::get_if<Copy>(&steps[static_cast<std::size_t>(step)])) {
      return "copy of " + problem.buffers[k->buffer].name;
    }
    return "free of " + problem.buffers[std::get<Free>(steps[static_cast<std::size_t>(step)]).buffer].name;
  }

  const Problem& problem;
  const std::vector<Step>& steps;
  History past;
  std::vector<std::vector<Bytes>> held;
  IdVector<BufferTag, std::vector<OpId>> writers;  // ops with an implementation that writes the buffer
};

template <class List>
bool has(const List& list, int step) {
  return std::find(list.begin(), list.end(), step) != list.end();
}

Held held_by(const Scene& f, const Residence& r, int step) {
  Held h;
  h.buffer = r.buffer;
  h.bytes = f.problem.size_on(r.buffer, r.device);
  h.since = r.begin;
  const Buffer& buffer = f.problem.buffers[r.buffer];
  const auto after = [&](const std::vector<int>& list) { return std::upper_bound(list.begin(), list.end(), step); };
  if (has(r.reads, step)) {
    h.why = Held::Why::kRead;
  } else if (r.begin == step || has(r.writes, step)) {
    h.why = Held::Why::kWritten;
  } else if (buffer.home == r.device && !buffer.pageable) {
    h.why = Held::Why::kHome;
  } else {
    const auto next_read = after(r.reads), next_write = after(r.writes);
    if (next_read != r.reads.end()) h.next_use = *next_read;
    if (next_write != r.writes.end() && (h.next_use < 0 || *next_write < h.next_use)) h.next_use = *next_write;
    h.why = h.next_use < 0 ? Held::Why::kEnd : Held::Why::kWaits;
  }
  return h;
}

/// What lies on a device while a step runs; -1: before the first.
std::vector<Held> held_during(const Scene& f, DeviceId d, int step) {
  std::vector<Held> out;
  for (const Residence& r : f.past.residences) {
    if (r.device != d || r.begin > step) continue;
    const bool ended = r.end < step || (r.end == step && r.ended == Residence::Ended::kFreed && step >= 0 &&
                                        !std::holds_alternative<Free>(f.steps[static_cast<std::size_t>(step)]));
    if (ended) continue;
    if (r.in_place && r.begin == step) continue;  // lies in its predecessor's block, which counts
    out.push_back(held_by(f, r, step));
  }
  std::stable_sort(out.begin(), out.end(), [](const Held& a, const Held& b) { return a.bytes > b.bytes; });
  return out;
}

PeakAt peak_of(const Scene& f, DeviceId d) {
  PeakAt p;
  p.device = d;
  for (const Residence& r : f.past.residences) {
    if (r.device == d && r.begin < 0) p.bytes += f.problem.size_on(r.buffer, d);
  }
  const std::vector<Bytes>& held = f.held[d.index()];
  for (std::size_t i = 0; i < held.size(); ++i) {
    if (held[i] <= p.bytes) continue;
    p.bytes = held[i];
    p.step = static_cast<int>(i);
  }
  const auto near = [&](Bytes b) { return static_cast<double>(b) >= kNear * static_cast<double>(p.bytes); };
  p.near = static_cast<int>(std::count_if(held.begin(), held.end(), near));
  p.during = f.name(p.step);
  const Compute* c = p.step < 0 ? nullptr : f.compute(p.step);
  if (c != nullptr && f.impl(*c).device == d) p.workspace = f.problem.rounded(f.impl(*c).workspace, d);
  p.held = held_during(f, d, p.step);
  return p;
}

/// Steps strictly between two touches that later ones follow.
int idle_steps(const Residence& r) {
  std::vector<int> touches = r.reads;
  touches.insert(touches.end(), r.writes.begin(), r.writes.end());
  touches.push_back(r.begin);
  std::sort(touches.begin(), touches.end());
  int idle = 0;
  for (std::size_t i = 1; i < touches.size(); ++i) idle += std::max(0, touches[i] - touches[i - 1] - 1);
  return idle;
}

Absence absence_between(const Scene& f, const Residence& before, const Residence& after) {
  Absence a;
  a.device = after.device;
  a.from = before.end + (before.ended == Residence::Ended::kFreed ? 0 : 1);
  a.to = after.begin;
  a.seconds = f.seconds(after.begin);
  a.bytes = f.problem.size_on(after.buffer, after.device);
  a.at = a.from;
  for (int s = a.from; s < a.to; ++s) {
    const Bytes there = f.held_at(a.device, s) + a.bytes;
    if (there > a.would_hold) a.at = s;
    a.would_hold = std::max(a.would_hold, there);
  }
  return a;
}

/// Whether a new version is made during steps from .. to - 1, so that what comes back is another value.
bool overwritten(const Scene& f, BufferId buffer, int from, int to) {
  for (int s = from; s < to; ++s) {
    const Compute* c = f.compute(s);
    if (c == nullptr || !f.problem.ops[c->op].once) continue;
    const std::vector<BufferId>& writes = f.impl(*c).writes;
    if (std::find(writes.begin(), writes.end(), buffer) != writes.end()) return true;
  }
  return false;
}

std::optional<Seconds> cheapest_remake(const Scene& f, BufferId buffer) {
  std::optional<Seconds> least;
  for (const OpId op : f.writers[buffer]) {
    if (f.problem.ops[op].once) continue;
    for (const Impl& i : f.problem.ops[op].impls) {
      if (std::find(i.writes.begin(), i.writes.end(), buffer) == i.writes.end()) continue;
      least = std::min(least.value_or(i.seconds), i.seconds);
    }
  }
  return least;
}

ValueStory story_of(const Scene& f, BufferId buffer) {
  ValueStory v;
  v.buffer = buffer;
  for (const int i : f.past.of[buffer]) v.stays.push_back(f.past.residences[static_cast<std::size_t>(i)]);
  for (const OpId op : f.writers[buffer]) {
    int n = 0;
    for (const int step : f.past.runs[op]) {
      const Impl& i = f.impl(*f.compute(step));
      if (std::find(i.writes.begin(), i.writes.end(), buffer) == i.writes.end()) continue;
      if (n++ == 0) {
        v.makers.push_back(op);
        continue;
      }
      ++v.again;
      v.again_seconds += i.seconds;
    }
  }
  for (std::size_t k = 0; k < v.stays.size(); ++k) {
    v.idle += idle_steps(v.stays[k]);
    for (std::size_t j = k; j-- > 0;) {
      if (v.stays[j].device != v.stays[k].device) continue;
      const bool apart = v.stays[j].end < v.stays[k].begin;
      if (apart && !overwritten(f, buffer, v.stays[j].end, v.stays[k].begin))
        v.absences.push_back(absence_between(f, v.stays[j], v.stays[k]));
      break;
    }
  }
  v.remake = cheapest_remake(f, buffer);
  return v;
}

std::optional<Faster> faster_of(const Scene& f, const Compute& c, int step) {
  const Op& op = f.problem.ops[c.op];
  std::optional<Faster> out;
  for (std::size_t k = 0; k < op.impls.size(); ++k) {
    const Impl& i = op.impls[k];
    const Seconds saves = f.impl(c).seconds - i.seconds;
    if (saves <= 0 || (out && saves >= out->saves)) continue;
    Faster faster;
    faster.impl = static_cast<int>(k);
    faster.saves = saves;
    faster.would_hold = f.before(i.device, step, c) + f.adds(i, step);
    for (const BufferId b : i.reads) {
      if (!f.there_before(b, i.device, step)) faster.missing.push_back(b);
    }
    out = std::move(faster);
  }
  return out;
}

OpStory story_of(const Scene& f, OpId op) {
  OpStory o;
  o.op = op;
  for (const int step : f.past.runs[op]) {
    const Compute& c = *f.compute(step);
    if (!o.runs.empty()) o.again_seconds += f.impl(c).seconds;
    o.runs.push_back({step, c.impl, f.held_at(f.impl(c).device, step), faster_of(f, c, step)});
  }
  return o;
}

std::vector<ValueStory> kept_values(const Scene& f) {
  std::vector<ValueStory> out;
  for (std::size_t i = 0; i < f.problem.buffers.size(); ++i) {
    const Buffer& buffer = f.problem.buffers[BufferId(i)];
    if (buffer.home || f.past.of[BufferId(i)].size() != 1) continue;
    const Residence& r = f.past.residences[static_cast<std::size_t>(f.past.of[BufferId(i)].front())];
    if (idle_steps(r) > 0) out.push_back(story_of(f, BufferId(i)));
  }
  const auto weight = [&](const ValueStory& v) {
    return static_cast<double>(f.problem.buffers[v.buffer].bytes) * static_cast<double>(v.idle);
  };
  std::stable_sort(out.begin(), out.end(),
                   [&](const ValueStory& a, const ValueStory& b) { return weight(a) > weight(b); });
  return out;
}

std::vector<OpStory> recomputed_ops(const Scene& f) {
  std::vector<OpStory> out;
  for (std::size_t i = 0; i < f.problem.ops.size(); ++i) {
    if (f.past.runs[OpId(i)].size() > 1) out.push_back(story_of(f, OpId(i)));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const OpStory& a, const OpStory& b) { return a.again_seconds > b.again_seconds; });
  return out;
}

/// By row of a certificate of several instants, in units of a multiplier: how much it falls for a byte more, while what
/// was rounded stays as far from the next step as it is. A cover says nothing of bytes.
std::vector<double> prices_of_rows(const JsonReader& certificate) {
  const double of_bytes = std::ldexp(1.0, static_cast<int>(certificate.integer("price_log2", -4000)));
  std::vector<double> fall;  // of the right-hand side itself
  std::vector<double> out;
  for (const JsonReader& row : certificate.items("rows")) {
    double price = 0;
    const bool bytes =
        row.value().is_array() && (row.items().at(0).string() == "room" || row.items().at(0).string() == "inside");
    if (bytes) price = 1;
    if (!row.value().is_array() && row.has("rounded")) {
      const auto divisor = static_cast<double>(row.integer("divisor", 2));
      const auto part = static_cast<double>(row.integer("part", 1));
      for (const JsonReader& item : row.items("rounded")) {
        const auto parts = item.items();
        const double of = fall.at(static_cast<std::size_t>(parts.at(0).integer(0)));
        const auto multiplier = static_cast<double>(parts.at(1).integer());
        price += of * (multiplier > 0 ? multiplier * part : -multiplier * (divisor - part));  // of the row's slack
      }
      price = std::ldexp(price, -static_cast<int>(row.integer("step_log2", 0)));
    }
    fall.push_back(price);
    out.push_back(bytes ? of_bytes : price);
  }
  return out;
}

double leaf_price(const JsonReader& leaf, const std::vector<double>& of_rows) {
  double sum = 0;
  for (const JsonReader& row : leaf.items("rows")) {
    const auto parts = row.items();
    sum += static_cast<double>(parts.at(1).integer(0)) * of_rows.at(static_cast<std::size_t>(parts.at(0).integer(0)));
  }
  return sum;
}

OpId op_named(const Problem& problem, const std::string& name) {
  for (std::size_t i = 0; i < problem.ops.size(); ++i) {
    if (problem.ops[OpId(i)].name == name) return OpId(i);
  }
  return {};
}

}  // namespace

std::optional<Price> price_of(const LowerBound& bound) {
  if (bound.certificate.empty()) return std::nullopt;
  const Json j = parse_json(bound.certificate, "certificate");
  const JsonReader r(j, "certificate");
  const std::string kind = r.string("kind");
  if (kind == "floor") return Price{};
  double price = 0;  // in units of time per byte
  if (kind == "cut") {
    price = static_cast<double>(r.at("flow").integer("mu", 0));
  } else if (kind == "cuts") {
    const std::vector<double> of_rows = prices_of_rows(r);
    for (const JsonReader& leaf : r.items("leaves")) price = std::max(price, leaf_price(leaf, of_rows));
  } else {
    return std::nullopt;
  }
  return Price{r.string("device"), std::ldexp(price, static_cast<int>(r.integer("unit_log2", -4000)))};
}

Explanation explain(const Problem& problem, const Plan& plan) {
  const Scene f(problem, plan);
  Explanation e;
  e.totals = totals(problem, plan);
  for (std::size_t d = 0; d < problem.devices.size(); ++d) e.peaks.push_back(peak_of(f, DeviceId(d)));
  e.kept = kept_values(f);
  e.recomputed = recomputed_ops(f);
  if (plan.lower_bound) e.price = price_of(*plan.lower_bound);
  return e;
}

ValueStory explain_value(const Problem& problem, const Plan& plan, BufferId buffer) {
  ensure(problem.buffers.has(buffer), "there is no such buffer");
  return story_of(Scene(problem, plan), buffer);
}

OpStory explain_op(const Problem& problem, const Plan& plan, OpId op) {
  ensure(op.valid() && op.index() < problem.ops.size(), "there is no such op");
  return story_of(Scene(problem, plan), op);
}

Refusal explain_infeasible(const Problem& problem, const Plan& plan) {
  ensure(plan.infeasible.has_value(), "only an infeasible answer has a refusal to explain");
  Refusal r;
  r.why = *plan.infeasible;
  const DeviceId d = r.why.device;
  if (plan.budgets.has(d)) r.budget = plan.budgets[d];
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& b = problem.buffers[BufferId(i)];
    if (b.home == d && !b.pageable) r.homes += problem.size_on(BufferId(i), d);
    if (std::find(r.why.buffers.begin(), r.why.buffers.end(), b.name) == r.why.buffers.end()) continue;
    Held h;
    h.buffer = BufferId(i);
    h.bytes = problem.size_on(h.buffer, d);
    if (b.home == d) h.why = Held::Why::kHome;
    r.held.push_back(h);
  }
  std::stable_sort(r.held.begin(), r.held.end(), [](const Held& a, const Held& b) { return a.bytes > b.bytes; });
  r.op = op_named(problem, r.why.step);
  if (!r.op.valid()) return r;
  const Op& op = problem.ops[r.op];
  for (std::size_t i = 0; i < op.impls.size(); ++i) {
    if (op.impls[i].device != d) continue;
    r.impls.push_back({static_cast<int>(i), working_set(problem, r.op, op.impls[i]).bytes});
  }
  std::stable_sort(r.impls.begin(), r.impls.end(),
                   [](const Refusal::Need& a, const Refusal::Need& b) { return a.bytes < b.bytes; });
  const Bytes needed = r.impls.empty() ? 0 : std::max(r.why.proved, r.impls.front().bytes);
  if (r.budget && *r.budget > r.homes && needed > r.homes) {
    r.batch = std::min(1.0, static_cast<double>(*r.budget - r.homes) / static_cast<double>(needed - r.homes));
  }
  return r;
}

namespace {

const char* word(Held::Why why) {
  switch (why) {
    case Held::Why::kHome:
      return "home";
    case Held::Why::kRead:
      return "read";
    case Held::Why::kWritten:
      return "written";
    case Held::Why::kWaits:
      return "waits";
    case Held::Why::kEnd:
      return "kept at the end";
  }
  throw InternalError("a held buffer has an unknown reason");
}

const char* word(Residence::Made made) {
  return made == Residence::Made::kHome ? "home" : made == Residence::Made::kRun ? "run" : "copy";
}

const char* word(Residence::Ended ended) {
  switch (ended) {
    case Residence::Ended::kLasts:
      return "lasts";
    case Residence::Ended::kFreed:
      return "freed";
    case Residence::Ended::kTakenOver:
      return "taken over in place";
    case Residence::Ended::kOverwritten:
      return "overwritten elsewhere";
  }
  throw InternalError("a stay has an unknown end");
}

Json held_json(const Problem& problem, const std::vector<Held>& list) {
  Json out = Json::array();
  for (const Held& h : list) {
    Json one{{"buffer", problem.buffers[h.buffer].name}, {"bytes", h.bytes}, {"why", word(h.why)}, {"since", h.since}};
    one["next_use"] = h.next_use >= 0 ? Json(h.next_use) : Json();
    out.push_back(std::move(one));
  }
  return out;
}

Json value_json(const Problem& problem, const ValueStory& v) {
  Json out{{"value", problem.buffers[v.buffer].name}, {"bytes", problem.buffers[v.buffer].bytes}};
  out["stays"] = Json::array();
  for (const Residence& r : v.stays) {
    out["stays"].push_back({{"device", problem.devices[r.device].name},
                            {"begin", r.begin},
                            {"end", r.end},
                            {"made", word(r.made)},
                            {"in_place", r.in_place},
                            {"reads", r.reads},
                            {"ended", word(r.ended)}});
  }
  out["makers"] = Json::array();
  for (const OpId o : v.makers) out["makers"].push_back(problem.ops[o].name);
  out["again"] = v.again;
  out["again_seconds"] = v.again_seconds;
  out["idle_steps"] = v.idle;
  out["remake_seconds"] = v.remake ? Json(*v.remake) : Json();
  out["absences"] = Json::array();
  for (const Absence& a : v.absences) {
    out["absences"].push_back({{"device", problem.devices[a.device].name},
                               {"from", a.from},
                               {"to", a.to},
                               {"seconds", a.seconds},
                               {"bytes", a.bytes},
                               {"had_it_stayed", {{"step", a.at}, {"bytes", a.would_hold}}}});
  }
  return out;
}

Json op_json(const Problem& problem, const OpStory& o) {
  const Op& op = problem.ops[o.op];
  Json out{{"op", op.name}, {"once", op.once}, {"again_seconds", o.again_seconds}, {"runs", Json::array()}};
  for (const RunStory& r : o.runs) {
    const Impl& impl = op.impls[static_cast<std::size_t>(r.impl)];
    Json one{{"step", r.step}, {"impl", impl.name}, {"seconds", impl.seconds}, {"holds", r.holds}};
    one["faster"] = Json();
    if (r.faster) {
      Json missing = Json::array();
      for (const BufferId b : r.faster->missing) missing.push_back(problem.buffers[b].name);
      one["faster"] = {{"impl", op.impls[static_cast<std::size_t>(r.faster->impl)].name},
                       {"saves_seconds", r.faster->saves},
                       {"would_hold", r.faster->would_hold},
                       {"missing", std::move(missing)}};
    }
    out["runs"].push_back(std::move(one));
  }
  return out;
}

Json header(const char* kind) { return {{"format", "neaptide.explanation"}, {"version", 1}, {"kind", kind}}; }

}  // namespace

std::string to_json(const Problem& problem, const Plan& plan, const Explanation& e) {
  Json root = header("plan");
  root["status"] = to_string(plan.status);
  root["seconds"] = e.totals.seconds;
  root["again"] = {{"runs", e.totals.again}, {"seconds", e.totals.again_seconds}};
  root["copies"] = {{"steps", e.totals.copies}, {"bytes", e.totals.copied}, {"seconds", e.totals.copy_seconds}};
  root["bound"] = plan.lower_bound ? Json(plan.lower_bound->seconds) : Json();
  root["price"] = Json();
  if (e.price) root["price"] = {{"device", e.price->device}, {"seconds_per_byte", e.price->seconds_per_byte}};
  root["peaks"] = Json::array();
  for (const PeakAt& p : e.peaks) {
    Json budget;
    if (plan.budgets.has(p.device) && plan.budgets[p.device].has_value()) budget = *plan.budgets[p.device];
    root["peaks"].push_back({{"device", problem.devices[p.device].name},
                             {"budget", std::move(budget)},
                             {"bytes", p.bytes},
                             {"step", p.step},
                             {"during", p.during},
                             {"workspace", p.workspace},
                             {"steps_near_it", p.near},
                             {"held", held_json(problem, p.held)}});
  }
  root["kept"] = Json::array();
  for (const ValueStory& v : e.kept) root["kept"].push_back(value_json(problem, v));
  root["recomputed"] = Json::array();
  for (const OpStory& o : e.recomputed) root["recomputed"].push_back(op_json(problem, o));
  return json_text(root);
}

std::string to_json(const Problem& problem, const ValueStory& story) {
  Json root = header("value");
  root.update(value_json(problem, story));
  return json_text(root);
}

std::string to_json(const Problem& problem, const OpStory& story) {
  Json root = header("op");
  root.update(op_json(problem, story));
  return json_text(root);
}

std::string to_json(const Problem& problem, const Refusal& r) {
  Json root = header("infeasible");
  root["device"] = problem.devices[r.why.device].name;
  root["budget"] = r.budget ? Json(*r.budget) : Json();
  root["smallest"] = r.why.smallest;
  root["proved"] = r.why.proved;
  root["step"] = r.why.step;
  root["homes"] = r.homes;
  root["held"] = held_json(problem, r.held);
  root["implementations"] = Json::array();
  for (const Refusal::Need& n : r.impls) {
    const Impl& impl = problem.ops[r.op].impls[static_cast<std::size_t>(n.impl)];
    root["implementations"].push_back({{"impl", impl.name}, {"bytes", n.bytes}, {"workspace", impl.workspace}});
  }
  root["batch_share"] = r.batch ? Json(*r.batch) : Json();
  root["advice"] = r.why.advice;
  return json_text(root);
}

}  // namespace neaptide::plan
