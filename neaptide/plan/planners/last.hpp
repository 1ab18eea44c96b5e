#pragma once

#include <optional>

#include "neaptide/plan/planner.hpp"

namespace neaptide::plan {

/// The keep-nothing extreme: between two ops only the results of the last one stay, the rest is computed again. Nothing
/// when the sequence gets longer than a few million steps.
std::optional<std::vector<Step>> last_steps(const Problem& problem);

Plan run_last(const Problem& problem, const Options& options);

}  // namespace neaptide::plan
