// A cut that divides ops between one device and the others, as steps that a search can start from.
//
//   for (const auto& choice : place.choices()) adopt(sequence_of(model, tide::placed_steps(problem, device, choice,
//   true)));
#pragma once

#include <vector>

#include "neaptide/plan/placement_bound.hpp"

namespace neaptide::plan::tide {

/// Every op once, on its side, by its fastest implementation that fits there; copies where values cross; what is kept
/// and does not stay leaves the device after its last use. In the given order, except that ops which read nothing wait
/// for their first reader where `free_order` says so. May be over budget; empty when the choice is no schedule.
std::vector<Step> placed_steps(const Problem& problem, DeviceId device, const PlacementBound::Choice& choice,
                               bool free_order);

}  // namespace neaptide::plan::tide
