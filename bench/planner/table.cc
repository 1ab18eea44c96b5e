#include "bench/planner/table.hpp"

#include <fmt/core.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "neaptide/plan/certify.hpp"
#include "neaptide/plan/simulate.hpp"

namespace neaptide::bench {
namespace {

const char* mark(std::optional<bool> passed) { return !passed ? "" : *passed ? "  ok" : "  NOT REACHED"; }

}  // namespace

std::optional<std::string> Settings::file(const std::string& name) const {
  if (std::filesystem::exists(shared + name)) return shared + name;
  fmt::print("{:34} skipped: {}{} is absent\n", name, shared, name);
  return std::nullopt;
}

std::optional<plan::Problem> Settings::instance(const std::string& name) const {
  const auto path = file(name + ".json");
  if (!path) return std::nullopt;
  return plan::read_problem(*path);
}

plan::Options Settings::options() const {
  plan::Options o;
  o.time_limit = time_limit;
  o.effort = effort;
  o.threads = threads;
  return o;
}

Result solve(const plan::Problem& problem, plan::Options options, const std::string& planner) {
  using Clock = std::chrono::steady_clock;
  Result r;
  const auto begin = Clock::now();
  options.progress = [&](const plan::Progress& p) {
    if (r.first_plan == 0 && p.incumbent < std::numeric_limits<double>::infinity()) {
      r.first_plan = std::chrono::duration<double>(Clock::now() - begin).count();
    }
    return true;
  };
  r.plan = plan::make_plan(problem, planner, options);
  r.base = simulate(problem, keep_all_steps(problem)).cost.seconds;
  if (r.plan.lower_bound) r.certified = certify(plan::with_options(problem, options), *r.plan.lower_bound).ok;
  return r;
}

Table::Table(std::string name, std::string requirement) : name_(std::move(name)), requirement_(std::move(requirement)) {
  fmt::print("\n{}: {}\n", name_, requirement_);
  fmt::print("{:34} {:>9} {:>11} {:>11} {:>9} {:>9} {:>6} {:>7}  {}\n", "problem", "budget", "ours", "bound", "gap",
             "certified", "first", "seconds", "reference");
}

void Table::row(const Result& r, const Labels& labels, std::optional<bool> passed) {
  const auto show = [&](Seconds s) {
    if (labels.unit == Unit::kSeconds) return fmt::format("{:.6f}", s);
    const double percent = 100 * (s / r.base - 1);
    return fmt::format("{:.4f}%", std::abs(percent) < 5e-5 ? 0 : percent);  // no minus before a zero
  };
  if (!r.found()) {
    const bool proved = r.plan.infeasible->proved > *r.plan.budgets[r.plan.infeasible->device];
    fmt::print("{:34} {:>9} {:>11} {:>11} {:>9} {:>9} {:>6} {:>7.2f}  {}{}\n", labels.problem, labels.budget,
               "infeasible", "-", "-", proved ? "proved" : "no", "-", r.plan.seconds_spent, labels.reference,
               mark(passed));
  } else {
    const bool bound = r.plan.lower_bound.has_value();
    fmt::print("{:34} {:>9} {:>11} {:>11} {:>8.4f}% {:>9} {:>6.2f} {:>7.2f}  {}{}\n", labels.problem, labels.budget,
               show(r.plan.cost.seconds), bound ? show(r.plan.lower_bound->seconds) : "-", r.gap(),
               r.certified ? "yes" : "no", r.first_plan, r.plan.seconds_spent, labels.reference, mark(passed));
  }
  count(passed);
}

void Table::line(const std::string& text, std::optional<bool> passed) {
  fmt::print("{}{}\n", text, mark(passed));
  count(passed);
}

void Table::count(std::optional<bool> passed) {
  std::fflush(stdout);
  n_required_ += passed.has_value() ? 1 : 0;
  n_passed_ += passed.value_or(false) ? 1 : 0;
}

void Table::verdict() const {
  const char* word = n_required_ == 0 ? "skipped" : n_passed_ == n_required_ ? "passed" : "failed";
  fmt::print("{}: {} ({} of {}; {})\n", name_, word, n_passed_, n_required_, requirement_);
  std::fflush(stdout);
}

}  // namespace neaptide::bench
