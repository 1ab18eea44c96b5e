#include "neaptide/session/budget.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/text.hpp"
#include "neaptide/memory/memory.hpp"
#include "neaptide/plan/forced.hpp"
#include "neaptide/plan/planners/neaptide.hpp"
#include "neaptide/plan/simulate.hpp"

namespace neaptide::session {

namespace {

plan::DeviceId device_named(const plan::Problem& problem, const std::string& name) {
  std::vector<std::string> known;
  for (std::size_t d = 0; d < problem.devices.size(); ++d) {
    known.push_back(problem.devices[plan::DeviceId(d)].name);
    if (known.back() == name) return plan::DeviceId(d);
  }
  throw UserError("there is no device '{}'{}; the devices are {}", name, did_you_mean(name, known), join(known, ", "));
}

/// "60%" -> 0.6; none when it is no percentage.
std::optional<double> share_of(const std::string& amount) {
  if (amount.empty() || amount.back() != '%') return std::nullopt;
  double percent = 0;
  const char* end = amount.data() + amount.size() - 1;
  const auto [rest, ec] = std::from_chars(amount.data(), end, percent);
  if (ec != std::errc() || rest != end || !std::isfinite(percent) || percent < 0 || percent > 1e6) {
    throw UserError("budget '{}' is not a percentage; write 60%", amount);
  }
  return percent / 100;
}

}  // namespace

Bytes keep_all_peak(const plan::Problem& problem, plan::DeviceId device) {
  return plan::simulate(problem, plan::keep_all_steps(problem)).peak[device];
}

Bytes smallest_budget(const plan::Problem& problem, plan::DeviceId device, std::string_view planner,
                      const plan::Options& options) {
  const plan::Problem chosen = plan::with_options(problem, options);
  const Bytes keep_all = keep_all_peak(chosen, device);
  plan::Options tried = options;
  tried.effort = 1;  // a plan is enough; it need not be a good one
  tried.diagnose = false;
  memory::PackOptions quick;
  quick.time_limit = 1;
  Bytes enough = planner == "neaptide" ? plan::smallest_budget(problem, options, device)
                                       : plan::smallest_peak(chosen, device).bytes;
  // Where the layout needs more than the peak, the steps are not small: each attempt that fails is slow.
  for (Bytes step = keep_all / 128 + 1; enough / 4 <= keep_all; step *= 2) {
    if (options.interrupted()) return enough;
    tried.budgets[problem.devices[device].name] = enough;
    if (!memory::plan_and_pack(problem, planner, tried, quick).steps.empty()) return enough;
    const Bytes more = checked_add(enough, step, "the smallest budget");
    enough = enough < keep_all ? std::min(more, keep_all) : more;
  }
  throw UserError("no budget of '{}' was found that is enough", problem.name);
}

std::map<std::string, Bytes> resolve_budgets(const plan::Problem& problem, std::span<const std::string> words,
                                             std::string_view planner, const plan::Options& options) {
  std::map<std::string, Bytes> out = options.budgets;
  std::map<std::string, std::string> given;
  for (const std::string& word : words) {
    const std::size_t equals = word.rfind('=');
    const std::string name =
        equals == std::string::npos ? problem.devices[plan::DeviceId(std::size_t{0})].name : word.substr(0, equals);
    const std::string amount = equals == std::string::npos ? word : word.substr(equals + 1);
    const plan::DeviceId device = device_named(problem, name);
    if (!given.emplace(name, amount).second) throw UserError("device '{}' has two budgets; give one", name);
    const plan::Problem chosen = plan::with_options(problem, options);
    if (const std::optional<double> share = share_of(amount)) {
      out[name] = static_cast<Bytes>(std::floor(*share * static_cast<double>(keep_all_peak(chosen, device))));
    } else if (amount == "min") {
      plan::Options so_far = options;
      so_far.budgets = out;
      out[name] = smallest_budget(problem, device, planner, so_far);
    } else {
      out[name] = parse_bytes(amount, "budget");
    }
  }
  return out;
}

}  // namespace neaptide::session
