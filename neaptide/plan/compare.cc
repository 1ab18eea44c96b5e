#include "neaptide/plan/compare.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/json.hpp"
#include "neaptide/plan/verify.hpp"

namespace neaptide::plan {
namespace {

const Impl& impl_of(const Problem& problem, const Compute& c) {
  return problem.ops[c.op].impls[static_cast<std::size_t>(c.impl)];
}

Totals totals_of(const Problem& problem, const Plan& plan, const Report& replay) {
  Totals t;
  t.seconds = replay.cost.seconds;
  t.overlapped = replay.cost.overlapped;
  t.peak = replay.peak;
  std::set<OpId> seen;
  for (const Step& step : plan.steps) {
    if (const auto* c = std::get_if<Compute>(&step)) {
      ++t.computes;
      const Impl& impl = impl_of(problem, *c);
      if (!impl.in_place.empty()) ++t.in_place;
      if (seen.insert(c->op).second) continue;
      ++t.again;
      t.again_seconds += impl.seconds;
    } else if (const auto* k = std::get_if<Copy>(&step)) {
      ++t.copies;
      t.copied = checked_add(t.copied, problem.buffers[k->buffer].bytes, "the bytes copied");
      t.copy_seconds += copy_seconds(problem, k->buffer, k->from, k->to).value_or(0);
    }
  }
  return t;
}

Report replayed(const Problem& problem, const Plan& plan, const char* which) {
  if (plan.steps.empty()) throw UserError("{} plan has no steps: there is nothing to compare", which);
  Report r = verify(problem, plan, 1);
  if (r.ok()) return r;
  const Violation& v = r.violations.front();
  throw UserError("{} plan breaks rule {} at step {}: {}", which, v.rule, v.step, v.reason);
}

/// By op: the implementations of its runs.
std::vector<std::vector<int>> runs_of(const Problem& problem, const Plan& plan) {
  std::vector<std::vector<int>> out(problem.ops.size());
  for (const Step& step : plan.steps) {
    if (const auto* c = std::get_if<Compute>(&step)) out[c->op.index()].push_back(c->impl);
  }
  return out;
}

Seconds seconds_of(const Op& op, const std::vector<int>& runs) {
  Seconds sum = 0;
  for (const int i : runs) sum += op.impls[static_cast<std::size_t>(i)].seconds;
  return sum;
}

std::vector<OpDifference> op_differences(const Problem& problem, const Plan& a, const Plan& b) {
  const auto runs_a = runs_of(problem, a), runs_b = runs_of(problem, b);
  std::vector<OpDifference> out;
  for (std::size_t i = 0; i < problem.ops.size(); ++i) {
    if (runs_a[i] == runs_b[i]) continue;
    const Op& op = problem.ops[OpId(i)];
    out.push_back({OpId(i), runs_a[i], runs_b[i], seconds_of(op, runs_a[i]), seconds_of(op, runs_b[i])});
  }
  std::stable_sort(out.begin(), out.end(), [](const OpDifference& x, const OpDifference& y) {
    return std::abs(x.a_seconds - x.b_seconds) > std::abs(y.a_seconds - y.b_seconds);
  });
  return out;
}

/// How often each buffer is made by a run.
std::vector<int> makings(const Problem& problem, const Plan& plan) {
  std::vector<int> out(problem.buffers.size(), 0);
  for (const Step& step : plan.steps) {
    const auto* c = std::get_if<Compute>(&step);
    if (c == nullptr) continue;
    for (const BufferId b : impl_of(problem, *c).writes) ++out[b.index()];
  }
  return out;
}

std::vector<BufferId> made_less_often_by(const Problem& problem, const std::vector<int>& here,
                                         const std::vector<int>& there) {
  std::vector<BufferId> out;
  for (std::size_t b = 0; b < here.size(); ++b) {
    if (here[b] >= 1 && there[b] > here[b]) out.emplace_back(b);
  }
  std::stable_sort(out.begin(), out.end(),
                   [&](BufferId x, BufferId y) { return problem.buffers[x].bytes > problem.buffers[y].bytes; });
  return out;
}

std::vector<CopyDifference> copy_differences(const Problem& problem, const Plan& a, const Plan& b) {
  std::vector<CopyDifference> all(problem.buffers.size());
  const auto count = [&](const Plan& plan, int CopyDifference::*n) {
    for (const Step& step : plan.steps) {
      if (const auto* k = std::get_if<Copy>(&step)) ++(all[k->buffer.index()].*n);
    }
  };
  count(a, &CopyDifference::a);
  count(b, &CopyDifference::b);
  std::vector<CopyDifference> out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].buffer = BufferId(i);
    if (all[i].a != all[i].b) out.push_back(all[i]);
  }
  std::stable_sort(out.begin(), out.end(), [&](const CopyDifference& x, const CopyDifference& y) {
    return problem.buffers[x.buffer].bytes > problem.buffers[y.buffer].bytes;
  });
  return out;
}

