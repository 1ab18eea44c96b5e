// neaptide sweep: cost against the budget of one device, with the proved bound at every point.
#include <chrono>
#include <cmath>

#include "neaptide/cli/any_problem.hpp"
#include "neaptide/cli/interrupt.hpp"
#include "neaptide/cli/plan_text.hpp"

namespace neaptide::cli {

namespace {

struct Flags {
  ModelFlags model;
  PlanFlags plan;
  std::vector<std::string> planners;
  std::string device, from, to, output, csv, svg;
  int points = 20;
  bool inference = false, cold = false;
};

/// By name; without one the first device with a budget of its own, else the first.
plan::DeviceId device_of(const plan::Problem& problem, const std::string& name) {
  for (std::size_t d = 0; d < problem.devices.size() && name.empty(); ++d) {
    if (problem.devices[plan::DeviceId(d)].budget.has_value()) return plan::DeviceId(d);
  }
  std::vector<std::string> known;
  for (std::size_t d = 0; d < problem.devices.size(); ++d) {
    known.push_back(problem.devices[plan::DeviceId(d)].name);
    if (name.empty() || known.back() == name) return plan::DeviceId(d);
  }
  throw UserError("there is no device '{}'{}; the devices are {}", name, did_you_mean(name, known), join(known, ", "));
}

/// "40%", "800MiB" or "min" of the swept device.
Bytes amount(const plan::Problem& problem, const plan::SweepOptions& o, const std::string& word) {
  const std::string& name = problem.devices[o.device].name;
  const std::vector<std::string> words = {name + "=" + word};
  return session::resolve_budgets(problem, words, o.planners.front(), o.plan).at(name);
}

plan::SweepOptions options_of(const Flags& flags, const AnyProblem& input, Console& console) {
  plan::SweepOptions o;
  o.device = device_of(input.problem, flags.device);
  if (!flags.planners.empty()) o.planners = flags.planners;
  o.plan = input.options;
  o.plan.budgets = session::resolve_budgets(input.problem, flags.plan.budgets, o.planners.front(), o.plan);
  if (o.plan.budgets.count(input.problem.devices[o.device].name) > 0) {
    throw UserError("the budget of '{}' is what is swept; give --from and --to instead",
                    input.problem.devices[o.device].name);
  }
  o.plan.progress = nullptr;  // the sweep has its own
  o.points = flags.points;
  o.warm = !flags.cold;
  const bool ours = std::find(o.planners.begin(), o.planners.end(), "neaptide") != o.planners.end();
  if (!flags.from.empty()) {
    o.from = amount(input.problem, o, flags.from);
  } else {
    console.progress("sweeping: the smallest budget", false);
    const auto begin = std::chrono::steady_clock::now();
    o.from = session::smallest_budget(input.problem, o.device, ours ? "neaptide" : o.planners.front(), o.plan);
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    o.plan.time_limit = std::max(0.0, o.plan.time_limit - spent.count());
  }
  console.note(fmt::format("sweeping the budget of {} from {} bytes ({}) up", input.problem.devices[o.device].name,
                           *o.from, format_bytes(*o.from)));
  if (!flags.to.empty()) o.to = amount(input.problem, o, flags.to);
  o.make = [](const plan::Problem& p, std::string_view planner, const plan::Options& options) {
    return memory::plan_and_pack(p, planner, options);
  };
  o.progress = [&console](int done, int total, Bytes budget) {
    const std::string at = budget == 0 ? "no budget" : format_bytes(budget);
    console.progress(
        fmt::format("sweeping {} {} of about {}: {}", bar(static_cast<double>(done) / total), done, total, at), false);
  };
  return o;
}

/// "+12.34 %"; what rounds to nothing has no minus.
std::string extra(double share) { return fmt::format("{:+.2f} %", std::abs(share) < 5e-5 ? 0.0 : 100 * share); }

std::string share_of_keep_all(const plan::Sweep& s, Bytes bytes) {
  return s.keep_all == 0 ? "-"
                         : fmt::format("{:.1f} %", 100 * static_cast<double>(bytes) / static_cast<double>(s.keep_all));
}

std::string cost_cell(const plan::Sweep& s, const plan::Curve& curve, Bytes budget) {
  const plan::Plan* p = plan::best_within(curve, budget, s.device_id);
  return p == nullptr ? "no plan" : extra(plan::overhead(s, plan::cost_of(s, *p)));
}

std::vector<std::string> heading(const plan::Sweep& s) {
  std::vector<std::string> row = {"budget", "budget", "of keep-all"};
  if (s.curves.size() == 1) {
    row.emplace_back(s.objective == plan::Objective::kEnergy ? "energy" : "time");
    for (const char* name : {"extra", "bound", "gap", "needs"}) row.emplace_back(name);
    return row;
  }
  for (const plan::Curve& c : s.curves) row.push_back(c.planner);
  row.emplace_back("bound");
  return row;
}

std::vector<std::string> row_of(const plan::Sweep& s, Bytes budget) {
  std::vector<std::string> row = {std::to_string(budget), format_bytes(budget), share_of_keep_all(s, budget)};
  const plan::LowerBound* bound = plan::bound_at(s, budget);
  const std::string proved = bound == nullptr ? "-" : extra(std::max(0.0, plan::overhead(s, bound->seconds)));
  if (s.curves.size() > 1) {
    for (const plan::Curve& c : s.curves) row.push_back(cost_cell(s, c, budget));
    row.push_back(proved);
    return row;
  }
  const plan::Plan* p = plan::best_within(s.curves[0], budget, s.device_id);
  if (p == nullptr) {
    row.insert(row.end(), {budget < s.proved ? "impossible" : "no plan", "-", proved, "-", "-"});
    return row;
  }
  const std::optional<double> gap = plan::gap_at(s, s.curves[0], budget);
  row.insert(row.end(), {cost_text(plan::cost_of(s, *p), s.objective), cost_cell(s, s.curves[0], budget), proved,
                         gap ? fmt::format("{:.2f}", 100 * *gap) : "-", std::to_string(plan::extent(*p, s.device_id))});
  return row;
}

void show(Console& console, const plan::Sweep& s) {
  std::vector<std::vector<std::string>> table = {heading(s)};
  for (const Bytes budget : s.budgets) table.push_back(row_of(s, budget));
  console.table(table);
  const auto size = [&](Bytes b) {
    return fmt::format("{} bytes ({}, {} of keep-all)", b, format_bytes(b), share_of_keep_all(s, b));
  };
  std::string text = fmt::format("\nkeep-all       {}\n", size(s.keep_all));
  if (s.smallest > 0) {
    text += fmt::format("smallest found {}", size(s.smallest));
    text += s.proved > 0 ? fmt::format("; no plan exists in less than {}\n", s.proved) : "\n";
  }
  if (s.free.plan) {
    text += fmt::format("no extra cost  {}", size(s.free.found));
    text += s.free.proved > 0 ? fmt::format("; in less than {} every plan costs more\n", s.free.proved)
                              : "; costs no more\n";
    text += fmt::format("               than {}, the cheapest run without a budget{}\n",
                        cost_text(s.free.cost, s.objective), s.free.proved_cheapest ? " (proved)" : "");
  }
  if (!s.stopped_by.empty())
    text += fmt::format("stopped by     {}; budgets not tried have their neighbours' plans\n", s.stopped_by);
  console.data(text);
}

int sweep(Flags& flags, Console& console) {
  const AnyProblem input = load_any_problem(flags.model, flags.plan, flags.inference, console);
  const InterruptFlag interrupt;
  const plan::Sweep s = plan::sweep(input.problem, options_of(flags, input, console));
  console.end_progress();
  if (!flags.output.empty()) write_file_atomically(flags.output, plan::to_json(s));
  if (!flags.csv.empty()) write_file_atomically(flags.csv, plan::to_csv(s));
  if (!flags.svg.empty()) write_file_atomically(flags.svg, report::curve_svg(s));
  if (console.json) {
    console.data(plan::to_json(s));
  } else {
    show(console, s);
  }
  if (s.stopped_by == "interrupt") return kInterrupted;
  const bool some = std::any_of(s.curves.begin(), s.curves.end(), [&](const plan::Curve& c) {
    return plan::best_within(c, s.budgets.back(), s.device_id) != nullptr;
  });
  if (some) return kOk;
  return s.stopped_by.empty() ? kNoPlan : kTimeLimit;
}

std::function<int()> declare(CLI::App& app, Console& console) {
  auto flags = std::make_shared<Flags>();
  app.add_option("FILE", flags->model.path, "an ONNX model or a problem file")->required();
  app.add_option("--device", flags->device, "whose budget is swept; default: the first with a budget, else the first");
  app.add_option("--from", flags->from, "smallest budget tried, as --budget takes it; default: min");
  app.add_option("--to", flags->to, "largest budget tried; default: the keep-all peak");
  app.add_option("--points", flags->points, "how many budgets are tried")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("-o,--output", flags->output, "where the curve goes as JSON");
  app.add_option("--csv", flags->csv, "where the curve goes as CSV");
  app.add_option("--svg", flags->svg, "where the picture goes");
  app.add_flag("--cold", flags->cold, "plan every budget from scratch");
  app.add_flag("--inference", flags->inference, "sweep the model itself, not its training");
  declare_plan_flags(app, flags->plan);
  app.remove_option(app.get_option("--planner"));
  app.add_option("--planner", flags->planners, "which planner; several times: one curve each; default: neaptide")
      ->allow_extra_args(false);
  declare_model_flags(app, flags->model);
  declare_training_flags(app, flags->model);
  return [flags, &console] { return sweep(*flags, console); };
}

}  // namespace

const Verb kSweepVerb = {"sweep", "Draws the cost against the memory budget, with a proved bound at every point.",
                         declare};

}  // namespace neaptide::cli
