// A 0/1 solution of a CutsModel as a schedule: first runs in order, everything else made again just before it is read.
#pragma once

#include <vector>

#include "neaptide/plan/cuts_model.hpp"

namespace neaptide::plan {

/// Runs in sequence, which may hold too much between the instants. Empty: a chain of inputs is too long to be followed.
std::vector<Compute> play_back(const CutsModel& model, const std::vector<char>& solution);

}  // namespace neaptide::plan