std::vector<OpId> first_runs(const Problem& problem, const Plan& plan) {
  std::vector<char> seen(problem.ops.size(), 0);
  std::vector<OpId> out;
  for (const Step& step : plan.steps) {
    const auto* c = std::get_if<Compute>(&step);
    if (c == nullptr || seen[c->op.index()] != 0) continue;
    seen[c->op.index()] = 1;
    out.push_back(c->op);
  }
  return out;
}

/// What is left of the ops that both plans run beside a longest increasing subsequence of b's positions in a's order.
std::vector<OpId> moved_ops(const Problem& problem, const Plan& a, const Plan& b) {
  std::vector<int> position(problem.ops.size(), -1);
  const std::vector<OpId> order_b = first_runs(problem, b);
  for (std::size_t i = 0; i < order_b.size(); ++i) position[order_b[i].index()] = static_cast<int>(i);
  std::vector<OpId> both;
  for (const OpId op : first_runs(problem, a)) {
    if (position[op.index()] >= 0) both.push_back(op);
  }
  std::vector<int> ends;  // by length - 1: index of the op that ends a shortest such run
  std::vector<int> before(both.size(), -1);
  for (std::size_t i = 0; i < both.size(); ++i) {
    const auto at = std::partition_point(ends.begin(), ends.end(), [&](int e) {
      return position[both[static_cast<std::size_t>(e)].index()] < position[both[i].index()];
    });
    if (at != ends.begin()) before[i] = *(at - 1);
    if (at == ends.end()) {
      ends.push_back(static_cast<int>(i));
    } else {
      *at = static_cast<int>(i);
    }
  }
  std::vector<char> stays(both.size(), 0);
  for (int i = ends.empty() ? -1 : ends.back(); i >= 0; i = before[static_cast<std::size_t>(i)]) {
    stays[static_cast<std::size_t>(i)] = 1;
  }
  std::vector<OpId> out;
  for (std::size_t i = 0; i < both.size(); ++i) {
    if (stays[i] == 0) out.push_back(both[i]);
  }
  return out;
}

Json totals_json(const Problem& problem, const Totals& t) {
  Json peak = Json::object();
  for (std::size_t d = 0; d < t.peak.size(); ++d) peak[problem.devices[DeviceId(d)].name] = t.peak[DeviceId(d)];
  return {{"seconds", t.seconds},   {"overlapped", t.overlapped}, {"peak", peak},
          {"computes", t.computes}, {"again", t.again},           {"again_seconds", t.again_seconds},
          {"copies", t.copies},     {"copied_bytes", t.copied},   {"copy_seconds", t.copy_seconds},
          {"in_place", t.in_place}};
}

}  // namespace

Totals totals(const Problem& problem, const Plan& plan) { return totals_of(problem, plan, verify(problem, plan, 1)); }

Comparison compare(const Problem& problem, const Plan& a, const Plan& b) {
  Comparison c;
  c.a = totals_of(problem, a, replayed(problem, a, "the first"));
  c.b = totals_of(problem, b, replayed(problem, b, "the second"));
  c.ops = op_differences(problem, a, b);
  const std::vector<int> made_a = makings(problem, a), made_b = makings(problem, b);
  c.a_keeps = made_less_often_by(problem, made_a, made_b);
  c.b_keeps = made_less_often_by(problem, made_b, made_a);
  c.copies = copy_differences(problem, a, b);
  c.moved = moved_ops(problem, a, b);
  return c;
}

std::string to_json(const Problem& problem, const Comparison& c) {
  const auto names = [&](const auto& ids, const auto& list) {
    Json out = Json::array();
    for (const auto id : ids) out.push_back(list[id].name);
    return out;
  };
  const auto impls = [&](const Op& op, const std::vector<int>& runs) {
    Json out = Json::array();
    for (const int i : runs) out.push_back(op.impls[static_cast<std::size_t>(i)].name);
    return out;
  };
  Json root{{"format", "neaptide.comparison"}, {"version", 1}, {"same", c.same()}};
  root["a"] = totals_json(problem, c.a);
  root["b"] = totals_json(problem, c.b);
  root["ops"] = Json::array();
  for (const OpDifference& d : c.ops) {
    const Op& op = problem.ops[d.op];
    root["ops"].push_back({{"op", op.name},
                           {"a", impls(op, d.a)},
                           {"b", impls(op, d.b)},
                           {"a_seconds", d.a_seconds},
                           {"b_seconds", d.b_seconds}});
  }
  root["a_keeps"] = names(c.a_keeps, problem.buffers);
  root["b_keeps"] = names(c.b_keeps, problem.buffers);
  root["copies"] = Json::array();
  for (const CopyDifference& d : c.copies) {
    root["copies"].push_back({{"buffer", problem.buffers[d.buffer].name}, {"a", d.a}, {"b", d.b}});
  }
  root["moved"] = names(c.moved, problem.ops);
  return json_text(root);
}

}  // namespace neaptide::plan
