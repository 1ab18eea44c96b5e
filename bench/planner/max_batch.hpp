// The published largest-batch problems (see keras_networks.hpp): what is found and proved, beside the published batch
// and the baselines. Prints one row per network.
#pragma once

#include <cstdint>

namespace neaptide::bench {

/// `effort`: ticks per plan, 0 for the planner's default.
void run_max_batch(std::int64_t effort);

}  // namespace neaptide::bench
