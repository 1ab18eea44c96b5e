// make_plan for tests that go through all planners.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "neaptide/base/errors.hpp"
#include "neaptide/plan/planner.hpp"

namespace neaptide::plan {

/// Nothing when the planner says that the problem is not its kind: some know one device only, or need a part that is
/// not built.
inline std::optional<Plan> try_plan(const Problem& problem, std::string_view planner, const Options& options) {
  try {
    return make_plan(problem, planner, options);
  } catch (const UserError& e) {
    const std::string what = e.what();
    for (const char* reason : {"knows one device", "is not built", "that these rules allow"}) {
      if (what.find(reason) != std::string::npos) return {};
    }
    throw;
  }
}

}  // namespace neaptide::plan
