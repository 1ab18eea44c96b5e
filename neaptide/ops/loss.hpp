// SoftmaxCrossEntropy, MeanSquaredError and CountCorrect (see ops.hpp). Losses are means over samples (elements); a
// loss at the end of a graph has the gradient 1, and a gradient that reaches it otherwise is multiplied in. A label
// outside the classes makes the loss NaN.
#pragma once

#include "neaptide/graph/op_def.hpp"

namespace neaptide::ops {

std::vector<graph::OpDef> loss_ops();

}  // namespace neaptide::ops
