#include <algorithm>
#include <iterator>

#include "fuzz/input.hpp"
#include "neaptide/memory/memory.hpp"
#include "neaptide/plan/certify.hpp"
#include "neaptide/plan/simulate.hpp"
#include "neaptide/plan/verify.hpp"

using namespace neaptide;

static bool is_small(const plan::Problem& p) {
  return p.ops.size() <= 12 && p.buffers.size() <= 40 && p.devices.size() <= 3 &&
         std::all_of(p.ops.begin(), p.ops.end(), [](const plan::Op& op) { return op.impls.size() <= 4; });
}

/// Everything that follows a problem: its plan, the checks on it, and its layout.
static void plan_it(const plan::Problem& problem, const char* planner) {
  plan::Options options;
  options.effort = 300;
  options.threads = 1;
  options.time_limit = 5;
  options.diagnose = false;
  const plan::Plan plan = plan::make_plan(problem, planner, options);  // verified
  ensure(plan::plan_from_json(problem, plan::to_json(problem, plan), "again.json").steps == plan.steps,
         "a plan changes when written and read");
  if (plan.lower_bound && plan.lower_bound->vouched_by.empty()) {
    const plan::Certified c = plan::certify(problem, *plan.lower_bound);
    if (!c.ok) throw InternalError("the bound of {} is not certified: {}", planner, c.reason);
  }
  if (plan.steps.empty()) return;
  memory::PackOptions pack;
  pack.effort = 1000;
  memory::pack(problem, plan, pack);  // verifies its answer
}

// The first byte chooses the planner, the rest is a problem.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const char* const kPlanners[] = {"neaptide", "keep-all", "chen-greedy", "dtr", "last", "griewank", "rotor"};
  if (size == 0) return 0;
  const char* planner = kPlanners[data[0] % std::size(kPlanners)];
  return fuzz::offer(data + 1, size - 1, [&](std::string_view text) {
    const plan::Problem problem = plan::problem_from_json(text, "fuzz.json");
    if (is_small(problem)) plan_it(problem, planner);
  });
}
