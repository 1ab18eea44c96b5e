// Relu, Clip, Sigmoid, Tanh and their gradients (see ops.hpp).
#pragma once

#include "neaptide/graph/op_def.hpp"

namespace neaptide::ops {

std::vector<graph::OpDef> activation_ops();

}  // namespace neaptide::ops
