// The least peak of any order of what runs once: what must lie on a device at some instant, because it is made once,
// is still to be read, and cannot come from elsewhere.
//
//   const OncePeak peak = once_peak(problem, device, 0);     // no plan has a peak below peak.bytes on the device
//
// Look at the step at which op tau first runs. The ops that have run by then are an ideal I of the dependencies: with
// an op whoever alone makes what it must read. It holds what tau waits for and nothing that waits for tau. A value of
// one maker that is `once`, and runs here only, is there from that run on until the last op that must read it has run
// for the first time (or, kept, to the end): it cannot be made again, and no copy brings it back. So the device holds
//
//   what tau reads  +  what tau adds in its leanest implementation  +  the values made in I that are read outside of it
//
// and the least of the last sum over all ideals bounds every order. That is a minimum cut (Picard 1976, closures):
//
//   source -> op       no limit: tau waits for the op, it has run                  op -> maker     no limit: I is
//   closed op -> value        the value's bytes: made, and somebody reads it later        value -> reader no limit op
//   -> sink         no limit: the op waits for tau, or is tau                   value -> sink   no limit: kept
//
// In place: where tau may write over a value in one implementation, holding that value for a later reader forbids it;
// what the next leaner implementation adds more is then paid with the value's bytes, for one such value. A value that
// may be made twice, or by several ops, counts only where tau reads it.
//
// Two instants: of two ops that nothing orders, one runs first. If it is a, then a's ideal lacks b and what waits for
// it, and b's has a and what a waits for; the larger of the two minimum cuts is forced. The smaller of what both orders
// force is forced by any.
#pragma once

#include <vector>

#include "neaptide/plan/problem.hpp"

namespace neaptide::plan {

struct OncePeak {
  Bytes bytes = 0;                // with the fixed homes of the device
  OpId op;                        // its first run is the instant; invalid: no instant is above `least`
  std::vector<BufferId> buffers;  // what lies there then, largest first; homes that nobody reads left out
};

/// The most that some instant, or two, force, if that is above `least`. Looks at the instants in the order of what the
/// ideals of the given order hold, and gives up after a fixed amount of work, so it may miss the worst instant of large
/// problems. The problem must be sound.
OncePeak once_peak(const Problem& problem, DeviceId device, Bytes least);

}  // namespace neaptide::plan
