// Optimizer updates: SgdUpdate, MomentumUpdate, AdamUpdate (see ops.hpp), as PyTorch defines them. Each is executed
// exactly once in a step, and its outputs are the next versions of the parameter and its state.
//   Adam: Kingma, Ba, "Adam: a method for stochastic optimization", ICLR 2015; decoupled weight decay: Loshchilov,
//   Hutter, "Decoupled weight decay regularization", ICLR 2019.
#pragma once

#include "neaptide/graph/op_def.hpp"

namespace neaptide::ops {

std::vector<graph::OpDef> update_ops();

}  // namespace neaptide::ops
