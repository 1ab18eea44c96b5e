// Problems of any size for the planner benchmark.
#pragma once

#include <cstdint>

#include "neaptide/plan/problem.hpp"

namespace neaptide::bench {

/// f1..f(l-1) from a homed input, then backward steps bl..b1. The step back over i reads what went into it and runs it
/// once more inside, in a workspace of one value. Values weigh one byte, gradients nothing, every op takes a second: in
/// slots + 2 bytes there are `slots` checkpoints, the input among them, and one state that moves.
plan::Problem uniform_chain(int length);

/// Seconds that binomial checkpointing needs for it: r l - C(s + r, s + 1) advances with the least r for which
/// C(s + r, s) >= l, and a step back each (A. Griewank, A. Walther: Algorithm 799, Revolve, 2000).
std::int64_t binomial_seconds(std::int64_t length, std::int64_t slots);

/// A training step of `layers` layers of attention and feed-forward, 48 ops a layer.
plan::Problem transformer(int layers);

}  // namespace neaptide::bench
