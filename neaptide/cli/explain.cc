// neaptide explain: why a plan is as it is, or why there is none.
#include <cmath>

#include "neaptide/cli/any_problem.hpp"
#include "neaptide/cli/interrupt.hpp"
#include "neaptide/cli/plan_text.hpp"

namespace neaptide::cli {

namespace {

using plan::BufferId;
using plan::DeviceId;
using plan::OpId;
using Rows = std::vector<std::vector<std::string>>;

constexpr Bytes kMiB = 1048576;

struct Flags {
  ModelFlags model;
  PlanFlags plan;
  std::string plan_path, of;
  int top = 8;
  bool inference = false, quick = false;
};

/// The words for one plan: names instead of ids.
class Words {
 public:
  Words(const plan::Problem& problem, const plan::Plan& plan) : p_(problem), plan_(plan) {}

  const std::string& buffer(BufferId b) const { return p_.buffers[b].name; }
  const std::string& device(DeviceId d) const { return p_.devices[d].name; }
  const std::string& impl(OpId op, int i) const { return p_.ops[op].impls[static_cast<std::size_t>(i)].name; }

  std::string at(int step) const {
    if (step < 0) return "the start";
    const plan::Step& s = plan_.steps[static_cast<std::size_t>(step)];
    std::string what = "free";
    if (const auto* c = std::get_if<plan::Compute>(&s)) what = p_.ops[c->op].name;
    if (std::holds_alternative<plan::Copy>(s)) what = "copy";
    return fmt::format("{} (step {})", what, step);
  }

  std::string why(const plan::Held& h) const {
    switch (h.why) {
      case plan::Held::Why::kHome:
        return "lives here";
      case plan::Held::Why::kRead:
        return "read by this step";
      case plan::Held::Why::kWritten:
        return "written by this step";
      case plan::Held::Why::kWaits:
        return "waits for " + at(h.next_use);
      case plan::Held::Why::kEnd:
        return "a result, kept to the end";
    }
    throw InternalError("a held buffer has an unknown reason");
  }

  std::optional<Bytes> budget(DeviceId d) const { return plan_.budgets.has(d) ? plan_.budgets[d] : std::nullopt; }

  /// "900 bytes, 100 over the budget", "900 bytes, which the budget allows".
  std::string against_budget(DeviceId d, Bytes bytes) const {
    const std::optional<Bytes> b = budget(d);
    if (!b.has_value()) return fmt::format("{} bytes", bytes);
    if (bytes <= *b) return fmt::format("{} bytes, which the budget allows", bytes);
    return fmt::format("{} bytes, {} over the budget", bytes, bytes - *b);
  }

