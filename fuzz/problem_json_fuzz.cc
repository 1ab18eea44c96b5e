#include "fuzz/input.hpp"
#include "neaptide/plan/problem.hpp"

using namespace neaptide;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::offer(data, size, [](std::string_view text) {
    const plan::Problem problem = plan::problem_from_json(text, "fuzz.json");
    ensure(plan::check(problem).empty(), "a problem that was read is not sound");
    ensure(plan::problem_from_json(plan::to_json(problem), "again.json") == problem,
           "a problem changes when written and read");
  });
}
