// The forward half of a training problem, as the classic checkpointing methods see it: the ops up to the turn (the op
// at which keep-all holds most), the values that wait there for the backward half, and the points at which only one
// op's output is alive.
#pragma once

#include <vector>

#include "neaptide/plan/emit.hpp"

namespace neaptide::plan {

struct Forward {
  Choice choice;
  Uses uses;
  int turn = 0;                                // position in the order
  std::vector<OpId> ops;                       // chosen ops at positions <= turn
  std::vector<OpId> backward;                  // chosen ops after it
  std::vector<std::vector<BufferId>> waiting;  // by index in ops: droppable outputs that an op after the turn reads
  std::vector<bool> articulation;  // by index in ops: nothing droppable but its output crosses to later forward ops
};

Forward forward_of(const Problem& problem);

/// Runs everything in order; right after the turn, drops the waiting values of the ops that are not kept, so that each
/// is made again when the backward half asks for it. Empty when some value cannot be had again.
std::vector<Step> with_checkpoints(const Problem& problem, const Forward& forward, const std::vector<bool>& kept);

}  // namespace neaptide::plan
