// The planner alone: a problem in, a plan out. Links neaptide::plan, which needs neither oneDNN nor protobuf:
//   plan problem.json 12000000
#include <fmt/core.h>

#include <neaptide/base/errors.hpp>
#include <neaptide/memory/memory.hpp>
#include <neaptide/plan/planner.hpp>

using namespace neaptide;

int main(int argc, char** argv) try {
  if (argc < 3) return fmt::print("usage: plan PROBLEM.json BUDGET\n"), 2;
  const plan::Problem problem = plan::read_problem(argv[1]);
  plan::Options options;
  options.budgets[problem.devices[plan::DeviceId(std::size_t{0})].name] = parse_bytes(argv[2], "budget");
  const plan::Plan plan = memory::plan_and_pack(problem, "keep-all", options);
  fmt::print("{}, {}\n", plan::to_string(plan.status), format_seconds(plan.cost.seconds));
  return plan.steps.empty() ? 4 : 0;
} catch (const Error& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 1;
}
