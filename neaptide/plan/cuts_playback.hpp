// A 0/1 solution of a CutsModel as a schedule: first runs in order, everything else made again just before it is read.
#pragma once

#include <set>
#include <vector>

#include "neaptide/plan/cuts_model.hpp"

namespace neaptide::plan {

struct Playback {
  std::vector<Compute> runs;  // in sequence; they may hold too much between the instants. Empty: a chain of inputs is
                              // too long to be followed
  std::set<OpId> in_the_way;  // whose runs would take over, or took over, what was still wanted
};
Playback play_back(const CutsModel& model, const std::vector<char>& solution);

}  // namespace neaptide::plan
