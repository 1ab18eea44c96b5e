#include "fuzz/input.hpp"
#include "neaptide/plan/verify.hpp"

using namespace neaptide;

static const char* const kProblem = R"({"format": "neaptide.problem", "version": 1, "name": "fuzz",
  "devices": [{"name": "cpu:0", "budget": 1000}, {"name": "host"}],
  "links": [{"from": "cpu:0", "to": "host", "latency": 0, "bytes_per_second": 1},
            {"from": "host", "to": "cpu:0", "latency": 0, "bytes_per_second": 1}],
  "buffers": [{"name": "w", "bytes": 10, "home": "cpu:0", "keep": true}, {"name": "a", "bytes": 100},
              {"name": "b", "bytes": 90, "keep": true}],
  "ops": [
    {"name": "make", "once": false, "impls": [
      {"name": "x", "device": "cpu:0", "seconds": 1, "workspace": 7, "reads": ["w"], "writes": ["a"]}]},
    {"name": "use", "once": true, "impls": [
      {"name": "x", "device": "cpu:0", "seconds": 1, "reads": ["a"], "writes": ["b"], "in_place": [["a", "b"]]}]},
    {"name": "step", "once": true, "impls": [
      {"name": "x", "device": "cpu:0", "seconds": 1, "reads": ["w", "b"], "writes": ["w"]}]}]})";

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const plan::Problem problem = plan::problem_from_json(kProblem, "problem");
  return fuzz::offer(data, size, [](std::string_view text) {
    const plan::Plan plan = plan::plan_from_json(problem, text, "fuzz.json");
    const std::string written = plan::to_json(problem, plan);  // leaves out what the plan does not state
    ensure(plan::to_json(problem, plan::plan_from_json(problem, written, "again.json")) == written,
           "a plan changes when written and read");
    plan::verify(problem, plan);
  });
}
