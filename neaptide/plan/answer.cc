#include "neaptide/plan/answer.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/text.hpp"
#include "neaptide/plan/forced.hpp"
#include "neaptide/plan/planners/last.hpp"
#include "neaptide/plan/simulate.hpp"

namespace neaptide::plan {
namespace {

/// Above this many ops the quadratic sequence of `last` is not tried for the smallest budget.
constexpr std::size_t kMostOpsForLast = 600;

bool fits_elsewhere(const Problem& problem, const IdVector<DeviceTag, Bytes>& peak, DeviceId except) {
  for (std::size_t d = 0; d < peak.size(); ++d) {
    const auto budget = problem.devices[DeviceId(d)].budget;
    if (DeviceId(d) != except && budget && peak[DeviceId(d)] > *budget) return false;
  }
  return true;
}

DeviceId worst_device(const Problem& problem, const IdVector<DeviceTag, Bytes>& peak) {
  DeviceId worst(0);
  Bytes most = 0;
  for (std::size_t d = 0; d < peak.size(); ++d) {
    const Bytes over = peak[DeviceId(d)] - problem.devices[DeviceId(d)].budget.value_or(peak[DeviceId(d)]);
    if (over > most) worst = DeviceId(d);
    most = std::max(most, over);
  }
  return worst;
}

/// What lies on the device at the sequence's peak.
void name_peak(const Problem& problem, const std::vector<Step>& steps, Infeasible& why) {
  const Simulation sim = simulate(problem, steps);
  const std::vector<Bytes>& held = sim.held[why.device.index()];
  if (held.empty()) return;
  const auto at = static_cast<std::size_t>(std::max_element(held.begin(), held.end()) - held.begin());
  std::vector<char> there(problem.buffers.size(), 0);
  for (std::size_t b = 0; b < there.size(); ++b) there[b] = problem.buffers[BufferId(b)].home == why.device ? 1 : 0;
  for (std::size_t i = 0; i <= at; ++i) {
    if (const auto* c = std::get_if<Compute>(&steps[i])) {
      const Impl& impl = problem.ops[c->op].impls[static_cast<std::size_t>(c->impl)];
      if (impl.device == why.device) {
        for (BufferId b : impl.writes) there[b.index()] = 1;
        if (i < at) {
          for (const InPlace& pair : impl.in_place) there[pair.in.index()] = 0;
        }
      }
      if (i == at) why.step = problem.ops[c->op].name;
    } else if (const auto* k = std::get_if<Copy>(&steps[i])) {
      if (k->to == why.device) there[k->buffer.index()] = 1;
      if (i == at) why.step = "copy of " + problem.buffers[k->buffer].name;
    } else if (const auto* f = std::get_if<Free>(&steps[i])) {
      if (f->device == why.device) there[f->buffer.index()] = 0;
    }
  }
  std::vector<BufferId> list;
  for (std::size_t b = 0; b < there.size(); ++b) {
    if (there[b] != 0) list.emplace_back(b);
  }
  std::stable_sort(list.begin(), list.end(),
                   [&](BufferId a, BufferId b) { return problem.buffers[a].bytes > problem.buffers[b].bytes; });
  why.buffers.clear();
  for (BufferId b : list) why.buffers.push_back(problem.buffers[b].name);
}

std::string advice_for(const Problem& problem, const Infeasible& why, bool proved) {
  const std::string& device = problem.devices[why.device].name;
  if (proved) {
    return fmt::format(
        "give {} at least {} bytes, or make '{}' smaller: a smaller batch, an implementation with less "
        "workspace or in place, pageable homes with a device to page to",
        device, std::max(why.smallest, why.proved), why.step);
  }
  return fmt::format(
      "this planner needs {} bytes on {}, and it is not proved that less cannot do: try planner "
      "'neaptide', or another budget",
      why.smallest, device);
}

}  // namespace

Bytes overflow(const Problem& problem, const IdVector<DeviceTag, Bytes>& peak) {
  Bytes most = 0;
  for (std::size_t d = 0; d < peak.size(); ++d) {
    const auto budget = problem.devices[DeviceId(d)].budget;
    if (budget) most = std::max(most, peak[DeviceId(d)] - *budget);
  }
  return most;
}

Plan answer(const Problem& problem, std::vector<Step> steps) {
  if (overflow(problem, simulate(problem, steps).peak) > 0) return nothing_fits(problem, steps);
  Plan plan;
  plan.steps = std::move(steps);
  plan.status = Status::kFeasible;
  return plan;
}

Plan nothing_fits(const Problem& problem, const std::vector<Step>& tried) {
  std::vector<std::vector<Step>> known{keep_all_steps(problem)};
  if (!tried.empty()) known.push_back(tried);
  if (problem.ops.size() <= kMostOpsForLast) {
    if (auto steps = last_steps(problem)) known.push_back(std::move(*steps));
  }
  const std::optional<Infeasible> proof = prove_infeasible(problem);
  Infeasible why;
  const std::vector<Step>& reference = tried.empty() ? known.front() : tried;
  why.device = worst_device(problem, simulate(problem, reference).peak);
  if (proof) {
    why = *proof;
  } else {
    why.proved = smallest_peak(problem, why.device).bytes;
    name_peak(problem, reference, why);
  }
  // The smallest budget of this device at which a plan is known. Where the other devices overflow as well, the plan
  // says what it would need here.
  Bytes best = 0;
  bool best_fits = false;
  for (const std::vector<Step>& steps : known) {
    const auto peak = simulate(problem, steps).peak;
    const bool fits = fits_elsewhere(problem, peak, why.device);
    const Bytes here = peak[why.device];
    if (best == 0 || (fits && !best_fits) || (fits == best_fits && here < best)) {
      best = here;
      best_fits = fits;
    }
  }
  why.smallest = best;
  why.advice = advice_for(problem, why, proof.has_value());
  Plan plan;
  plan.status = Status::kInfeasible;
  plan.infeasible = std::move(why);
  return plan;
}

void BestPlan::offer(std::vector<Step> steps) {
  if (steps.empty()) return;
  const Simulation sim = simulate(problem_, steps);
  const Bytes over = overflow(problem_, sim.peak);
  const bool better = steps_.empty() || over < over_ || (over == over_ && sim.cost.seconds < seconds_);
  if (!better) return;
  steps_ = std::move(steps);
  over_ = over;
  seconds_ = sim.cost.seconds;
}

Plan BestPlan::plan() && { return steps_.empty() ? nothing_fits(problem_) : answer(problem_, std::move(steps_)); }

void check_switches(const Options& options, std::string_view planner, std::initializer_list<const char*> known) {
  const std::vector<std::string> names(known.begin(), known.end());
  for (const auto& [name, value] : options.switches) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw UserError("planner '{}' has no switch '{}'{}", planner, name, did_you_mean(name, names));
  }
}

std::string switch_value(const Options& options, const std::string& name, const std::string& otherwise,
                         std::initializer_list<const char*> values) {
  const auto it = options.switches.find(name);
  if (it == options.switches.end()) return otherwise;
  const std::vector<std::string> allowed(values.begin(), values.end());
  if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), it->second) == allowed.end())
    throw UserError("switch '{}' is '{}'; it must be one of {}", name, it->second, join(allowed, ", "));
  return it->second;
}

std::optional<double> switch_number(const Options& options, const std::string& name, double least, double most) {
  const std::string text = switch_value(options, name, "auto");
  if (text == "auto") return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != 0 || !(value >= least && value <= most))
    throw UserError("switch '{}' is '{}'; it must be 'auto' or a number from {} to {}", name, text, least, most);
  return value;
}

std::optional<int> switch_count(const Options& options, const std::string& name, int least, int most) {
  const std::optional<double> value = switch_number(options, name, least, most);
  if (!value) return std::nullopt;
  if (*value != std::floor(*value))
    throw UserError("switch '{}' is '{}'; it must be a whole number", name, switch_value(options, name, ""));
  return static_cast<int>(*value);
}

}  // namespace neaptide::plan