 private:
  const plan::Problem& p_;
  const plan::Plan& plan_;
};

std::string size(Bytes bytes) { return fmt::format("{} bytes ({})", bytes, format_bytes(bytes)); }

void show_peak(Console& console, const Words& w, const plan::PeakAt& p, int top) {
  std::string text = fmt::format("\n{}: {}", console.painted(w.device(p.device), Paint::kBold), size(p.bytes));
  if (const auto budget = w.budget(p.device); budget.has_value()) text += fmt::format(" of {}", *budget);
  text += p.step < 0 ? " before the first step\n" : fmt::format(" at step {}, {}\n", p.step, p.during);
  text += fmt::format("{} steps hold at least 99 % of that\n", p.near);
  console.data(text);
  Rows rows = {{"held then", "bytes", "why"}};
  if (p.workspace > 0) rows.push_back({"(workspace)", std::to_string(p.workspace), "of this step"});
  Bytes rest = 0;
  std::size_t n_rest = 0;
  for (const plan::Held& h : p.held) {
    if (rows.size() <= static_cast<std::size_t>(top)) {
      rows.push_back({w.buffer(h.buffer), std::to_string(h.bytes), w.why(h)});
    } else {
      rest += h.bytes;
      ++n_rest;
    }
  }
  if (n_rest > 0) rows.push_back({fmt::format("({} more)", n_rest), std::to_string(rest), ""});
  if (rows.size() > 1) console.table(rows);
}

void show_kept(Console& console, const Words& w, const plan::Problem& problem, const plan::Explanation& e, int top) {
  if (e.kept.empty()) return;
  console.data(fmt::format("\nkept while unused ({}), by bytes x steps\n", e.kept.size()));
  Rows rows = {{"value", "bytes", "unused steps", "making it again"}};
  for (const plan::ValueStory& v : e.kept) {
    if (rows.size() > static_cast<std::size_t>(top)) break;
    rows.push_back({w.buffer(v.buffer), std::to_string(problem.buffers[v.buffer].bytes), std::to_string(v.idle),
                    v.remake ? format_seconds(*v.remake) : "not possible"});
  }
  console.table(rows);
}

void show_recomputed(Console& console, const plan::Problem& problem, const plan::Explanation& e, int top) {
  if (e.recomputed.empty()) return;
  console.data(fmt::format("\ncomputed again ({} ops, {} runs, {}), by seconds\n", e.recomputed.size(), e.totals.again,
                           format_seconds(e.totals.again_seconds)));
  Rows rows = {{"op", "runs", "seconds again"}};
  for (const plan::OpStory& o : e.recomputed) {
    if (rows.size() > static_cast<std::size_t>(top)) break;
    rows.push_back({problem.ops[o.op].name, std::to_string(o.runs.size()), format_seconds(o.again_seconds)});
  }
  console.table(rows);
}

/// What planning again shows, with and without one MiB more on a device: their difference is what it is worth.
struct MoreMiB {
  DeviceId device;
  double without = 0, with = 0;  // by the objective
  double saves() const { return std::max(0.0, without - with); }
};

double cost(const plan::Plan& plan) { return plan::cost_by(plan.cost, plan.objective); }

/// Plans under the budgets of `plan` again, `extra` bytes added on one device, starting from it.
double replan(const AnyProblem& input, const plan::Plan& plan, const std::string& planner, DeviceId d, Bytes extra) {
  plan::Options o = input.options;
  o.progress = nullptr;
  for (std::size_t i = 0; i < input.problem.devices.size(); ++i) {
    const DeviceId id(i);
    const auto budget = plan.budgets[id];
    if (!budget.has_value()) continue;
    o.budgets[input.problem.devices[id].name] = id == d ? checked_add(*budget, extra, "the budget") : *budget;
  }
  o.objective = plan.objective;
  o.start = plan.steps;
  const plan::Plan more = memory::plan_and_pack(input.problem, planner, o);
  return more.steps.empty() ? cost(plan) : std::min(cost(more), cost(plan));
}

struct Questions {
  std::vector<MoreMiB> more;
  std::optional<plan::FreeBudget> free;
  DeviceId free_device;
};

Questions ask(const Flags& flags, const AnyProblem& input, const plan::Plan& plan, Console& console) {
  Questions q;
  if (flags.quick) return q;
  for (std::size_t i = 0; i < input.problem.devices.size(); ++i) {
    const DeviceId d(i);
    if (!plan.budgets.has(d) || !plan.budgets[d].has_value()) continue;
    console.note(
        fmt::format("planning again with one more MiB on {} (--quick leaves that out)", input.problem.devices[d].name));
    const MoreMiB more{d, replan(input, plan, flags.plan.planner, d, 0),
                       replan(input, plan, flags.plan.planner, d, kMiB)};
    if (InterruptFlag::raised()) return q;  // half an answer would be a wrong one
    q.more.push_back(more);
  }
  if (q.more.empty()) return q;
  q.free_device = q.more.front().device;
  console.note("looking for the budget that costs nothing extra (--quick leaves that out)");
  plan::SweepOptions o;
  o.device = q.free_device;
  o.planners = {flags.plan.planner};
  o.plan = input.options;
  o.plan.progress = nullptr;
  o.plan.objective = plan.objective;
  for (std::size_t i = 0; i < input.problem.devices.size(); ++i) {
    const DeviceId d(i);
    if (plan.budgets.has(d) && plan.budgets[d].has_value())
      o.plan.budgets[input.problem.devices[d].name] = *plan.budgets[d];
  }
  q.free = plan::smallest_free_budget(input.problem, o);
  if (InterruptFlag::raised()) q.free.reset();
  return q;
}

void show_questions(Console& console, const Words& w, const plan::Plan& plan, const plan::Explanation& e,
                    const Questions& q) {
  std::string text;
  for (const MoreMiB& m : q.more) {
    text += fmt::format("one more MiB on {}: saves {} (planned again with and without it)\n", w.device(m.device),
                        m.saves() > 0 ? cost_text(m.saves(), plan.objective) : "nothing");
  }
  if (e.price && !e.price->device.empty()) {
    text += fmt::format("one more MiB on {}: the bound falls by {} (the price in its proof)\n", e.price->device,
                        cost_text(e.price->seconds_per_byte * static_cast<double>(kMiB), plan.objective));
  }
  if (q.free && q.free->plan) {
    text += fmt::format("no extra cost from {} on {}; proved: not below {}\n", size(q.free->found),
                        w.device(q.free_device), size(q.free->proved));
  }
  if (!text.empty()) console.data("\n" + text);
}

Json questions_json(const plan::Problem& problem, const Questions& q) {
  Json root{{"one_more_mib", Json::array()}};
  for (const MoreMiB& m : q.more) {
    root["one_more_mib"].push_back({{"device", problem.devices[m.device].name},
                                    {"cost", m.with},
                                    {"without", m.without},
                                    {"saves", m.saves()},
                                    {"by", "planning again with and without it"}});
  }
  root["no_extra_time"] = Json();
  if (q.free && q.free->plan) {
    root["no_extra_time"] = {{"device", problem.devices[q.free_device].name},
                             {"bytes", q.free->found},
                             {"proved", q.free->proved},
                             {"cost", q.free->cost}};
  }
  return root;
}

int explain_plan(const Flags& flags, const AnyProblem& input, const plan::Plan& plan, Console& console) {
  const plan::Problem& problem = input.problem;
  const plan::Explanation e = plan::explain(problem, plan);
  const Questions q = ask(flags, input, plan, console);
  console.end_progress();
  const int code = InterruptFlag::raised() ? kInterrupted : kOk;
  if (console.json) {
    Json root = parse_json(plan::to_json(problem, plan, e), "explanation");
    root.update(questions_json(problem, q));
    console.value(root);
    return code;
  }
  const Words w(problem, plan);
  std::string text =
      fmt::format("{}{}: {}", console.painted(plan::to_string(plan.status), Paint::kGood),
                  plan.planner.empty() ? "" : " by " + plan.planner, cost_text(cost(plan), plan.objective));
  if (plan.lower_bound)
    text += fmt::format("; proved: at least {}", cost_text(plan.lower_bound->seconds, plan.objective));
  if (plan.gap) text += fmt::format(" (gap {:.2f} points)", *plan.gap * 100);
  text +=
      fmt::format("\n{} runs again ({}), {} copies ({}, {})\n", e.totals.again, format_seconds(e.totals.again_seconds),
                  e.totals.copies, format_bytes(e.totals.copied), format_seconds(e.totals.copy_seconds));
  console.data(text);
  for (const plan::PeakAt& p : e.peaks) show_peak(console, w, p, flags.top);
  show_kept(console, w, problem, e, flags.top);
  show_recomputed(console, problem, e, flags.top);
  show_questions(console, w, plan, e, q);
  return code;
}

std::string stay_text(const Words& w, const plan::Residence& r, int n_steps) {
  std::string text = r.begin < 0 ? "at home from the start" : fmt::format("from {}", w.at(r.begin));
  if (r.made == plan::Residence::Made::kCopy) text += ", copied here";
  if (r.in_place) text += ", in the block of its input";
  switch (r.ended) {
    case plan::Residence::Ended::kLasts:
      text += ", to the end";
      break;
    case plan::Residence::Ended::kFreed:
      text += fmt::format(", freed at step {}", r.end);
      break;
    case plan::Residence::Ended::kTakenOver:
      text += fmt::format(", its block taken over by {}", w.at(r.end));
      break;
    case plan::Residence::Ended::kOverwritten:
      text += fmt::format(", overwritten elsewhere by {}", w.at(r.end));
      break;
  }
  std::string reads;
  for (std::size_t i = 0; i < r.reads.size() && i < 6; ++i) reads += (i == 0 ? "; read by " : ", ") + w.at(r.reads[i]);
  if (r.reads.size() > 6) reads += fmt::format(" and {} more", r.reads.size() - 6);
  return text + (n_steps == 0 ? "" : reads);
}

void show_value(Console& console, const Words& w, const plan::Problem& problem, const plan::ValueStory& v,
                const plan::Plan& plan) {
  std::string text =
      fmt::format("{}: {}\n", console.painted(w.buffer(v.buffer), Paint::kBold), size(problem.buffers[v.buffer].bytes));
  if (v.stays.empty()) text += "never exists in this plan: nothing that it chose needs it\n";
  const int n = static_cast<int>(plan.steps.size());
  for (const plan::Residence& r : v.stays) text += fmt::format("on {}: {}\n", w.device(r.device), stay_text(w, r, n));
  const bool kept = v.again == 0 && v.absences.empty();
  if (kept && v.idle > 0) {
    text += fmt::format("kept: it lies unused for {} steps; {}\n", v.idle,
                        v.remake ? fmt::format("making it again would take at least {}", format_seconds(*v.remake))
                                 : "nothing may make it again");
  }
  if (v.again > 0) {
    text += fmt::format("computed again: {} more {}, {}\n", v.again, v.again == 1 ? "run" : "runs",
                        format_seconds(v.again_seconds));
  }
  for (const plan::Absence& a : v.absences) {
    text += fmt::format("away from {} during steps {} to {}: saves {} bytes there; back by {} in {}\n",
                        w.device(a.device), a.from, a.to - 1, a.bytes, w.at(a.to), format_seconds(a.seconds));
    text += fmt::format("  had it stayed, {} would hold {}\n", w.at(a.at), w.against_budget(a.device, a.would_hold));
  }
  console.data(text);
}

void show_op(Console& console, const Words& w, const plan::Problem& problem, const plan::OpStory& o) {
  const plan::Op& op = problem.ops[o.op];
  std::string text = console.painted(op.name, Paint::kBold);
  if (o.runs.empty()) text += ": not run; nothing that the plan chose needs what it makes";
  if (o.runs.size() == 1) text += op.once ? ": runs once, as it must" : ": runs once";
  if (o.runs.size() > 1) {
    text += fmt::format(": runs {} times, {} of it again", o.runs.size(), format_seconds(o.again_seconds));
  }
  text += "\n";
  for (const plan::RunStory& r : o.runs) {
    const plan::Impl& impl = op.impls[static_cast<std::size_t>(r.impl)];
    text += fmt::format("step {}: '{}' on {}, {}{}; {} holds {} bytes\n", r.step, impl.name, w.device(impl.device),
                        format_seconds(impl.seconds), impl.in_place.empty() ? "" : ", in place", w.device(impl.device),
                        r.holds);
    if (!r.faster) {
      text += "  no implementation is faster\n";
      continue;
    }
    const plan::Impl& faster = op.impls[static_cast<std::size_t>(r.faster->impl)];
    text +=
        fmt::format("  next faster: '{}' saves {}; {} would then hold {}", faster.name, format_seconds(r.faster->saves),
                    w.device(faster.device), w.against_budget(faster.device, r.faster->would_hold));
    for (const BufferId b : r.faster->missing) text += fmt::format("; it reads '{}', which is not there", w.buffer(b));
    text += "\n";
  }
  console.data(text);
}

int explain_name(const Flags& flags, const plan::Problem& problem, const plan::Plan& plan, Console& console) {
  std::vector<std::string> known;
  BufferId buffer;
  OpId op;
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    known.push_back(problem.buffers[BufferId(i)].name);
    if (known.back() == flags.of) buffer = BufferId(i);
  }
  for (std::size_t i = 0; i < problem.ops.size(); ++i) {
    known.push_back(problem.ops[OpId(i)].name);
    if (known.back() == flags.of) op = OpId(i);
  }
  if (!buffer.valid() && !op.valid()) {
    throw UserError("the problem has no value and no op '{}'{}", flags.of, did_you_mean(flags.of, known));
  }
  const Words w(problem, plan);
  Json root{{"value", Json()}, {"op", Json()}};
  if (buffer.valid()) {
    const plan::ValueStory v = plan::explain_value(problem, plan, buffer);
    root["value"] = parse_json(plan::to_json(problem, v), "value");
    if (!console.json) show_value(console, w, problem, v, plan);
  }
  if (op.valid()) {
    const plan::OpStory o = plan::explain_op(problem, plan, op);
    root["op"] = parse_json(plan::to_json(problem, o), "op");
    if (!console.json) show_op(console, w, problem, o);
  }
  if (console.json) console.value(root);
  return kOk;
}

int explain_refusal(const plan::Problem& problem, const plan::Plan& plan, Console& console) {
  const plan::Refusal r = plan::explain_infeasible(problem, plan);
  if (console.json) {
    console.data(plan::to_json(problem, r));
    return kNoPlan;
  }
  const std::string& device = problem.devices[r.why.device].name;
  std::string text = fmt::format("{}: no plan fits {}", console.painted("infeasible", Paint::kBad), device);
  if (r.budget.has_value()) text += fmt::format(" with {}", size(*r.budget));
  text += fmt::format("\nproved: no plan in less than {}\n", size(r.why.proved));
  if (r.why.smallest > 0) text += fmt::format("found:  a plan in {}\n", size(r.why.smallest));
  if (!r.why.step.empty()) text += fmt::format("forced by {}, which needs at once\n", r.why.step);
  console.data(text);
  Rows rows = {{"buffer", "bytes", "why"}};
  for (const plan::Held& h : r.held) {
    if (h.why == plan::Held::Why::kHome && !problem.buffers[h.buffer].pageable) continue;
    rows.push_back({problem.buffers[h.buffer].name, std::to_string(h.bytes), "read or written"});
  }
  if (r.homes > 0) rows.push_back({"(all that lives here)", std::to_string(r.homes), "weights, state, inputs"});
  if (rows.size() > 1) console.table(rows);
  text = "\nwhat would help\n";
  if (r.impls.size() > 1 || (r.impls.size() == 1 && r.op.valid())) {
    for (const plan::Refusal::Need& n : r.impls) {
      const plan::Impl& impl = problem.ops[r.op].impls[static_cast<std::size_t>(n.impl)];
      text += fmt::format("  '{}' needs at least {} (workspace {})\n", impl.name, size(n.bytes), impl.workspace);
    }
  }
  if (r.batch && *r.batch < 1) {
    text += fmt::format("  {:.1f} % of the batch would fit at this step, if all but what lives there shrinks with it\n",
                        100 * *r.batch);
  }
  if (!r.why.advice.empty()) text += fmt::format("  {}\n", r.why.advice);
  console.data(text);
  return kNoPlan;
}

plan::Plan plan_of(const Flags& flags, const AnyProblem& input, Console& console) {
  if (flags.plan_path.empty()) return make_plan(input.problem, flags.plan, console);
  if (!flags.plan.budgets.empty()) throw UserError("a plan has its budgets; give a plan or --budget, not both");
  return session::load_plan(input.problem, flags.plan_path);
}

int explain(Flags& flags, Console& console) {
  const AnyProblem input = load_any_problem(flags.model, flags.plan, flags.inference, console);
  const InterruptFlag interrupt;
  const plan::Plan plan = plan_of(flags, input, console);
  if (plan.steps.empty() && plan.infeasible) return explain_refusal(input.problem, plan, console);
  if (plan.steps.empty()) {
    if (console.json) console.data(plan::to_json(input.problem, plan));
    if (!console.json) show_plan(console, input.problem, plan);
    return exit_of(plan);
  }
  const plan::Report report = plan::verify(input.problem, plan, 1);
  if (!report.ok()) {
    const plan::Violation& v = report.violations.front();
    console.error(fmt::format("'{}' breaks rule {} at step {}: {}", flags.plan_path, v.rule, v.step, v.reason));
    return kNotVerified;
  }
  if (!flags.of.empty()) return explain_name(flags, input.problem, plan, console);
  return explain_plan(flags, input, plan, console);
}

std::function<int()> declare(CLI::App& app, Console& console) {
  auto flags = std::make_shared<Flags>();
  app.add_option("FILE", flags->model.path, "an ONNX model or a problem file")->required();
  app.add_option("PLAN", flags->plan_path, "a plan for it; default: plan first");
  app.add_option("--of", flags->of, "a value or an op: its whole story");
  app.add_option("--top", flags->top, "how many of each kind are listed")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--quick", flags->quick, "leave out what needs more planning: one more MiB, no extra time");
  app.add_flag("--inference", flags->inference, "the model itself, not its training");
  declare_plan_flags(app, flags->plan);
  declare_model_flags(app, flags->model);
  declare_training_flags(app, flags->model);
  return [flags, &console] { return explain(*flags, console); };
}

}  // namespace

const Verb kExplainVerb = {
    "explain", "Says why a plan is as it is - or why there is none - in numbers that can be checked.", declare};

}  // namespace neaptide::cli
