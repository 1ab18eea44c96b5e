#include "neaptide/cli/plan_text.hpp"

#include <array>
#include <set>

namespace neaptide::cli {

int exit_of(const plan::Plan& plan) {
  if (plan.stopped_by == "interrupt") return kInterrupted;
  if (plan.status == plan::Status::kInfeasible) return kNoPlan;
  if (plan.status == plan::Status::kTimeLimit && plan.steps.empty()) return kTimeLimit;
  return kOk;
}

StepCounts count_steps(const plan::Problem& problem, const plan::Plan& plan) {
  StepCounts out;
  std::set<plan::OpId> seen;
  for (const plan::Step& step : plan.steps) {
    if (std::holds_alternative<plan::Copy>(step)) ++out.copies;
    const auto* c = std::get_if<plan::Compute>(&step);
    if (c == nullptr) continue;
    ++out.computes;
    if (!seen.insert(c->op).second) ++out.again;
    if (!problem.ops[c->op].impls[static_cast<std::size_t>(c->impl)].in_place.empty()) ++out.in_place;
  }
  return out;
}

std::string cost_text(double cost, plan::Objective objective) {
  return objective == plan::Objective::kEnergy ? fmt::format("{:.6g} J", cost) : format_seconds(cost);
}

namespace {

std::string bytes_text(Bytes bytes) { return fmt::format("{} ({})", bytes, format_bytes(bytes)); }

void show_infeasible(Console& console, const plan::Problem& problem, const plan::Plan& plan) {
  const plan::Infeasible& why = *plan.infeasible;
  std::string text = fmt::format("{}: no plan fits\n", console.painted("infeasible", Paint::kBad));
  text += fmt::format("device             {}\n", problem.devices[why.device].name);
  if (plan.budgets[why.device].has_value()) {
    text += fmt::format("budget             {}\n", bytes_text(plan.budgets[why.device].value_or(0)));
  }
  if (why.smallest > 0) text += fmt::format("smallest feasible  {}\n", bytes_text(why.smallest));
  text += fmt::format("proved impossible  below {}\n", bytes_text(why.proved));
  if (!why.step.empty()) text += fmt::format("forced by          {}\n", why.step);
  for (std::size_t i = 0; i < why.buffers.size() && i < 8; ++i) {
    text += fmt::format("{}{}\n", i == 0 ? "held then          " : "                   ", why.buffers[i]);
  }
  if (why.buffers.size() > 8) text += fmt::format("                   and {} more\n", why.buffers.size() - 8);
  if (!why.advice.empty()) text += fmt::format("what would help    {}\n", why.advice);
  console.data(text);
}

std::string bound_text(const plan::Plan& plan) {
  if (!plan.lower_bound) return "";
  return fmt::format("bound       {} for {}\n", cost_text(plan.lower_bound->seconds, plan.objective),
                     plan.lower_bound->valid_for == plan::BoundScope::kAnyOrder ? "any order" : "this order");
}

void show_late(Console& console, const plan::Plan& plan) {
  const bool interrupted = plan.stopped_by == "interrupt";
  console.data(fmt::format("{}: {} before a plan was found, and none is proved impossible\n{}",
                           console.painted(interrupted ? "interrupted" : plan::to_string(plan.status), Paint::kBad),
                           interrupted ? "stopped" : "the time ended", bound_text(plan)));
}

}  // namespace

void show_plan(Console& console, const plan::Problem& problem, const plan::Plan& plan) {
  if (plan.infeasible && plan.steps.empty()) return show_infeasible(console, problem, plan);
  if (plan.status == plan::Status::kTimeLimit && plan.steps.empty()) return show_late(console, plan);
  const StepCounts n = count_steps(problem, plan);
  std::string text =
      fmt::format("{} by {}\n", console.painted(plan::to_string(plan.status), Paint::kGood), plan.planner);
  if (!plan.stopped_by.empty()) text += fmt::format("stopped by  {}\n", plan.stopped_by);
  text += fmt::format("steps       {} computed ({} again, {} in place), {} copies\n", n.computes, n.again, n.in_place,
                      n.copies);
  text += fmt::format("cost        {} ({} overlapped)\n", format_seconds(plan.cost.seconds),
                      format_seconds(plan.cost.overlapped));
  if (plan.cost.joules) text += fmt::format("energy      {:.6g} J\n", *plan.cost.joules);
  if (plan.objective != plan::Objective::kTime)
    text += fmt::format("objective   {}\n", plan::to_string(plan.objective));
  text += bound_text(plan);
  if (plan.gap) text += fmt::format("gap         {:.2f} points\n", *plan.gap * 100);
  console.data(text);
  std::vector<std::vector<std::string>> rows = {{"device", "peak", "arena", "budget", "peak", "arena", "budget"}};
  for (std::size_t i = 0; i < problem.devices.size(); ++i) {
    const plan::DeviceId d(i);
    const Bytes top = plan.layout ? plan.layout->top[d] : -1;
    const Bytes budget = plan.budgets.has(d) ? plan.budgets[d].value_or(-1) : -1;
    const std::array<Bytes, 3> sizes = {plan.peak[d], top, budget};
    std::vector<std::string> row = {problem.devices[d].name};
    for (const Bytes b : sizes) row.push_back(b < 0 ? "-" : std::to_string(b));
    for (const Bytes b : sizes) row.push_back(b < 0 ? "-" : format_bytes(b));
    rows.push_back(std::move(row));
  }
  console.table(rows);
}

}  // namespace neaptide::cli
