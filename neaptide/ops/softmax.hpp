// Softmax and LogSoftmax over one axis, and their gradients from the output (see ops.hpp).
#pragma once

#include "neaptide/graph/op_def.hpp"

namespace neaptide::ops {

std::vector<graph::OpDef> softmax_ops();

}  // namespace neaptide::ops
